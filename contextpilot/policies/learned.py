"""Trained policies by path: light to import, to pickle and to send to worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contextpilot.core.edit import Op
from contextpilot.policies.base import Policy
from contextpilot.policies.guard import FitGuard
from contextpilot.policies.scripted import Masked


@dataclass(frozen=True)
class PointerSpec:
    """A checkpoint by path; survives pickling, and makes a policy when called.

    Attributes:
        path: the checkpoint's folder. A process reads it once, and again when it has changed.
        name: what tables call it.
        guarded: whether it is kept inside the window as the rules are.
        masked: an operation that it plays without, to ask what that is worth; None: none.
    """

    path: Path
    name: str = "pointer"
    guarded: bool = False
    masked: Op | None = None

    def __call__(self, _engine: object = None, _row: int = 0) -> Policy:
        """Makes the policy.

        Raises:
            ConfigurationError: when the checkpoint cannot be read.
        """
        from contextpilot.policies.checkpoint import shared_network
        from contextpilot.policies.pointer.policy import PointerPolicy

        policy: Policy = PointerPolicy(shared_network(self.path), self.name)
        if self.guarded:
            policy = FitGuard(policy)
        return policy if self.masked is None else Masked(policy, self.masked)
