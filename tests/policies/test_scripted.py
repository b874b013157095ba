"""The scripted policy that reloads: what the user names is there when it is needed."""

from __future__ import annotations

import pytest
from tiny_tasks import FixedSource, document_segment, goal_segment, stream_task, user_segment, words

from contextpilot.core.edit import Op
from contextpilot.evaluation.edit_study import fresh_ids
from contextpilot.observations.observation import Observation
from contextpilot.policies.scripted import ScriptedSpec
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.catalog import load_source

NAMES = ("Falcon Bridge Annex", "Heron Lake Depot", "Otter Mill Yard", "Lynx Ridge Pier")
PAPERS = [f"{name}: ledger\n{words(90, 1000 * n)}" for n, name in enumerate(NAMES)]


def task(said: str) -> Task:
    """The papers are read; at request 4 the user says something; at 5 the first is needed."""
    segments = [
        goal_segment(), *(document_segment(f"d{n}", text) for n, text in enumerate(PAPERS)),
        user_segment("u1", f"{said}\n{words(60, 5000)}"),
    ]  # fmt: skip
    return stream_task(
        segments, [0, 1, 1, 1, 1, 4], 7, facts=[KeyFact("w00040", "name", (1,))],
        demands=[Demand(5, (0,), "Falcon Bridge", final=True)],
    )  # fmt: skip


def play(task: Task, masked: bool) -> tuple[list[tuple[int, Op, int]], int]:
    """Returns request, operation and segment of every edit, and the forced reloads."""
    engine = Engine(1, FixedSource(task), SimulatorConfig(budget_fraction=None, notice="perfect"))
    engine.begin(0, task.id, 0)
    engine.observe([0])
    policy, episode, edits = ScriptedSpec(Op.RELOAD, masked)(), engine.episodes[0], []
    policy.reset(0)
    while not episode.ended:
        view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
        number = policy(view)
        action = engine.codec.decode(number)
        if number:
            index = int(engine.encoder.slot_index[0, action.slot])
            edits.append((episode.context.request, action.op, index))
        engine.step([number], [0])
    return edits, episode.tally.forced_reloads


def test_what_the_user_names_is_reloaded_before_the_agent_asks() -> None:
    edits, forced = play(task("Next: Falcon Bridge Annex."), masked=False)
    folds = [(request, index) for request, op, index in edits if op == Op.FOLD]
    assert folds[:4] == [(2, 1), (2, 2), (2, 3), (2, 4)]
    assert [edit for edit in edits if edit[1] == Op.RELOAD] == [(5, Op.RELOAD, 1)]
    assert forced == 0


def test_with_the_edit_masked_the_agent_asks() -> None:
    edits, forced = play(task("Next: Falcon Bridge Annex."), masked=True)
    assert {op for _, op, _ in edits} == {Op.FOLD}
    assert forced == 1


def test_a_user_text_that_names_nothing_reloads_nothing() -> None:
    edits, forced = play(task("Thank you, go on like that."), masked=False)
    assert {op for _, op, _ in edits} == {Op.FOLD}
    assert forced == 1


@pytest.mark.parametrize("count", [1, 3])
def test_fresh_ids_are_validation_tasks_that_no_source_lists(count: int) -> None:
    source = load_source("restock", horizon=10)
    listed = source.ids("validation")
    fresh = fresh_ids(listed[0], count)
    assert fresh[0] == "restock/en/h10/100001"
    assert len(set(fresh)) == count
    assert not set(fresh) & {*listed, *source.ids("train")}
    assert all(int(task_id[-6:]) % 2 == int(listed[0][-6:]) % 2 for task_id in fresh)
    assert source.load(fresh[-1]).id == fresh[-1]
