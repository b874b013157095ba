"""What a policy is: a callable from an observation to an action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from contextpilot.observations.observation import Observation


class Policy(Protocol):
    """Decides one edit step. Rules, checkpoints and remote services are interchangeable."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def reset(self, seed: int) -> None:
        """Begins an episode; whatever is random in it depends on `seed` alone."""
        ...

    def __call__(self, observation: Observation) -> int:
        """Returns an action that `observation.arrays["action_mask"]` allows."""
        ...


@runtime_checkable
class Planner(Policy, Protocol):
    """A policy that often knows its next actions too, so that it need not be asked for each."""

    def plan(self, observation: Observation) -> Sequence[int]:
        """Returns the actions that it would take one after another, where each does what it says.

        The first is what it returns when it is called, and there is at least one. Each is one that
        the mask of this observation allows, and that the actions before it leave allowed.
        """
        ...


def plan_of(policy: Policy, observation: Observation) -> Sequence[int]:
    """Returns a policy's next actions: one where it does not plan."""
    return policy.plan(observation) if isinstance(policy, Planner) else (policy(observation),)
