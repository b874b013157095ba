"""What the messages endpoint refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contextpilot.messages.checks import foreign_part
from contextpilot.messages.problem import Problem, repeated, shape_problem

_ROLES = ("user", "assistant")
_THINKING = ("thinking", "redacted_thinking")
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def anthropic_problems(messages: Sequence[Any]) -> list[Problem]:
    """Returns the problems of a message list, grouped by rule."""
    found = [p for i, m in enumerate(messages) if (p := shape_problem(i, m, _ROLES)) is not None]
    if found:
        return found
    if messages and messages[0]["role"] != "user":
        found.append(Problem(0, "first_user", "the first message is not the user's"))
    for index, message in enumerate(messages):
        found += _content_problems(index, message)
        if message["role"] == "assistant":
            found += _turn_problems(index, message)
            found += _server_problems(index, message, is_last=index == len(messages) - 1)
    return found + list(_pairing_problems(messages))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []


def _content_problems(index: int, message: dict[str, Any]) -> Iterator[Problem]:
    blocks = _blocks(message)
    if foreign_part(message, "anthropic") is not None:
        yield Problem(index, "foreign", "calls of OpenAI messages")
    if not blocks:
        yield Problem(index, "empty_content", "a message without content")
    for block in blocks:
        if block["type"] == "text" and not str(block.get("text") or "").strip():
            yield Problem(index, "empty_text", "a blank text block")
        elif block["type"] == "compaction" and block.get("content") == "":
            yield Problem(index, "empty_text", "a blank compaction block")
        elif block["type"] == "tool_result" and block.get("content", "") is None:
            yield Problem(index, "empty_content", "a result whose content is null")


def _turn_problems(index: int, message: dict[str, Any]) -> Iterator[Problem]:
    blocks = _blocks(message)
    if blocks and all(block["type"] in _THINKING for block in blocks):
        yield Problem(index, "reasoning_only", "an assistant message with thinking alone")
    for block in blocks:
        if block["type"] == "thinking" and block.get("signature") and not block.get("thinking"):
            yield Problem(index, "blank_thinking", "signed thinking without its text")
        if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
            text = f"the input of {block.get('id')!r} is not an object"
            yield Problem(index, "arguments", text)
    for call_id in repeated(_ids(message, "tool_use", "id")):
        yield Problem(index, "duplicate_call", f"two calls have the id {call_id!r}")


def _ids(message: dict[str, Any], kind: str, key: str) -> list[Any]:
    return [block.get(key) for block in _blocks(message) if block["type"] == kind]


def _server_problems(index: int, message: dict[str, Any], is_last: bool) -> Iterator[Problem]:
    """Yields server-side calls and results that are alone in their turn.

    A call that ends the list is a turn that the server paused; it goes on when sent back.
    """
    blocks = _blocks(message)
    calls = [b.get("id") for b in blocks if b["type"] in _SERVER_CALLS]
    results = [b.get("tool_use_id") for b in blocks if b["type"].endswith("_tool_result")]
    paused = (
        blocks[-1].get("id") if is_last and blocks and blocks[-1]["type"] in _SERVER_CALLS else None
    )
    for call_id in calls:
        if call_id not in results and (call_id is None or call_id != paused):
            yield Problem(index, "server_pair", f"server-side call {call_id!r} has no result")
    for call_id in results:
        if call_id not in calls:
            yield Problem(index, "server_pair", f"server-side result {call_id!r} has no call")


def _pairing_problems(messages: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """Yields problems of calls and results: results stand in the message right after the turn."""
    called: list[Any] = []
    for index, message in enumerate(messages):
        answers = _ids(message, "tool_result", "tool_use_id") if message["role"] == "user" else []
        if missing := [call_id for call_id in called if call_id not in answers]:
            yield Problem(index - 1, "dangling_call", f"no result follows for {missing}")
        for call_id in dict.fromkeys(answers):
            if call_id not in called:
                text = f"no call before it has the id {call_id!r}"
                yield Problem(index, "orphan_result", text)
        for call_id in repeated(answers):
            yield Problem(index, "duplicate_result", f"{call_id!r} is answered twice")
        kinds = [block["type"] == "tool_result" for block in _blocks(message)] if answers else []
        if kinds != sorted(kinds, reverse=True):
            yield Problem(index, "result_order", "a result stands behind other blocks")
        called = _ids(message, "tool_use", "id") if message["role"] == "assistant" else []
