"""What each reward term weighs, and the weightings that studies compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from math import isfinite
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True)
class RewardWeights:
    """One weight per term, in the order of `contextpilot.rewards.terms.TERMS`.

    The defaults sum to J + 1 over an episode without masked actions: the objective, moved so that
    editing nothing and missing nothing earns 0. They assume the simulator's own `task_weight`.
    """

    token_savings: float = 1.0
    """Raw price of a request minus what was billed for it, as a share of the raw bill."""

    demand: float = 1.0
    """Minus what silent misses cost, as a share of the raw bill."""

    action_cost: float = 0.0
    """Minus the work of edits and extra model calls, as a share of the task's requests."""

    key_info: float = 0.0
    """Potential difference: facts still needed that would be missed, at what that costs."""

    reload: float = 0.0
    """Potential difference: facts still needed that would be fetched, at what that costs."""

    rent: float = 0.0
    """Potential difference: what the context as it stands will still be billed, against raw."""

    budget: float = 2.0
    """-1 where a request was over the window and refused."""

    invalid: float = 0.01
    """-1 for each masked action."""

    task: float = 2.0
    """-1 at the end of a task that failed for any other reason."""

    thrash: float = 0.0
    """-1 for each reload of what was hidden shortly before; a diagnostic."""

    outcome: float = 0.0
    """Everything at the end: 1 - (bill + cost of misses) / raw bill."""

    half_kept: float = 0.0
    """+1 for a request with all key facts in less than half of raw's tokens."""

    reload_required: float = 0.0
    """-1 for each forced reload."""

    summary_kept: float = 0.0
    """+1 for each summary while nothing has been missed."""

    def __post_init__(self) -> None:
        """Refuses weights that are no finite numbers.

        Raises:
            ConfigurationError: naming the term.
        """
        for field in fields(self):
            weight = getattr(self, field.name)
            if not isfinite(weight):
                raise ConfigurationError(
                    f"`reward.{field.name}` must be a finite number. Received {weight}."
                )

    def vector(self) -> NDArray[np.float64]:
        """Returns the weights, (N,) float64, in the order of the terms."""
        return np.array(astuple(self), dtype=np.float64)


_BALANCED = RewardWeights(action_cost=0.5, key_info=1.0, reload=1.0, rent=1.0)
_NOTHING = RewardWeights(token_savings=0.0, demand=0.0, budget=0.0, invalid=0.0, task=0.0)

PRESETS: Mapping[str, RewardWeights] = MappingProxyType(
    {
        "balanced": _BALANCED,
        "quality_first": replace(_BALANCED, demand=3.0, key_info=3.0),
        "tokens_first": replace(
            _BALANCED, token_savings=1.5, demand=0.25, key_info=0.25, task=0.5
        ),
        "terminal_only": replace(_NOTHING, outcome=1.0, task=2.0, budget=2.0, invalid=0.01),
        # The step reward that tutorials give, as it stands: it ignores what anything costs.
        "naive": replace(_NOTHING, half_kept=1.0, reload_required=1.0, summary_kept=0.2),
    }
)  # fmt: skip
"""Weightings by name."""


def reward_preset(name: str) -> RewardWeights:
    """Returns a preset's weights.

    Raises:
        ConfigurationError: for an unknown name, with the nearest known one.
    """
    weights = PRESETS.get(name)
    if weights is None:
        raise ConfigurationError(
            f"unknown reward preset. Received {name!r}.{did_you_mean(name, PRESETS)}"
        )
    return weights
