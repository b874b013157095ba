"""Advantages as pure functions of numbers: no networks, no environments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def request_gae(
    rewards: Floats,
    values: Floats,
    final_value: float,
    ends_request: NDArray[np.bool_],
    lambda_: float,
    within: float = 1.0,
) -> Floats:
    """Returns generalised advantage estimates of one episode, (L,). Discount 1.

    The exponential average of Schulman et al. (2016, "High-dimensional continuous control using
    generalized advantage estimation", equation 16), with a lambda that depends on the step:

        A_t = r_t + V_{t+1} - V_t + lambda_t A_{t+1},   lambda_t = lambda where step t sends its
                                                        request, `within` within one

    With `within` 1 edits of one request are not discounted against each other for the order they
    came in. Where the reward pays each edit at once what it is expected to bring (the potential
    terms), that only adds the noise of the request's other edits, and a small number learns faster.

    Args:
        rewards: (L,).
        values: V_t, (L,).
        final_value: V_L: 0 where the task ended, an estimate where a time limit cut it off.
        ends_request: (L,), True for the last step of each request.
        lambda_: across requests.
        within: within a request.
    """
    advantages = np.zeros(len(rewards))
    following = np.append(values[1:], final_value)
    deltas = (rewards + following - values).tolist()
    weights = np.where(ends_request, lambda_, within).tolist()
    advantage = 0.0
    for t in range(len(deltas) - 1, -1, -1):
        advantage = deltas[t] + weights[t] * advantage
        advantages[t] = advantage
    return advantages


def returns_to_go(rewards: Floats, final_value: float = 0.0) -> Floats:
    """Returns the undiscounted sum from each step on, (L,)."""
    return np.asarray(np.cumsum(rewards[::-1])[::-1] + final_value)


def leave_one_out(totals: Floats) -> Floats:
    """Returns each member's number minus the mean of the other members', along axis 0.

    The baseline of REINFORCE leave-one-out (Kool et al., 2019, "Buy 4 REINFORCE samples, get a
    baseline for free!"): independent of the member's own actions, hence without bias. The result
    sums to 0 over the group.

    Args:
        totals: (G, ...), G >= 2.
    """
    others = (totals.sum(axis=0, keepdims=True) - totals) / (len(totals) - 1)
    return np.asarray(totals - others)


def explained_variance(values: Floats, targets: Floats) -> float:
    """Returns 1 - Var(targets - values) / Var(targets); NaN where targets do not vary."""
    variance = float(np.var(targets))
    return float("nan") if variance == 0.0 else 1.0 - float(np.var(targets - values)) / variance
