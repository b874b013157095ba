"""Credit: what each edit step is paid. The same policy and the same compute for each estimator.

    terminal    the episode's return, to every step: the common practice, and the baseline
    step        the step's own reward, and what follows it
    hindsight   the return as played minus the return without this edit, all others fixed

Each estimator is two functions: one for PPO, which has a value function as its baseline, one for
GRPO, whose baseline is the group. Estimators that fork the environment will stand beside these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError
from contextpilot.training.advantages import leave_one_out, request_gae, returns_to_go
from contextpilot.training.rollout import Trajectories

Floats = NDArray[np.float64]


# ---- PPO: (advantages, value targets), both (N,) -------------------------------------------------


def step_with_values(played: Trajectories, gae_lambda: float) -> tuple[Floats, Floats]:
    """Generalised advantage estimation by request; targets are TD(lambda) returns."""
    values, ends = played.values.astype(np.float64), played.ends_request
    advantages = np.concatenate(
        [
            request_gae(played.rewards[s], values[s], float(final), ends[s], gae_lambda)
            for s, final in zip(played.spans(), played.final_values, strict=True)
        ]
    )
    return advantages, advantages + values


def terminal_with_values(played: Trajectories, _gae_lambda: float) -> tuple[Floats, Floats]:
    """The whole return to every step, minus the value of the state, which learns the same."""
    targets = np.repeat(played.returns, np.diff(played.starts))
    return targets - played.values, targets


def hindsight_with_values(played: Trajectories, _gae_lambda: float) -> tuple[Floats, Floats]:
    """`J(z) - J(z without this edit) - V(s)`; the value learns what edits in a state bring."""
    targets = _hindsight(played)
    return targets - played.values, targets


# ---- GRPO: advantages (N,) -----------------------------------------------------------------------


def step_in_group(played: Trajectories) -> Floats:
    """Return to go minus the others' mean return to go at the same request.

    The stream aligns a group: request t brings the same to each member. What has ended counts 0.
    Rewards that were paid earlier in the same request are not a later step's doing, so they are
    taken off; the first steps of a request sum to 0 over the group.
    """
    advantages = np.zeros(len(played))
    for members in groups(played):
        table, firsts = _by_request(played, members, _to_go(played))
        relative = leave_one_out(table)
        for k, span in enumerate(members):
            earlier = np.cumsum(played.rewards[span]) - played.rewards[span]
            within = earlier - earlier[firsts[k]]
            advantages[span] = relative[k, played.requests[span]] - within
    return advantages


def terminal_in_group(played: Trajectories) -> Floats:
    """The whole return to every step, minus the others' mean return."""
    advantages, returns = np.zeros(len(played)), played.returns
    of_span = {span.start: k for k, span in enumerate(played.spans())}
    for members in groups(played):
        relative = leave_one_out(np.array([returns[of_span[s.start]] for s in members]))
        for span, advantage in zip(members, relative.tolist(), strict=True):
            advantages[span] = advantage
    return advantages


def hindsight_in_group(played: Trajectories) -> Floats:
    """What the edit brought, minus what an edit step of the others brought at that request.

    Per request the members' means sum to 0 over the group.
    """
    advantages, worth = np.zeros(len(played)), _hindsight(played)
    for members in groups(played):
        sums, _ = _by_request(played, members, worth, total=True)
        counts, _ = _by_request(played, members, np.ones(len(played)), total=True)
        means = sums / np.maximum(counts, 1.0)
        baseline = means - leave_one_out(means)
        for k, span in enumerate(members):
            advantages[span] = worth[span] - baseline[k, played.requests[span]]
    return advantages


VALUE_CREDITS: Mapping[str, Callable[[Trajectories, float], tuple[Floats, Floats]]] = (
    MappingProxyType(
        {
            "terminal": terminal_with_values,
            "step": step_with_values,
            "hindsight": hindsight_with_values,
        }
    )
)
GROUP_CREDITS: Mapping[str, Callable[[Trajectories], Floats]] = MappingProxyType(
    {"terminal": terminal_in_group, "step": step_in_group, "hindsight": hindsight_in_group}
)


# ---- shared --------------------------------------------------------------------------------------


def groups(played: Trajectories) -> list[list[slice]]:
    """Returns the spans of the episodes of each group, in order."""
    found: dict[int, list[slice]] = {}
    for span, assignment in zip(played.spans(), played.assignments, strict=True):
        found.setdefault(assignment.group, []).append(span)
    return list(found.values())


def deviation_scaled(played: Trajectories, advantages: Floats) -> Floats:
    """Divides each group's advantages by their standard deviation (Shao et al., 2024, GRPO).

    Known to drive success to zero where rewards are dense; there for comparison.
    """
    scaled = advantages.copy()
    for members in groups(played):
        deviation = float(np.std(np.concatenate([advantages[s] for s in members])))
        for span in members:
            scaled[span] /= deviation + 1e-6
    return scaled


def _to_go(played: Trajectories) -> Floats:
    return np.concatenate(
        [
            returns_to_go(played.rewards[s], float(final))
            for s, final in zip(played.spans(), played.final_values, strict=True)
        ]
    )


def _by_request(
    played: Trajectories, members: list[slice], numbers: Floats, *, total: bool = False
) -> tuple[Floats, list[NDArray[np.int64]]]:
    """Returns a table (G, R) of a number per member and request, 0 where a member has ended.

    The number at a request's first step, or with `total` the sum over its steps; and per member
    for each step the position of its request's first one.
    """
    horizon = 1 + max(int(played.requests[s].max()) for s in members)
    table, firsts = np.zeros((len(members), horizon)), []
    for k, span in enumerate(members):
        requests = played.requests[span]
        _, first, inverse = np.unique(requests, return_index=True, return_inverse=True)
        if total:
            np.add.at(table[k], requests, numbers[span])
        else:
            table[k, requests[first]] = numbers[span][first]
        firsts.append(first[inverse])
    return table, firsts


def _hindsight(played: Trajectories) -> Floats:
    if played.hindsight is None:
        raise ConfigurationError(
            "credit `hindsight` needs an environment that re-bills episodes. Received one that "
            "does not. Make it with hindsight=True."
        )
    return played.hindsight
