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
from contextpilot.rewards.terms import TERMS
from contextpilot.training.advantages import leave_one_out, request_gae
from contextpilot.training.config import CreditConfig
from contextpilot.training.rollout import Trajectories

Floats = NDArray[np.float64]


# ---- PPO: (advantages, value targets), both (N,) -------------------------------------------------


def step_with_values(played: Trajectories, credit: CreditConfig) -> tuple[Floats, Floats]:
    """Generalised advantage estimation by request; targets are TD(lambda) returns.

    The targets never use a lambda within a request: a value that learnt of a request's price only
    edit by edit would flatter states many edits ahead of it, and the policy would never send.
    """
    values = played.values.astype(np.float64)
    targets = values + _estimated(played, values, credit.gae_lambda, 1.0)
    return _estimated(played, values, credit.gae_lambda, credit.within_lambda), targets


def terminal_with_values(played: Trajectories, _credit: CreditConfig) -> tuple[Floats, Floats]:
    """The whole return to every step, minus the value of the state, which learns the same."""
    targets = np.repeat(played.returns, np.diff(played.starts))
    return targets - played.values, targets


def hindsight_with_values(played: Trajectories, credit: CreditConfig) -> tuple[Floats, Floats]:
    """`J(z) - J(z without this edit) - V(s)`; the value learns what edits in a state bring."""
    targets = _hindsight(played, credit)
    return targets - played.values, targets


# ---- GRPO: advantages (N,) -----------------------------------------------------------------------


def step_in_group(played: Trajectories, credit: CreditConfig) -> Floats:
    """Return to go minus what the group's other members got from the same request on.

    The stream aligns a group: a request brings the same to each member, and what has ended counts
    0. A member's number at a request is the mean over its steps there, so that the means sum to 0
    over the group. Lambdas below 1 weigh what is far off less, as in PPO; the potential terms of
    the reward then stand for it.
    """
    return _against_others(
        played, _estimated(played, np.zeros(len(played)), credit.gae_lambda, credit.within_lambda)
    )


def terminal_in_group(played: Trajectories, _credit: CreditConfig) -> Floats:
    """The whole return to every step, minus the others' mean return."""
    advantages, returns = np.zeros(len(played)), played.returns
    of_span = {span.start: k for k, span in enumerate(played.spans())}
    for members in groups(played):
        relative = leave_one_out(np.array([returns[of_span[s.start]] for s in members]))
        for span, advantage in zip(members, relative.tolist(), strict=True):
            advantages[span] = advantage
    return advantages


def hindsight_in_group(played: Trajectories, credit: CreditConfig) -> Floats:
    """What the edit brought, minus what a step of the others brought at that request."""
    return _against_others(played, _hindsight(played, credit))


VALUE_CREDITS: Mapping[str, Callable[[Trajectories, CreditConfig], tuple[Floats, Floats]]] = (
    MappingProxyType(
        {
            "terminal": terminal_with_values,
            "step": step_with_values,
            "hindsight": hindsight_with_values,
        }
    )
)
GROUP_CREDITS: Mapping[str, Callable[[Trajectories, CreditConfig], Floats]] = MappingProxyType(
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


def _estimated(played: Trajectories, values: Floats, across: float, within: float) -> Floats:
    """Returns advantage estimates against these values, (N,)."""
    ends = played.ends_request
    return np.concatenate(
        [
            request_gae(
                played.rewards[s], values[s], float(final), ends[s], across, within
            )
            for s, final in zip(played.spans(), played.final_values, strict=True)
        ]
    )  # fmt: skip


def _against_others(played: Trajectories, numbers: Floats) -> Floats:
    """Returns each step's number minus the mean of the other members' at the same request."""
    advantages = np.zeros(len(played))
    for members in groups(played):
        means = _by_request(played, members, numbers)
        baseline = means - leave_one_out(means)
        for k, span in enumerate(members):
            advantages[span] = numbers[span] - baseline[k, played.requests[span]]
    return advantages


def _by_request(played: Trajectories, members: list[slice], numbers: Floats) -> Floats:
    """Returns the mean number per member and request, (G, R); 0 where a member has ended."""
    horizon = 1 + max(int(played.requests[s].max()) for s in members)
    sums, counts = np.zeros((2, len(members), horizon))
    for k, span in enumerate(members):
        np.add.at(sums[k], played.requests[span], numbers[span])
        np.add.at(counts[k], played.requests[span], 1.0)
    return np.asarray(sums / np.maximum(counts, 1.0))


def _hindsight(played: Trajectories, credit: CreditConfig) -> Floats:
    """Returns what each step's edit was worth; a refused request is charged to what sent it.

    Without an edit to take away a keep would be worth 0 whatever it sends, and where many edits
    make room together, none of them alone is worth anything: the policy would never edit.
    """
    if played.hindsight is None:
        raise ConfigurationError(
            "credit `hindsight` needs an environment that re-bills episodes. Received one that "
            "does not. Make it with hindsight=True."
        )
    worth = played.hindsight.copy()
    if played.terms.shape[1]:  # nobody but the step that sent a refused request can answer for it
        refused = played.terms[:, TERMS.index("budget")] < 0
        worth[refused] += played.rewards[refused]
    limit = np.inf if credit.worth_limit is None else credit.worth_limit
    return np.clip(worth, -limit, limit)
