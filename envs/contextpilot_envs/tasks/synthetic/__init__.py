"""Generated tasks in English and Chinese, with every key fact marked."""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.config import FAMILIES, LANGUAGES, SyntheticConfig
from contextpilot_envs.tasks.synthetic.source import SyntheticSource

__all__ = ["FAMILIES", "LANGUAGES", "SyntheticConfig", "SyntheticSource"]
