"""Recorded sessions in miniature, in the formats that agents write."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("CONTEXTPILOT_DATA", "/nonexistent"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="CONTEXTPILOT_DATA is not set")


def write_lines(path: Path, entries: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def claude_user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **fields}


def claude_turn(message_id: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 40,
        "output_tokens": len(blocks),
    }
    message = {"id": message_id, "role": "assistant", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "uuid": "a", "message": message, **fields}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": call_id}}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"result {call_id}"}


CLAUDE = [
    {"type": "summary", "summary": "an older session", "leafUuid": "x"},
    claude_user("[a reminder of the program]", isMeta=True),
    claude_user("Fix the build"),
    claude_turn("m1", text("Looking.")),
    claude_turn("m1", use("c1")),
    claude_user([result("c1")]),
    claude_turn("m1", use("c2")),
    {"type": "progress", "uuid": "p", "data": {}},
    claude_user("also check the tests"),
    claude_user([result("c2")]),
    claude_turn("side", text("a sub-agent"), isSidechain=True),
    claude_turn("m2", text("Done.")),
]
COMPACTED = [
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "compactMetadata": {"preTokens": 9},
    },
    claude_user("Summary of before", isCompactSummary=True),
    claude_turn("m3", text("Going on.")),
]
TAU_MESSAGES = [
    {"role": "system", "content": "policy"},
    {"role": "user", "content": "change my seat"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "seat 14C"},
    {"role": "assistant", "content": "It is 14C."},
]
