"""The two policies that know nothing: keep everything, and anything that is legal."""

from __future__ import annotations

import numpy as np

from contextpilot.core.edit import Op
from contextpilot.edits.codec import CONTEXT_PRESETS
from contextpilot.observations.observation import Observation


class KeepAll:
    """The raw context: no edit, ever."""

    name = "raw"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:  # noqa: ARG002 - whatever it sees
        """Returns keep."""
        return 0


class RandomPolicy:
    """An operation at random, then one of its legal actions: every operation gets its share.

    Args:
        keep_share: probability of keep; the rest is shared by the operations that are legal.
    """

    name = "random"

    def __init__(self, keep_share: float = 0.2) -> None:
        self.keep_share = keep_share
        self._generator = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """Starts the episode's own stream of random numbers."""
        self._generator = np.random.default_rng(seed)

    def __call__(self, observation: Observation) -> int:
        """Returns keep or a legal edit."""
        if self._generator.random() < self.keep_share:
            return 0
        codec, mask = observation.codec, observation.arrays["action_mask"]
        legal = np.nonzero(mask[1:])[0] + 1
        if not len(legal):
            return 0
        ops = _op_numbers(codec.context_slots, codec.archive_slots)[legal]
        present = np.unique(ops)
        op = present[self._generator.integers(len(present))]
        choices = legal[ops == op]
        return int(choices[self._generator.integers(len(choices))])


def _op_numbers(
    context_slots: int, archive_slots: int
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Returns the operation of every action, (A,)."""
    per_preset = np.array([preset.op for preset in CONTEXT_PRESETS], np.int8)
    return np.concatenate(
        [
            np.zeros(1, np.int8),
            np.repeat(per_preset, context_slots),
            np.full(2 * archive_slots, Op.RELOAD, np.int8),
        ]
    )
