"""Named ways in which hosts break valid message lists."""

from __future__ import annotations

from messages.corruption_parts import LONE, Corruption
from messages.corruptions_anthropic import ANTHROPIC
from messages.corruptions_openai import OPENAI
from messages.corruptions_responses import RESPONSES

__all__ = ["CORRUPTIONS", "LONE", "Corruption"]

CORRUPTIONS = {"openai": OPENAI, "anthropic": ANTHROPIC, "responses": RESPONSES}
