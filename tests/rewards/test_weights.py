"""Weights and presets."""

import dataclasses

import numpy as np
import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import PRESETS, RewardWeights, reward_preset


def named(weights: RewardWeights) -> dict[str, float]:
    """The weights that are not 0."""
    pairs = zip(TERMS, weights.vector().tolist(), strict=True)
    return {name: weight for name, weight in pairs if weight}


OBJECTIVE = {"token_savings": 1.0, "demand": 1.0, "task": 2.0, "budget": 2.0, "invalid": 0.01}
BALANCED = OBJECTIVE | {"action_cost": 0.5, "key_info": 1.0, "reload": 1.0, "rent": 1.0}


def test_the_vector_is_in_the_order_of_the_terms():
    weights = RewardWeights(*range(len(TERMS)))
    assert weights.vector().dtype == np.float64
    assert weights.vector().tolist() == list(range(len(TERMS)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("balanced", BALANCED),
        ("quality_first", BALANCED | {"demand": 3.0, "key_info": 3.0}),
        (
            "tokens_first",
            BALANCED | {"token_savings": 1.5, "demand": 0.25, "key_info": 0.25, "task": 0.5},
        ),
        ("terminal_only", {"outcome": 1.0, "task": 2.0, "budget": 2.0, "invalid": 0.01}),
        ("naive", {"half_kept": 1.0, "reload_required": 1.0, "summary_kept": 0.2}),
    ],
)
def test_presets(name, expected):
    assert named(reward_preset(name)) == expected


def test_the_defaults_are_the_objective():
    assert named(RewardWeights()) == OBJECTIVE
    assert len(PRESETS) == 5


def test_an_unknown_preset_is_named_with_the_nearest_one():
    with pytest.raises(ConfigurationError, match=r"Received 'ballanced'.*mean 'balanced'"):
        reward_preset("ballanced")


def test_thrash_has_no_weight_anywhere():
    assert all(weights.thrash == 0 for weights in (RewardWeights(), *PRESETS.values()))


def test_weights_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RewardWeights().demand = 2.0  # type: ignore[misc]
