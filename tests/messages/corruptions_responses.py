"""Corruptions of lists of Responses items."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from messages.corruption_parts import LONE, Corruption
from messages.message_lists import Message, Messages

from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    CALLS,
    MAY_WAIT,
    OUTPUTS,
    answers,
    blocks,
    call_key,
    is_turn_item,
    item_type,
)

Change = Callable[[Messages, int, Random], int | None]


def at_items(name: str, rule: str, kinds: Any, change: Change) -> Corruption:
    """Changes one item of some kinds, given its index."""

    def corrupt(items: Messages, random: Random) -> int | None:
        places = [i for i, item in enumerate(items) if item_type(item) in kinds]
        return change(items, random.choice(places), random) if places else None

    return Corruption(name, rule, corrupt)


def fields(name: str, rule: str, kinds: Any, /, **values: object) -> Corruption:
    """Sets fields of an item."""

    def change(items: Messages, index: int, random: Random) -> int:
        items[index].update(copy.deepcopy(values))
        return index

    return at_items(name, rule, kinds, change)


def lacks(name: str, rule: str, kinds: Any, key: str) -> Corruption:
    """Removes a field of an item."""

    def change(items: Messages, index: int, random: Random) -> int:
        items[index].pop(key, None)
        return index

    return at_items(name, rule, kinds, change)


def added(name: str, rule: str, item: Message) -> Corruption:
    """Puts an item where it stands inside no turn and before no answers."""

    def corrupt(items: Messages, random: Random) -> int | None:
        if rule == "orphan_result" and refers(items):
            return None
        gaps = [i for i in range(1, len(items)) if not is_inner(items[i])]
        at = random.choice([*gaps, len(items)])
        items.insert(at, copy.deepcopy(item))
        return at

    return Corruption(name, rule, corrupt)


def refers(items: Messages) -> bool:
    """True where a call may be among what is only referred to."""
    return any(item_type(item) == "item_reference" for item in items)


def is_inner(item: Message) -> bool:
    return is_turn_item(item) or item_type(item) in ANSWERS


def answered(name: str, rule: str, change: Callable[[Messages, int, int], int]) -> Corruption:
    """Changes a call and its one result, given the indices of both; other than a turn follows."""

    def corrupt(items: Messages, random: Random) -> int | None:
        block_of = blocks(enumerate(items))
        places = []
        for call, item in enumerate(items):
            if item_type(item) not in ANSWERED or item_type(item) in MAY_WAIT:
                continue
            own = [i for i, other in enumerate(items) if answers(other, item)]
            same = [other for other in items if is_call(other, call_key(item))]
            end = max(i for i, block in block_of.items() if block == block_of[call])
            goes_on = end + 1 < len(items) and not is_turn_item(items[end + 1])
            if len(own) == len(same) == 1 and block_of[own[0]] == block_of[call] and goes_on:
                places.append((call, own[0]))
        if not places or refers(items):
            return None
        return change(items, *random.choice(places))

    return Corruption(name, rule, corrupt)


def is_call(item: Message, key: object) -> bool:
    return item_type(item) in ANSWERED and call_key(item) == key


def result_removed(items: Messages, call: int, result: int) -> int:
    del items[result]
    return call


def call_removed(items: Messages, call: int, result: int) -> int:
    items[call] = {"role": "assistant", "content": "no call"}
    return result


def result_late(items: Messages, call: int, result: int) -> int:
    items.append(items.pop(result))
    if item_type(items[-2]) in ANSWERS or is_turn_item(items[-2]):
        items.insert(-1, {"role": "user", "content": "still there?"})
    return len(items) - 1


def result_first(items: Messages, call: int, result: int) -> int:
    items.insert(0, items.pop(result))
    return 0


def message_between(items: Messages, call: int, result: int) -> int:
    items.insert(result, {"role": "user", "content": "aside"})
    return result + 1


def result_twice(items: Messages, call: int, result: int) -> int:
    again = {key: value for key, value in items[result].items() if key != "id"}
    items.insert(result + 1, {**again, "call_id": call_key(items[call])})
    return result + 1


def result_renamed(items: Messages, call: int, result: int) -> int:
    key = "id" if items[result].get("call_id") is None else "call_id"
    items[result][key] = "nobody"
    return result


def exchange_twice(items: Messages, call: int, result: int) -> int:
    """As a host that records what it has recorded, and the result once more."""
    block_of = blocks(enumerate(items))
    own = [i for i, block in block_of.items() if block == block_of[call]]
    again = [copy.deepcopy(items[i]) for i in own]
    for item in again:
        item.pop("id", None)
    first = {key: value for key, value in items[result].items() if key != "id"}
    items[own[-1] + 1 : own[-1] + 1] = [*again, {**first, "call_id": call_key(items[call])}]
    return own[-1] + len(own) + 1


def id_twice(items: Messages, index: int, random: Random) -> int:
    again = {key: value for key, value in items[index].items() if key != "id"}
    items.insert(index + 1, {**again, "name": "g"})
    return index + 1


def item_twice(items: Messages, index: int, random: Random) -> int | None:
    if "id" not in items[index]:
        return None
    items.append(copy.deepcopy(items[index]))
    return len(items) - 1


def led_to_removed(items: Messages, index: int, random: Random) -> int | None:
    behind = index
    while behind < len(items) and is_turn_item(items[behind]):
        behind += 1
    del items[index + 1 : behind]
    return index


def goes_on(items: Messages, random: Random) -> int:
    call = {"type": "function_call", "call_id": "late_1", "name": "f", "arguments": "{}"}
    items += [call, {"role": "user", "content": "Are you there?"}]
    return len(items) - 2


def lone_surrogate(items: Messages, random: Random) -> int:
    messages = [i for i, item in enumerate(items) if item_type(item) == "message"]
    index = random.choice(messages)
    items[index]["content"] = LONE
    return index


FUNCTION = ("function_call",)
EMPTY: Message = {"role": "assistant", "content": [{"type": "output_text", "text": ""}]}
THOUGHT: Message = {"type": "reasoning", "id": "rs_alone", "summary": []}
RESPONSES = [
    answered("result removed", "dangling_call", result_removed),
    answered("call removed", "orphan_result", call_removed),
    answered("result at the end", "late_result", result_late),
    answered("result before its call", "orphan_result", result_first),
    answered("message between", "late_result", message_between),
    answered("result twice", "duplicate_result", result_twice),
    answered("result renamed", "orphan_result", result_renamed),
    answered("exchange twice", "duplicate_result", exchange_twice),
    at_items("id twice", "duplicate_call", FUNCTION, id_twice),
    at_items("item twice", "duplicate_item", (*CALLS, "reasoning", "message"), item_twice),
    at_items("what reasoning led to removed", "reasoning_only", ("reasoning",), led_to_removed),
    added("reasoning alone", "reasoning_only", THOUGHT),
    added("empty turn", "empty_content", EMPTY),
    added("empty user", "empty_content", {"role": "user", "content": ""}),
    added("null user", "empty_content", {"type": "message", "role": "user", "content": None}),
    added("orphan screenshot", "orphan_result",
          {"type": "computer_call_output", "call_id": "gone", "output": {"type": "x"}}),
    Corruption("host went on", "dangling_call", goes_on),
    fields("arguments cut", "arguments", FUNCTION, arguments='{"path": "a'),
    fields("arguments parsed", "arguments", FUNCTION, arguments={"path": "a", "n": [1]}),
    fields("arguments null", "arguments", FUNCTION, arguments=None),
    fields("input parsed", "arguments", ("custom_tool_call",), input={"patch": "a"}),
    fields("result null", "empty_content", OUTPUTS, output=None),
    fields("result parsed", "result_content", OUTPUTS, output={"rows": [1]}),
    fields("result of strings", "result_content", OUTPUTS, output=["a", "b"]),
    lacks("call without id", "call_id", FUNCTION, "call_id"),
    fields("call id a number", "call_id", FUNCTION, call_id=7),
    lacks("result without id", "call_id", OUTPUTS, "call_id"),
    lacks("call without name", "call_name", FUNCTION, "name"),
    fields("name a number", "call_name", FUNCTION, name=3),
    fields("arguments of bytes", "not_json", FUNCTION, arguments=b"{}"),
    fields("a set", "not_json", OUTPUTS, output={"a"}),
    Corruption("lone surrogate", "lone_surrogate", lone_surrogate),
]  # fmt: skip
