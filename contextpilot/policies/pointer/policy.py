"""A trained pointer network as a policy: greedy, one observation at a time."""

from __future__ import annotations

import torch

from contextpilot.observations.observation import Observation
from contextpilot.policies.pointer.network import PointerNetwork


class PointerPolicy:
    """Decodes the likeliest operation first, then its likeliest preset and slot."""

    def __init__(self, network: PointerNetwork, name: str = "pointer") -> None:
        self.network, self.name = network, name

    def reset(self, seed: int) -> None:
        """Does nothing: nothing in it is random."""

    def __call__(self, observation: Observation) -> int:
        """Returns an action of the observation's own layout."""
        with torch.inference_mode():
            # Copied: arrays may be read-only, which PyTorch's views cannot be.
            arrays = {
                name: torch.tensor(observation.arrays[name])[None] for name in self.network.inputs
            }
            return int(self.network(arrays).distribution.mode())
