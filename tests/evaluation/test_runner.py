"""The runner plays every policy on every task, and says the same however it is spread."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from contextpilot.evaluation import runner
from contextpilot.evaluation.rows import EvaluationRow, objective_value
from contextpilot.evaluation.runner import PolicyFactory, Setting, evaluate
from contextpilot.policies.catalog import PolicySpec
from contextpilot_envs.engine import Engine
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode

POLICIES: dict[str, PolicyFactory] = {
    "raw": PolicySpec("raw"),
    "random": PolicySpec("random"),
}


def setting(
    source: str = "tools", tasks: int = 2, seeds: tuple[int, ...] = (0, 1), **simulator: object
) -> Setting:
    config = SimulatorConfig(**{"budget_fraction": None, "notice": "poor", **simulator})
    spec = EngineSpec(source, config, horizon=8)
    ids = tuple(spec.tasks().ids("validation")[:tasks])
    return Setting(source, "validation", config.notice, 8, spec, ids, seeds, POLICIES)


def without_time(rows: list[EvaluationRow]) -> list[EvaluationRow]:
    return [replace(row, seconds=0.0) for row in rows]


@pytest.fixture(scope="module")
def rows() -> list[EvaluationRow]:
    return evaluate([setting()])


def test_there_is_one_row_per_policy_task_and_seed_in_order(rows):
    chosen = setting()
    expected = list(product(POLICIES, chosen.task_ids, chosen.seeds))
    assert [(row.policy, row.task_id, row.seed) for row in rows] == expected
    assert {(row.source, row.split, row.notice, row.horizon) for row in rows} == {
        ("tools", "validation", "poor", 8)
    }
    assert chosen.episodes == len(rows) == 8


def test_rows_say_what_the_episode_came_to(rows):
    for row in rows:
        expected = objective_value(
            row.billed_tokens, row.raw_billed_tokens, row.miss_cost_tokens, row.failed
        )
        assert row.objective == pytest.approx(expected, abs=1e-9)
        assert row.seconds > 0
        assert row.edits == sum(row.edits_by_op.values())
        assert len(row.removed_facts) == row.silent_misses
        assert row.requests == 8
        assert row.language == "en"
    raw = [row for row in rows if row.policy == "raw"]
    assert [row.objective for row in raw] == pytest.approx([-1.0] * 4)
    assert {(row.edits, row.task_success, row.demand_success) for row in raw} == {(0, True, 1.0)}
    assert any(row.silent_misses for row in rows)


def test_a_row_is_the_episode_played_alone(rows):
    """Eight episodes side by side on one set of arrays do not touch each other."""
    chosen = setting()
    engine = chosen.make_engine(1)
    for row in rows:
        if row.policy != "random":
            continue
        policy = PolicySpec("random")()
        policy.reset(row.seed)
        engine.begin(0, row.task_id, row.seed)
        engine.observe([0])
        while not engine.ended(0):
            view = runner.Observation(
                {name: array[0] for name, array in engine.arrays().items()}, engine.codec
            )
            engine.step([policy(view)], [0])
        assert engine.metrics(0)["billed_tokens"] == row.billed_tokens
        assert engine.metrics(0)["edits_by_op"] == row.edits_by_op


@pytest.mark.parametrize("workers", [1, 2])
def test_the_result_does_not_depend_on_how_it_is_spread(rows, workers, monkeypatch):
    monkeypatch.setattr(runner, "TASKS_PER_PART", 1)
    monkeypatch.setattr(runner, "EPISODES_PER_PART", 2)
    monkeypatch.setattr(runner, "ROWS", 3)
    finished: list[int] = []
    again = evaluate([setting()], workers=workers, on_rows=finished.append)
    by_key = {(r.policy, r.task_id, r.seed): r for r in without_time(rows)}
    assert len(again) == len(rows)
    assert {(r.policy, r.task_id, r.seed): r for r in without_time(again)} == by_key
    assert finished == [2, 2, 2, 2]


def test_two_workers_give_the_order_of_one():
    settings = [setting(tasks=1, seeds=(0,)), setting("chat", tasks=1, seeds=(0,))]
    first, second = (without_time(evaluate(settings, workers=n)) for n in (1, 2))
    assert first == second
    assert [row.source for row in first] == ["tools", "tools", "chat", "chat"]


def test_few_rows_are_reused_for_many_episodes(rows, monkeypatch):
    monkeypatch.setattr(runner, "ROWS", 2)
    assert without_time(evaluate([setting()])) == without_time(rows)


@pytest.mark.parametrize(
    "simulator", [{"reader": "rot", "max_reloads": 0}, {"budget_fraction": 0.5}]
)
def test_rows_conform_whatever_the_simulator(simulator):
    found = evaluate([setting("docqa", tasks=2, seeds=(0, 1, 2), **simulator)])
    assert len(found) == 12
    if "reader" in simulator:
        assert any(fact.removed_by == "none" for row in found for fact in row.removed_facts)
    else:
        assert any(row.overflows for row in found)


def test_a_policy_may_look_behind_the_observation():
    """The oracle is given the engine and its row; nobody is better than it."""
    chosen = replace(setting(tasks=1, seeds=(0,)), policies={**POLICIES, "oracle": make_oracle})
    found = {row.policy: row for row in evaluate([chosen])}
    assert found["oracle"].silent_misses == 0
    assert found["oracle"].objective > max(found[name].objective for name in POLICIES)


def test_an_engine_says_when_an_episode_is_over():
    engine = setting().make_engine(1)
    assert isinstance(engine, Engine)
    engine.begin(0, setting().task_ids[0], 0)
    engine.observe([0])
    assert isinstance(engine.episodes[0], Episode)
    for _ in range(8):
        assert not engine.ended(0)
        engine.step([0], [0])
    assert engine.ended(0)
