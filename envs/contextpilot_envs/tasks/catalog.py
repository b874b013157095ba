"""Task sources by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from contextpilot.errors import ConfigurationError, UnknownTaskError, did_you_mean
from contextpilot_envs.tasks.base import Task, TaskSource

FAMILIES = ("docqa", "tools", "chat", "logs", "restock")
"""Generated task families."""

REPLAYS = ("sample", "claude_code", "codex", "copilot", "oh_my_pi", "tau_bench", "swe_agent")
"""Recorded runs; all but `sample` need the data folder."""

LABELLED = ("multihop", "ci_logs", "locomo")
"""Data sets with their own ground truth; need the data folder."""


def load_source(name: str) -> TaskSource:
    raise ConfigurationError(name)
