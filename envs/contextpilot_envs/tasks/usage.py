"""Fitting token counts to what providers reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_SCALE, MAX_SCALE = 0.5, 3.0
MIN_REQUESTS = 4
"""With fewer reports than this a line through them says nothing."""

_ROUNDS = 40
_FLOOR = 1e-4

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UsageFit:
    """`reported = prefix_tokens + token_scale * estimated`, and how well that holds.

    Attributes:
        prefix_tokens: tokens of system prompt and tool schemas that the transcript does not hold.
        token_scale: reported tokens per estimated token.
        median_relative_error, p90_relative_error: of the reported input, over the requests.
        requests: how many requests reported their input; 0: nothing was fitted.
    """

    prefix_tokens: int = 0
    token_scale: float = 1.0
    median_relative_error: float = 0.0
    p90_relative_error: float = 0.0
    requests: int = 0

    def __str__(self) -> str:
        """One line for logs."""
        if not self.requests:
            return "no usage reported"
        return (
            f"prefix {self.prefix_tokens} + {self.token_scale:.2f} x estimate over "
            f"{self.requests} requests, error {self.median_relative_error:.1%} median, "
            f"{self.p90_relative_error:.1%} p90"
        )


def fit_usage(estimated: Sequence[int], reported: Sequence[int | None]) -> UsageFit:
    """Fits prefix and scale of one episode by least absolute relative error.

    Absolute rather than squared, since harnesses now and then clear results or add reminders
    that the transcript does not show; relative, since that is the error which is reported.

    Args:
        estimated: per request, the estimated tokens of the context.
        reported: per request, the whole input that the provider reported, or None.

    Returns:
        The fit, with prefix >= 0 and scale in [0.5, 3]; the neutral one below 4 reports.
    """
    pairs = [(x, y) for x, y in zip(estimated, reported, strict=True) if y]
    if len(pairs) < MIN_REQUESTS:
        return UsageFit()
    x, y = np.array(pairs, dtype=np.float64).T
    prefix, scale = _bounded_line(x, y)
    errors = np.abs(prefix + scale * x - y) / y
    return UsageFit(
        round(prefix),
        scale,
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
        len(pairs),
    )


def _bounded_line(x: Array, y: Array) -> tuple[float, float]:
    """Returns (prefix, scale) within bounds: the free line, or the best one on a bound it broke."""
    prefix, scale = _line(x, y)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        scale = float(np.clip(scale, MIN_SCALE, MAX_SCALE))
        prefix = _weighted_median(y - scale * x, 1.0 / y)
    if prefix < 0:
        prefix = 0.0
        scale = float(np.clip(_weighted_median(y / x, x / y), MIN_SCALE, MAX_SCALE))
    return prefix, scale


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Returns the line of least absolute relative error, by reweighted least squares."""
    design = np.stack([1.0 / y, x / y], axis=1)
    weights = np.ones_like(y)
    prefix = scale = 0.0
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(design * root[:, None], root, rcond=None)[0]
        prefix, scale = float(solution[0]), float(solution[1])
        residuals = np.abs(design @ solution - 1.0)
        weights = 1.0 / np.maximum(residuals, _FLOOR)
    return prefix, scale


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    half = weights.sum() / 2.0
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), half)])
