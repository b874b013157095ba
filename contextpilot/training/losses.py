"""Losses as pure functions of tensors; PPO and GRPO share them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The clipped objective's loss, and how far the policy has moved.

    Attributes:
        loss: scalar with gradient.
        kl: estimate of KL(old || new), the k3 estimator (Schulman, 2020, "Approximating KL
            divergence"): mean of (ratio - 1) - log ratio; never negative.
        clip_fraction: share of steps whose ratio is outside the trusted interval.
    """

    loss: Tensor
    kl: Tensor
    clip_fraction: Tensor


def clipped_surrogate(
    log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, clip: float
) -> Surrogate:
    """Returns -mean(min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)).

    Schulman et al. (2017), "Proximal policy optimization algorithms", equation 7.

    Args:
        log_probs: of the actions under the policy as it is, (n,).
        old_log_probs: under the policy that collected them, (n,).
        advantages: (n,).
        clip: half the width of the trusted interval.
    """
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    loss = -torch.min(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages).mean()
    with torch.no_grad():
        kl = (ratio - 1.0 - log_ratio).mean()
        outside = ((ratio - 1.0).abs() > clip).float().mean()
    return Surrogate(loss, kl, outside)


def value_loss(values: Tensor, targets: Tensor) -> Tensor:
    """Returns half the mean squared error; values are not clipped (it was found not to help)."""
    return 0.5 * (values - targets).square().mean()


def imitation_loss(log_probs: Tensor) -> Tensor:
    """Returns the negative log-likelihood of a teacher's actions, (n,) -> scalar."""
    return -log_probs.mean()
