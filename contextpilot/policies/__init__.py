"""Policies: rules, the reuse predictor, trained networks, and what keeps any in the window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextpilot.policies.base import Policy

__all__ = ["load"]


def load(path: Path | str, *, name: str = "pointer") -> Policy:
    """Returns a trained policy, which decides greedily.

    The one door to what needs PyTorch: it is imported here, and not with the package.

    Args:
        path: a checkpoint's folder.
        name: what tables call it.

    Raises:
        ConfigurationError: when the checkpoint cannot be read.
    """
    from contextpilot.policies.checkpoint import load_network
    from contextpilot.policies.pointer.policy import PointerPolicy

    return PointerPolicy(load_network(path), name)
