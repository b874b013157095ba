"""A short conversation of Responses items, and the items that tests put into others."""

from __future__ import annotations

import json
from typing import Any

from messages.conversations import LONG
from messages.message_lists import Message, Messages
from messages.responses_lists import IMAGE


def call(call_id: str, arguments: str = "{}", **fields: Any) -> Message:
    item = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": arguments}
    return {**item, **fields}


def output(call_id: str, value: Any = "r") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def thought(item_id: str = "rs_1") -> Message:
    return {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "gAAAA"}


SAID: Message = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    "phase": "final_answer",
}
ITEMS: Messages = [
    {"role": "developer", "content": "rule"},
    user("Write notes."),
    thought(),
    {"role": "assistant", "content": "Writing."},
    call("c1", json.dumps({"path": "a.md", "text": LONG}), id="fc_1", status="completed"),
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": LONG},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": [{**IMAGE}]},
    {**output("c1", "written\n" * 9), "id": "fco_1"},
    thought("rs_2"),
    SAID,
    user("Next."),
]
"""Segments s1, s2, s3 (the turn), s4, s5 (its outputs), s6 (the answer), s7."""
