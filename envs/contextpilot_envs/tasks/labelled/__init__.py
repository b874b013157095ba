"""Data sets that come with their own ground truth, as task sources."""

from __future__ import annotations

from contextpilot_envs.tasks.labelled.ci_logs import CiLogSource
from contextpilot_envs.tasks.labelled.locomo import LocomoSource
from contextpilot_envs.tasks.labelled.multihop import MultihopSource

__all__ = ["CiLogSource", "LocomoSource", "MultihopSource"]
