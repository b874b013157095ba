"""What keeps any rule inside the window: the same care for every baseline."""

from __future__ import annotations

from collections.abc import Sequence

from contextpilot.core.edit import Op
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy, plan_of
from contextpilot.policies.rules import MAX_STEPS, first

RESERVED_STEPS = 6
"""Of the edit steps of a request that does not fit, these belong to the guard."""


class FitGuard:
    """Lets a policy decide, but never sends a request that does not fit while it can be helped.

    Where the policy would keep although the request is over the limit, or has used up its steps,
    the oldest results are folded, and then the oldest exchanges dropped, until the request fits.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name = policy.name

    def reset(self, seed: int) -> None:
        """Begins an episode of the policy."""
        self._policy.reset(seed)

    def __call__(self, observation: Observation) -> int:
        """Returns the policy's action, or what makes the request fit."""
        steps = round(observation.state("step") * MAX_STEPS)
        overflows = observation.state("overflow") > 0
        if overflows and steps >= MAX_STEPS - RESERVED_STEPS:
            return self._shrink(observation)
        action = self._policy(observation)
        return self._shrink(observation) if action == 0 and overflows else action

    def plan(self, observation: Observation) -> Sequence[int]:
        """Returns the policy's actions, as far as the guard need not look at each."""
        if observation.state("overflow") > 0:
            return (self(observation),)
        return plan_of(self._policy, observation)

    def _shrink(self, observation: Observation) -> int:
        old = observation.feature("sent") > 0
        for op, preset in ((Op.FOLD, "stub"), (Op.DROP, "this")):
            allowed = observation.allowed(op, preset)
            for mask in (allowed & old, allowed):
                if mask.any():
                    return observation.action(op, preset, first(mask))
        return 0
