"""How counts become features: logarithms and shares of time, looked up where counts are small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.observations.features import AGE_SCALE, TOKEN_SCALE

Integers = NDArray[np.integer]
Floats = NDArray[np.float32]


class LogScale:
    """`log1p(n) / scale` for arrays of counts."""

    def __init__(self, scale: float, size: int, precision: type[np.floating]) -> None:
        """Takes the scale, how many counts to keep in a table, and how to compute others."""
        self._scale, self._precision = scale, precision
        self._table = self._computed(np.arange(size))

    def __call__(self, counts: Integers) -> Floats:
        """Returns the scaled logarithm of counts that are not negative, in float32."""
        try:
            return self._table.take(counts)
        except IndexError:  # a count beyond the table
            return self._computed(counts)

    def _computed(self, counts: Integers) -> Floats:
        return (np.log1p(counts.astype(self._precision)) / self._scale).astype(np.float32)


log_tokens = LogScale(TOKEN_SCALE, 1 << 16, np.float64)
log_age = LogScale(AGE_SCALE, 1 << 10, np.float64)
log_references = LogScale(4.0, 1 << 8, np.float32)
log_reloads = LogScale(3.0, 1 << 8, np.float32)
log_unlisted_tokens = LogScale(TOKEN_SCALE, 1 << 8, np.float32)
log_unlisted = LogScale(6.0, 1 << 8, np.float32)


def recency(happened: NDArray[np.bool_], since: Integers) -> Floats:
    """Returns 1 / (1 + requests since), and 0 for what never happened."""
    shares = 1 / (1 + np.maximum(since, 0).astype(np.float32))
    return np.where(happened, shares, np.float32(0))
