"""Losses and their gradients against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from contextpilot.training.losses import clipped_surrogate, imitation_loss, value_loss


def surrogate(ratios: list[float], advantages: list[float], clip: float = 0.2):
    """Returns the loss and the gradient with respect to the new log-probabilities."""
    new = torch.tensor([math.log(r) for r in ratios], requires_grad=True)
    found = clipped_surrogate(new, torch.zeros(len(ratios)), torch.tensor(advantages), clip)
    found.loss.backward()
    return found, new.grad.tolist()


def test_inside_the_interval_the_gradient_is_the_advantage():
    found, gradient = surrogate([1.0, 1.1], [2.0, -1.0])
    assert found.loss.item() == pytest.approx(-(2.0 - 1.1) / 2)
    assert gradient == pytest.approx([-1.0, 0.55])  # -ratio * A / n


def test_outside_only_what_would_go_further_is_clipped():
    # A > 0 and ratio too high: clipped, no gradient. A < 0 and ratio too high: it must come back.
    found, gradient = surrogate([1.5, 1.5], [1.0, -1.0])
    assert found.loss.item() == pytest.approx(-(1.2 - 1.5) / 2)
    assert gradient == pytest.approx([0.0, 0.75])
    assert found.clip_fraction.item() == 1.0


def test_below_the_interval():
    # A < 0 and ratio too low: clipped. A > 0 and ratio too low: it must come back.
    found, gradient = surrogate([0.5, 0.5], [-1.0, 1.0])
    assert found.loss.item() == pytest.approx(-(-0.8 + 0.5) / 2)
    assert gradient == pytest.approx([0.0, -0.25])


def test_the_kl_estimate_is_zero_for_no_change_and_positive_otherwise():
    assert surrogate([1.0], [1.0])[0].kl.item() == 0.0
    # (r - 1) - log r for r = 2 and 1/2: 1 - 0.6931, -0.5 + 0.6931.
    assert surrogate([2.0, 0.5], [0.0, 0.0])[0].kl.item() == pytest.approx(0.25, abs=1e-4)


def test_value_loss_is_half_the_mean_squared_error():
    assert value_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])).item() == 1.25


def test_imitation_loss_is_the_negative_log_likelihood():
    assert imitation_loss(torch.tensor([-1.0, -3.0])).item() == 2.0
