"""Five thousand random schedules of what hosts do: edits depend on history and log, on no path.

There are two oracles, each as sharp as what it compares allows.

- Steps that bring no message which the straight path lacks (a retry, a copy, a request fed back, a
  restart, an older prefix, appending instead of passing lists, going on with the requests, threads,
  and undo, manual edits and reload calls that both make) change nothing at all: a session to which
  they happen and one that only sees its history grow make the same log, record by record, and the
  same requests, byte by byte, at every request. The policy chooses by what it sees alone, so this
  holds of observations and masks as well.
- Steps that bring other messages (branches, messages changed in place, trimmed histories, and edits
  made in all of them) give other ids. There, a session that went through them sends for a history
  what a new one sends that has its log and archive and has only seen this history grow; the same
  records sleep, namely those whose targets are not all there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from manager.disturbing_steps import Disturbed
from manager.neutral_steps import Neutral

from contextpilot.core.edit import Op

CHUNKS, NEUTRAL, DISTURBING = 4, 400, 850
"""5,000 schedules: four times as many of each kind."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_brings_nothing_new_changes_nothing(chunk: int, tmp_path: Path) -> None:
    done = Counter[str]()
    for seed in range(chunk * NEUTRAL, (chunk + 1) * NEUTRAL):
        done += Neutral(seed, tmp_path).run()
    steps = {
        "retry", "copy", "fed back", "restart", "threads", "dry run", "older", "undo", "by hand",
    }  # fmt: skip
    assert all(done[step] >= 50 for step in steps), done
    assert done["edited"] >= 0.8 * NEUTRAL


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_edits_apply_as_on_the_straight_path(chunk: int, tmp_path: Path) -> None:
    done = Counter[str]()
    for seed in range(chunk * DISTURBING, (chunk + 1) * DISTURBING):
        done += Disturbed(seed, tmp_path).run()
    assert done["read as a request"] < 0.05 * DISTURBING
    assert done["asleep"] > 100
    assert done["compared edited"] > 0.8 * DISTURBING
    steps = (
        "grow", "branch", "change", "trim_front", "trim_back", "restart", "undo", "reload_call",
        "fed_back",
    )  # fmt: skip
    assert all(done[step] >= 100 for step in steps), done
    assert all(done[f"op {op.name.lower()}"] >= 100 for op in Op if op), done
