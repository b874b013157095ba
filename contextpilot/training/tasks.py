"""Which tasks an iteration plays. Every draw is a pure function of (seed, iteration)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextpilot.errors import ConfigurationError
from contextpilot.training.rollout import Assignment

VARIANT = "~"
"""What separates a recorded run's id from the number of its variant."""

_TASKS, _MINIBATCHES, _SAMPLING = 1, 2, 3
"""Streams of random numbers, so that one never shifts another."""


def minibatch_generator(seed: int, iteration: int) -> np.random.Generator:
    """Returns what an iteration's minibatches are drawn with."""
    return np.random.default_rng([_MINIBATCHES, seed, iteration])


def sampling_seed(seed: int, iteration: int) -> int:
    """Returns the seed of an iteration's action sampling."""
    return int(np.random.default_rng([_SAMPLING, seed, iteration]).integers(2**62))


class TaskDraw:
    """Training tasks, less an inner fold that chooses the best checkpoint.

    Sources are drawn equally often, whatever their number of tasks. The fold holds back every
    n-th run of each source, with all its variants.

    Args:
        task_ids: of the training split; a source is what stands before the first "/".
        seed: of the run.
        inner_fold: share held back.

    Raises:
        ConfigurationError: when there is no task, or too few for a fold.
    """

    def __init__(self, task_ids: Sequence[str], seed: int, inner_fold: float) -> None:
        self.seed = seed
        by_source: dict[str, dict[str, list[str]]] = {}
        for task_id in task_ids:
            source, run = task_id.split("/", 1)[0], task_id.split(VARIANT, 1)[0]
            by_source.setdefault(source, {}).setdefault(run, []).append(task_id)
        self.train: dict[str, list[str]] = {}
        self.inner: dict[str, list[str]] = {}
        every = max(2, round(1 / inner_fold))
        for source, runs in by_source.items():
            kept = [ids for k, ids in enumerate(runs.values()) if k % every != every - 1]
            held = [ids for k, ids in enumerate(runs.values()) if k % every == every - 1]
            if not held:  # fewer runs than `every`: the last one is held back
                kept, held = list(runs.values())[:-1], list(runs.values())[-1:]
            self.train[source] = [task_id for ids in kept for task_id in ids]
            self.inner[source] = [ids[0] for ids in held]
        if not by_source or not all(self.train.values()):
            raise ConfigurationError(
                "training needs at least two tasks of each source, one of them for the inner fold. "
                f"Received { ({s: sum(map(len, r.values())) for s, r in by_source.items()}) }."
            )

    def independent(self, iteration: int, episodes: int) -> list[Assignment]:
        """Returns episodes of drawn tasks, each under its own noise."""
        rng = np.random.default_rng([_TASKS, self.seed, iteration])
        return [
            Assignment(task_id, int(rng.integers(2**31)), group)
            for group, task_id in enumerate(self._draw(rng, episodes))
        ]

    def grouped(self, iteration: int, groups: int, size: int) -> list[Assignment]:
        """Returns `size` episodes of each drawn task, under the same noise."""
        rng = np.random.default_rng([_TASKS, self.seed, iteration])
        drawn = [(task_id, int(rng.integers(2**31))) for task_id in self._draw(rng, groups)]
        return [Assignment(*drawn[g], g) for g in range(groups) for _ in range(size)]

    def demonstrated(self, tasks: int) -> list[Assignment]:
        """Returns distinct tasks for teachers to play, sources in turn."""
        return self._in_turn(self.train, tasks)

    def evaluated(self, tasks: int) -> list[Assignment]:
        """Returns the tasks of the inner fold that checkpoints are compared on; always the same."""
        return self._in_turn(self.inner, tasks)

    def _in_turn(self, of_source: dict[str, list[str]], count: int) -> list[Assignment]:
        longest = max(len(ids) for ids in of_source.values())
        ids = [ids[k] for k in range(longest) for ids in of_source.values() if k < len(ids)]
        return [Assignment(task_id, k, k) for k, task_id in enumerate(ids[:count])]

    def _draw(self, rng: np.random.Generator, count: int) -> list[str]:
        sources = list(self.train)
        drawn = []
        for k in range(count):
            if k % len(sources) == 0:
                order = rng.permutation(len(sources))
            ids = self.train[sources[int(order[k % len(sources)])]]
            drawn.append(ids[int(rng.integers(len(ids)))])
        return drawn
