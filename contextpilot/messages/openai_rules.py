"""What a chat completions endpoint refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from contextpilot.messages.checks import foreign_part
from contextpilot.messages.openai_wire import REASONING_KEYS
from contextpilot.messages.problem import Problem, repeated, shape_problem

_ROLES = ("system", "developer", "user", "assistant", "tool")
_SPEECH = ("refusal", "audio", "function_call")
"""Fields that make an assistant message say something without content or calls."""


def openai_problems(messages: Sequence[Any]) -> list[Problem]:
    """Returns the problems of a chat message list, grouped by rule."""
    found = [p for i, m in enumerate(messages) if (p := shape_problem(i, m, _ROLES)) is not None]
    if found:
        return found
    began = False
    for index, message in enumerate(messages):
        role = message["role"]
        if role in ("system", "developer"):
            if began:
                found.append(Problem(index, "late_system", f"{role} message after others"))
        else:
            began = True
        found += _content_problems(index, message)
        if role == "assistant":
            found += _call_problems(index, message)
    return found + list(_pairing_problems(messages))


def _content_problems(index: int, message: dict[str, Any]) -> Iterator[Problem]:
    role, content = message["role"], message.get("content")
    if foreign_part(message, "openai") is not None:
        yield Problem(index, "foreign", "a block of Anthropic messages")
    if role == "assistant":
        if message.get("tool_calls") or any(message.get(key) for key in _SPEECH):
            return
        if content and not (isinstance(content, list) and all(map(_is_empty, content))):
            return
        if any(message.get(key) for key in REASONING_KEYS) or (
            isinstance(content, list) and any(block["type"] in _THINKING for block in content)
        ):
            yield Problem(index, "reasoning_only", "an assistant message with reasoning alone")
        else:
            yield Problem(index, "empty_content", "an assistant message without content or calls")
    elif content is None or content == [] or (content == "" and role == "user"):
        yield Problem(index, "empty_content", f"a {role} message without content")


_THINKING = ("thinking", "reasoning")


def _is_empty(block: dict[str, Any]) -> bool:
    """True for a block that says nothing by itself."""
    return block["type"] in _THINKING or (block["type"] == "text" and not block.get("text"))


def _calls(message: dict[str, Any]) -> list[Any]:
    """Returns the calls of an assistant message that can be read."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    return [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []


def _call_problems(index: int, message: dict[str, Any]) -> Iterator[Problem]:
    if message.get("tool_calls") == []:
        yield Problem(index, "empty_calls", "'tool_calls' is an empty list")
    calls = _calls(message)
    for call_id in repeated(call.get("id") for call in calls):
        yield Problem(index, "duplicate_call", f"two calls have the id {call_id!r}")
    for call in calls:
        function = call.get("function")
        if call.get("type") == "custom" and function is None:
            continue
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if not _is_json(arguments):
            text = f"the arguments of {call.get('id')!r} are not JSON text"
            yield Problem(index, "arguments", text)


def _is_json(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _pairing_problems(messages: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """Yields problems of calls and results: results follow right behind the turn that called."""
    turn, called, answered = -1, list[Any](), list[Any]()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in called:
                yield Problem(index, "orphan_result", f"no call before it has the id {call_id!r}")
            elif call_id in answered:
                yield Problem(index, "duplicate_result", f"{call_id!r} was answered before")
            answered.append(call_id)
            continue
        if missing := [call_id for call_id in called if call_id not in answered]:
            yield Problem(turn, "dangling_call", f"no result follows for {missing}")
        turn, called, answered = index, [call.get("id") for call in _calls(message)], []
