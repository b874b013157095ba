"""Recorded runs as many training tasks: random windows of themselves, renamed and spliced."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from contextpilot.errors import UnknownTaskError
from contextpilot_envs.tasks.augment import Augmentation, augment
from contextpilot_envs.tasks.base import Task, TaskSource

_DISTRACTORS = 3
"""Other runs that a variant's spliced exchanges come from."""


class AugmentedSource:
    """A source whose training runs are each there in `variants` variants; validation stays whole.

    Ids are `<run>~<number>`; a variant is a pure function of its id.
    """

    def __init__(
        self, source: TaskSource, variants: int = 32, settings: Augmentation | None = None
    ) -> None:
        self.name, self._source, self._variants = source.name, source, variants
        self._settings = settings or Augmentation()
        self._original = lru_cache(maxsize=16)(source.load)

    def ids(self, split: str) -> Sequence[str]:
        """Returns the ids of a split, run by run."""
        ids = self._source.ids(split)
        if split != "train":
            return ids
        return [f"{task_id}~{k}" for task_id in ids for k in range(self._variants)]

    def load(self, task_id: str) -> Task:
        """Returns a task; a variant of it where the id asks for one.

        Raises:
            UnknownTaskError: when the run or the variant does not exist.
        """
        run, _, number = task_id.partition("~")
        if not number:
            return self._source.load(run)
        runs = self._source.ids("train")
        if run not in runs or not number.isdecimal() or int(number) >= self._variants:
            raise UnknownTaskError(
                f"{self.name!r} has no such variant. Received {task_id!r}. Variants are "
                f"numbered 0 to {self._variants - 1}, of training runs only."
            )
        rng = np.random.default_rng([int(number), zlib.crc32(run.encode())])
        others = [r for r in runs if r != run]
        chosen = [others[int(k)] for k in rng.permutation(len(others))[:_DISTRACTORS]]
        variant = augment(
            self._original(run), rng, [self._original(r) for r in chosen], self._settings
        )
        return replace(variant, id=task_id)
