"""Recorded runs as many training tasks: ids, purity, and what stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from replay_checks import RUN

from contextpilot.errors import UnknownTaskError
from contextpilot_envs.tasks.augmented import AugmentedSource
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.replay import replay_task

_WHOLE = replay_task(RUN)


class _Runs:
    """Two training runs and one of validation, all of the same content."""

    name = "runs"

    def ids(self, split: str) -> Sequence[str]:
        return ["runs/a", "runs/b"] if split == "train" else ["runs/v"]

    def load(self, task_id: str) -> Task:
        if task_id not in {"runs/a", "runs/b", "runs/v"}:
            raise UnknownTaskError(f"no such run. Received {task_id!r}.")
        return replace(_WHOLE, id=task_id, cluster=task_id)


def test_each_training_run_is_there_in_variants_and_validation_runs_are_not() -> None:
    source = AugmentedSource(_Runs(), variants=2)
    assert source.ids("train") == ["runs/a~0", "runs/a~1", "runs/b~0", "runs/b~1"]
    assert source.ids("validation") == ["runs/v"]
    assert source.load("runs/v").segments == _WHOLE.segments


def test_a_variant_is_a_pure_function_of_its_id() -> None:
    first, second = AugmentedSource(_Runs()), AugmentedSource(_Runs())
    second.load("runs/b~5")
    assert first.load("runs/a~3") == second.load("runs/a~3")
    texts = {tuple(s.text for s in first.load(f"runs/{run}~0").segments) for run in "ab"}
    assert len(texts) == 2  # each run has its own random numbers


def test_a_variant_keeps_its_id_and_its_cluster() -> None:
    variant = AugmentedSource(_Runs()).load("runs/a~1")
    assert (variant.id, variant.cluster) == ("runs/a~1", "runs/a")


@pytest.mark.parametrize("task_id", ["runs/a~32", "runs/a~x", "runs/v~0", "runs/c~0", "runs/a~-1"])
def test_variants_that_do_not_exist_are_refused(task_id: str) -> None:
    with pytest.raises(UnknownTaskError, match="Received"):
        AugmentedSource(_Runs()).load(task_id)
