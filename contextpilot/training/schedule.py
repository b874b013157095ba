"""How settings change over the iterations."""

from __future__ import annotations

from contextpilot.training.config import GRPOConfig, PPOConfig

FINAL_SHARE = 0.1
"""What is left of the learning rate at the end."""


def learning_rate(algorithm: PPOConfig | GRPOConfig, iteration: int) -> float:
    """Returns the rate of an iteration: constant, or falling linearly to a tenth."""
    if not algorithm.anneal:
        return algorithm.learning_rate
    done = iteration / max(1, algorithm.iterations - 1)
    return algorithm.learning_rate * (1.0 - (1.0 - FINAL_SHARE) * done)
