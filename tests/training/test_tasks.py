"""Draws of tasks: pure functions of (seed, iteration), fair between sources, and honest folds."""

from __future__ import annotations

from collections import Counter

import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.training.tasks import TaskDraw

IDS = [f"big/{k:03}" for k in range(100)] + [f"small/{k}~{v}" for k in range(4) for v in range(8)]


def draw(seed: int = 0) -> TaskDraw:
    return TaskDraw(IDS, seed, 0.1)


def test_the_same_iteration_draws_the_same_tasks_whatever_was_drawn_before():
    first, second = draw(), draw()
    first.independent(0, 10)
    assert first.independent(7, 20) == second.independent(7, 20)
    assert first.independent(7, 20) != first.independent(8, 20)
    assert first.independent(7, 20) != draw(seed=1).independent(7, 20)


def test_sources_are_drawn_equally_often():
    counts = Counter(a.task_id.split("/")[0] for a in draw().independent(0, 50))
    assert counts == {"big": 25, "small": 25}


def test_a_group_shares_task_and_noise():
    plan = draw().grouped(3, groups=4, size=5)
    assert [a.group for a in plan] == [g for g in range(4) for _ in range(5)]
    assert all(
        len({(a.task_id, a.noise_seed) for a in plan if a.group == g}) == 1 for g in range(4)
    )
    assert len({a.noise_seed for a in plan}) == 4


def test_the_fold_is_apart_with_all_variants_of_its_runs():
    tasks = draw()
    drawn = {a.task_id for i in range(200) for a in tasks.independent(i, 20)}
    inner = {a.task_id for a in tasks.evaluated(100)}
    assert len({i for i in inner if i.startswith("big")}) == 10
    runs = {i.split("~")[0] for i in inner}
    assert inner
    assert not drawn & inner
    assert not [task_id for task_id in drawn if task_id.split("~")[0] in runs]


def test_a_small_source_still_holds_one_run_back():
    tasks = TaskDraw(["a/0", "a/1"], 0, 0.1)
    assert tasks.train["a"] == ["a/0"]
    assert tasks.inner["a"] == ["a/1"]


def test_one_task_is_not_enough():
    with pytest.raises(ConfigurationError, match="at least two tasks"):
        TaskDraw(["a/0"], 0, 0.1)


def test_sources_take_turns_where_a_list_is_cut():
    assert [a.task_id.split("/")[0] for a in draw().demonstrated(4)] == ["big", "small"] * 2
