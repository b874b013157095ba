"""Five thousand random edits, each of them checked: the load test of the algebra."""

import pytest
from tiny_tasks import FixedSource, mixed_task

from contextpilot_envs import stress as module
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.stress import BrokenInvariantError, check_context, stress


def engine(**settings) -> Engine:
    source = FixedSource(*(mixed_task(seed, 8) for seed in range(8)))
    return Engine(
        1, source, SimulatorConfig(budget_fraction=0.8, **settings), context_slots=40,
        archive_slots=12,
    )  # fmt: skip


def test_five_thousand_random_edits():
    played = engine()
    report = stress(played, played.source.ids("train"), 5000, seed=11, keep_share=0.03)
    assert report.total >= 5000
    assert min(report.shares().values()) >= 0.05
    assert set(report.edits) == {"summarize", "fold", "expire", "drop", "reload", "reorder"}
    assert report.shortest_episode_edits >= 20
    assert report.undone > 400
    assert report.replayed == report.episodes > 50


def test_it_notices_tokens_that_do_not_add_up():
    played = engine()
    played.begin(0, "mixed/0", 0)
    played.episodes[0].context.total += 1
    with pytest.raises(BrokenInvariantError, match="tokens do not add up"):
        check_context(played.episodes[0])


def test_it_notices_a_split_exchange():
    played = engine()
    played.begin(0, "mixed/0", 0)
    episode = played.episodes[0]
    episode.send()
    turn = next(i for i in episode.context.visible() if len(episode.context.group(i)) > 1)
    episode.context.set_form(turn, 0)
    with pytest.raises(BrokenInvariantError, match="is split"):
        check_context(episode)


def test_it_notices_a_pinned_segment_that_left():
    played = engine()
    played.begin(0, "mixed/0", 0)
    played.episodes[0].context.set_form(1, 0)
    with pytest.raises(BrokenInvariantError, match="pinned segment 1 is not shown whole"):
        check_context(played.episodes[0])


def test_it_notices_an_undo_that_brings_something_else_back(monkeypatch):
    played = engine()
    monkeypatch.setattr(module, "undo", lambda context, log, record: (record.id,))
    with pytest.raises(BrokenInvariantError, match="does not bring the state back"):
        stress(played, played.source.ids("train"), 200, seed=3)
