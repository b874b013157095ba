"""The environment behaves as it was recorded: any difference is a new version of it."""

import json

import pytest
from golden.record import CASES, PATH, play, versions

RECORDED = json.loads(PATH.read_text(encoding="utf-8"))
ADVICE = (
    "The environment does not behave as it was recorded. If that is meant, it is a new version: "
    "register ContextPilot/ContextEdit-vN, raise OBSERVATION_VERSION or ACTION_VERSION where "
    "their layout changed, and record again with `python tests/golden/record.py`."
)


def test_the_recording_names_its_versions():
    assert {name: RECORDED[name] for name in versions()} == versions(), ADVICE


@pytest.mark.parametrize("source", CASES)
def test_a_trajectory_is_what_was_recorded(source):
    played, recorded = play(source), RECORDED["trajectories"][source]
    for name, value in recorded.items():
        assert played[name] == value, f"{source}: {name} changed. {ADVICE}"
    assert played.keys() == recorded.keys()


def test_the_recording_says_something():
    trajectories = RECORDED["trajectories"].values()
    assert set(RECORDED["trajectories"]) == set(CASES)
    assert sum(len(t["actions"]) for t in trajectories) > 300
    assert {op for t in trajectories for op in t["edits"]} >= {
        "fold",
        "drop",
        "expire",
        "summarize",
    }
    assert sum(t["silent_misses"] for t in trajectories) > 0
    assert sum(t["forced_reloads"] for t in trajectories) > 0
