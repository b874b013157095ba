"""Message lists from Claude Code session files, as they were sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from messages.message_lists import Message, Messages


def claude_code_lists(path: Path) -> list[Messages]:
    """Returns one list per stretch between compactions.

    Lines that share a message id are one assistant message, and what the user side said before
    the next assistant message is one user message, results first.
    """
    episodes: list[Messages] = [[]]
    turn_id = ""
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry.get("subtype") == "compact_boundary":
            episodes.append([])
            turn_id = ""
        if entry["type"] not in ("user", "assistant"):
            continue
        message, messages = entry["message"], episodes[-1]
        if entry["type"] == "assistant" and message["id"] == turn_id:
            turn = messages[-1] if messages[-1]["role"] == "assistant" else messages[-2]
            turn["content"] += message["content"]
        elif messages and messages[-1]["role"] == message["role"] == "user":
            messages[-1]["content"] = merged(messages[-1]["content"], message["content"])
        else:
            messages.append({"role": message["role"], "content": message["content"]})
        turn_id = message["id"] if entry["type"] == "assistant" else turn_id
    return [messages for messages in episodes if messages]


def merged(first: Any, second: Any) -> list[Message]:
    blocks = [block for content in (first, second) for block in as_blocks(content)]
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def as_blocks(content: Any) -> list[Message]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
