"""What the responses endpoint refuses.

| rule | broken when |
|---|---|
| not_json | an item holds what JSON does not have |
| shape | an entry is no item, or lacks what its type cannot be without |
| role | a message has a role that the format does not have |
| call_id | a call, or what answers one, has no id that is text |
| call_name | a call has no name that is text |
| result_content | an output is neither text nor typed parts |
| empty_content | a message says nothing at all, or an output is missing |
| reasoning_only | what reasoning led to does not follow it |
| arguments | call arguments are not JSON text, or a custom call's input is no text |
| duplicate_item | two items have the same id |
| duplicate_call | two calls of one turn share an id |
| dangling_call | a call has no answer behind it, and more than answers follows its turn |
| late_result | something stands between a turn and what answers its calls |
| orphan_result | what answers a call has none before it |
| duplicate_result | a second answer to one call |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.messages.problem import Problem, is_json, shape_problem, unreadable_problems
from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    CALLS,
    MAY_WAIT,
    OUTPUTS,
    ROLES,
    answer_key,
    answers,
    blocks,
    call_key,
    is_turn_item,
    item_type,
)

_WITHOUT_ID = ("tool_search_call", "tool_search_output")
"""What has no id of a call where the provider itself searched."""


def responses_problems(items: Sequence[Any]) -> list[Problem]:
    """Returns the problems of an item list, grouped by rule."""
    found = unreadable_problems(items, _shape_problem)
    if found:
        return found
    for index, item in enumerate(items):
        found += [*_name_problems(index, item), *_content_problems(index, item)]
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
        return shape_problem(index, item, ROLES)
    if kind == "reasoning" and not isinstance(item.get("summary"), list | tuple):
        return Problem(index, "shape", "reasoning without the list of its summary")
    return None


def has_id(item: Mapping[str, Any]) -> bool:
    """False for a call, or what answers one, without the id that joins them."""
    kind = item_type(item)
    if kind not in ANSWERED and kind not in ANSWERS:
        return True
    key = call_key(item) if kind in ANSWERED else answer_key(item)
    return bool(key and isinstance(key, str)) or (key is None and kind in _WITHOUT_ID)


def has_content(item: Mapping[str, Any]) -> bool:
    """False for an output that is neither missing, nor text, nor a list of typed parts."""
    output = item.get("output")
    if item_type(item) not in OUTPUTS or output is None or isinstance(output, str):
        return True
    return isinstance(output, list | tuple) and all(
        isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in output
    )


def _name_problems(index: int, item: Mapping[str, Any]) -> Iterator[Problem]:
    kind, name = item_type(item), item.get("name")
    if not has_id(item):
        yield Problem(index, "call_id", f"a {kind} without the id of its call")
    if kind in CALLS and not (name and isinstance(name, str)):
        yield Problem(index, "call_name", f"a {kind} without a name")


def _content_problems(index: int, item: Mapping[str, Any]) -> Iterator[Problem]:
    kind = item_type(item)
    if kind == "message" and is_silent(item):
        yield Problem(index, "empty_content", f"a {item['role']} message without content")
    elif kind in OUTPUTS and item.get("output") is None:
        yield Problem(index, "empty_content", f"no output for {item.get('call_id')!r}")
    elif not has_content(item):
        text = f"the output for {item.get('call_id')!r} is neither text nor typed parts"
        yield Problem(index, "result_content", text)
    elif kind == "function_call" and not is_json(item.get("arguments")):
        text = f"the arguments of {item.get('call_id')!r} are not JSON text"
        yield Problem(index, "arguments", text)
    elif kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        yield Problem(index, "arguments", f"the input of {item.get('call_id')!r} is not text")


def is_silent(message: Mapping[str, Any]) -> bool:
    """True for a message that says nothing at all."""
    role, content = message["role"], message.get("content")
    if role == "assistant" and isinstance(content, list | tuple):
        return all(map(_is_empty, content))
    return content in (None, [], ()) or (content == "" and role in ("user", "assistant"))


def _is_empty(block: Mapping[str, Any]) -> bool:
    """True for a block that says nothing by itself."""
    return block["type"] in ("output_text", "input_text") and not block.get("text")


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
    called: set[str] = set()
    for index, item in enumerate(items):
        if not is_turn_item(item):
            called = set()
        elif item_type(item) in ANSWERED and isinstance(key := call_key(item), str):
            if key in called:
                yield Problem(index, "duplicate_call", f"two calls have the id {key!r}")
            called.add(key)


def _pairing_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yields problems of calls and answers: an answer stands right behind the turn that called."""
    block_of = blocks(enumerate(items))
    waiting: dict[str, list[int]] = {}
    answered: set[str] = set()
    refers = False
    for index, item in enumerate(items):
        kind = item_type(item)
        refers = refers or kind == "item_reference"
        if kind in ANSWERED and isinstance(key := call_key(item), str):
            waiting.setdefault(key, []).append(index)
        if kind not in ANSWERS or not isinstance(key := answer_key(item), str):
            continue
        calls = waiting.get(key, [])
        if matching := [call for call in calls if answers(item, items[call])]:
            calls.remove(matching[-1])
            answered.add(key)
            is_late = block_of[matching[-1]] != block_of[index]
            if is_late and item_type(items[matching[-1]]) not in MAY_WAIT:
                yield Problem(index, "late_result", f"{key!r} is not answered behind its turn")
        elif key in answered:
            yield Problem(index, "duplicate_result", f"{key!r} was answered before")
        elif not refers:  # the call may be among what is only referred to
            yield Problem(index, "orphan_result", f"no call before it has the id {key!r}")
    last = max(block_of, default=-1)
    for call in (call for calls in waiting.values() for call in calls):
        if block_of[call] != block_of[last] and item_type(items[call]) not in MAY_WAIT:
            text = f"no output follows for {call_key(items[call])!r}"
            yield Problem(call, "dangling_call", text)
