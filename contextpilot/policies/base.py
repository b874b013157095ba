"""What a policy is: a callable from an observation to an action."""

from __future__ import annotations

from typing import Protocol

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
