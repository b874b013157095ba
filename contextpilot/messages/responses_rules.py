"""What the responses endpoint refuses.

| rule | broken when |
|---|---|
| shape | an entry is no item, or lacks what its type cannot be without |
| role | a message has a role that the format does not have |
| empty_content | a message says nothing at all, or an output is missing |
| reasoning_only | what reasoning led to does not follow it |
| arguments | call arguments are not JSON text, or a custom call's input is no text |
| duplicate_item | two items have the same id |
| duplicate_call | two calls of one turn share an id |
| unanswered_call | a call has no output behind it, and more than outputs follows its turn |
| orphan_output | an output answers no call before it |
| duplicate_output | a second answer to one call |
| server_pair | a computer's or a shell's call, or what answers it, is alone |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.messages.problem import Problem, shape_problem
from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    CALLS,
    OUTPUTS,
    answer_key,
    answers,
    call_key,
    is_turn_item,
    item_type,
)

_ROLES = ("system", "developer", "user", "assistant")
_MAY_WAIT = ("mcp_approval_request", "tool_search_call")
"""Calls that the conversation may pass over, or that the provider answers itself."""

_WITHOUT_ID = ("tool_search_call", "tool_search_output")
"""What has no id of a call where the provider itself searched."""


def responses_problems(items: Sequence[Any]) -> list[Problem]:
    """Returns the problems of an item list, grouped by rule."""
    found = [p for i, item in enumerate(items) if (p := _shape_problem(i, item)) is not None]
    if found:
        return found
    for index, item in enumerate(items):
        found += _content_problems(index, item)
    return [
        *found,
        *_reasoning_problems(items),
        *_duplicate_items(items),
        *_duplicate_calls(items),
        *_pairing_problems(items),
    ]


def _shape_problem(index: int, item: Any) -> Problem | None:
    """Returns the problem of an entry that cannot be read at all, or None."""
    if not isinstance(item, Mapping):
        return Problem(index, "shape", f"an item must be a dict, not {type(item).__name__}")
    kind = item_type(item)
    if not kind:
        return Problem(index, "shape", "an item without a type")
    if kind == "message":
        return shape_problem(index, item, _ROLES)
    if kind == "reasoning" and not isinstance(item.get("summary"), list | tuple):
        return Problem(index, "shape", "reasoning without the list of its summary")
    if kind in CALLS and not isinstance(item.get("name"), str):
        return Problem(index, "shape", f"a {kind} without a name")
    if kind in ANSWERED or kind in ANSWERS:
        key = call_key(item) if kind in ANSWERED else answer_key(item)
        if not isinstance(key, str) and not (key is None and kind in _WITHOUT_ID):
            return Problem(index, "shape", f"a {kind} without the id of its call")
    return _output_problem(index, item.get("output")) if kind in OUTPUTS else None


def _output_problem(index: int, output: Any) -> Problem | None:
    if output is None or isinstance(output, str):
        return None
    listed = isinstance(output, list | tuple)
    if listed and all(isinstance(b, Mapping) and isinstance(b.get("type"), str) for b in output):
        return None
    return Problem(index, "shape", "an output is neither a string nor a list of typed parts")


def _content_problems(index: int, item: Mapping[str, Any]) -> Iterator[Problem]:
    kind = item_type(item)
    if kind == "message":
        role, content = item["role"], item.get("content")
        blank = content == "" and role in ("user", "assistant")
        if role == "assistant" and isinstance(content, list | tuple):
            blank = all(map(_is_empty, content))
        if content is None or content == [] or blank:
            yield Problem(index, "empty_content", f"a {role} message without content")
    elif kind in OUTPUTS and item.get("output") is None:
        yield Problem(index, "empty_content", f"no output for {item['call_id']!r}")
    elif kind == "function_call" and not _is_json(item.get("arguments")):
        text = f"the arguments of {item['call_id']!r} are not JSON text"
        yield Problem(index, "arguments", text)
    elif kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        yield Problem(index, "arguments", f"the input of {item['call_id']!r} is not text")


def _is_empty(block: Mapping[str, Any]) -> bool:
    """True for a block that says nothing by itself."""
    return block["type"] in ("output_text", "input_text") and not block.get("text")


def _is_json(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _reasoning_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yields reasoning behind which its turn ends."""
    follows = False
    for index in reversed(range(len(items))):
        if item_type(items[index]) != "reasoning":
            follows = is_turn_item(items[index])
        elif not follows:
            yield Problem(index, "reasoning_only", "reasoning without the item that it led to")


def _duplicate_items(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        item_id = item.get("id")
        if not isinstance(item_id, str):
            continue
        if item_id in seen:
            yield Problem(index, "duplicate_item", f"another item has the id {item_id!r}")
        seen.add(item_id)


def _duplicate_calls(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    called: set[Any] = set()
    for index, item in enumerate(items):
        if not is_turn_item(item):
            called = set()
        elif item_type(item) in CALLS or item_type(item) in ANSWERED:
            key = call_key(item)
            if key in called:
                yield Problem(index, "duplicate_call", f"two calls have the id {key!r}")
            if key is not None:
                called.add(key)


def _pairing_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yields problems of calls and answers: an answer stands anywhere behind its call."""
    waiting: dict[Any, list[int]] = {}
    answered: set[Any] = set()
    refers = False
    for index, item in enumerate(items):
        kind = item_type(item)
        refers = refers or kind == "item_reference"
        if kind in ANSWERED and isinstance(call_key(item), str):
            waiting.setdefault(call_key(item), []).append(index)
        key = answer_key(item)
        if kind not in ANSWERS or key is None:
            continue
        calls = waiting.get(key, [])
        if matching := [call for call in calls if answers(item, items[call])]:
            calls.remove(matching[-1])
            answered.add(key)
        elif key in answered:
            yield Problem(index, "duplicate_output", f"{key!r} was answered before")
        elif not refers:  # the call may be among what is only referred to
            rule = "orphan_output" if kind in OUTPUTS else "server_pair"
            yield Problem(index, rule, f"no call before it has the id {key!r}")
    last_turn = _last_turn(items)
    for call in (call for calls in waiting.values() for call in calls if call < last_turn):
        kind, key = item_type(items[call]), call_key(items[call])
        if kind not in _MAY_WAIT:
            rule = "unanswered_call" if kind in CALLS else "server_pair"
            yield Problem(call, rule, f"no output follows for {key!r}")


def _last_turn(items: Sequence[Mapping[str, Any]]) -> int:
    """Returns where the turn begins whose calls may be pending: only outputs follow it."""
    start = len(items)
    while start > 0 and item_type(items[start - 1]) in ANSWERS:
        start -= 1
    while start > 0 and is_turn_item(items[start - 1]):
        start -= 1
    return start
