"""What providers reported: token counts fitted to it, and when their caches ran out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.tasks.transcripts import Usage

MIN_SCALE, MAX_SCALE = 0.5, 3.0
MIN_REQUESTS = 4
"""With fewer reports than this a line through them says nothing."""

_ROUNDS = 40
_FLOOR = 1e-4

_COLD_SHARE = 0.5
"""Below this share of what could have been cached, the cache had run out."""

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
    pairs = [(x, y) for x, y in zip(estimated, reported, strict=True) if x and y]
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


def cold_requests(usage: Sequence[Usage | None]) -> tuple[int, ...]:
    """Returns the requests that found the provider's cache run out, as after a long pause.

    A request can find in the cache what it shares with the one before. The system prompt is
    often kept warm by other sessions, so a part of it may still be there.
    """
    cold = []
    for request, (before, now) in enumerate(pairwise(usage), start=1):
        if before is None or now is None or now.cached_tokens is None:
            continue
        shared = min(before.input_tokens or 0, now.input_tokens or 0)
        if now.cached_tokens < _COLD_SHARE * shared:
            cold.append(request)
    # a provider that caches nothing, or does not say so, has no cache to run out
    caches = any(reported is not None and reported.cached_tokens for reported in usage)
    return tuple(cold) if caches else ()


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
