"""Repairs single Responses items, as far as that does not depend on which results answer calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from contextpilot.messages.repair_ids import UNNAMED, settled_ids, text_of
from contextpilot.messages.repair_reading import json_text
from contextpilot.messages.repair_record import Repair
from contextpilot.messages.repair_repeats import Exchange, repetitions
from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    CALLS,
    OUTPUTS,
    answer_key,
    blocks,
    call_key,
    is_turn_item,
    item_type,
)
from contextpilot.messages.responses_rules import has_content, has_id, is_silent

Item: TypeAlias = Mapping[str, Any]
Items: TypeAlias = dict[int, Item]
"""Items that stay, by their index in the given list."""

STAND_INS: Mapping[str, Callable[[str, str], dict[str, Any]]] = MappingProxyType(
    {
        "function_call": lambda call_id, text: {
            "type": "function_call_output", "call_id": call_id, "output": text,
        },
        "custom_tool_call": lambda call_id, text: {
            "type": "custom_tool_call_output", "call_id": call_id, "output": text,
        },
        "local_shell_call": lambda call_id, text: {
            "type": "local_shell_call_output", "id": call_id, "output": json.dumps(text),
        },
        "shell_call": lambda call_id, text: {
            "type": "shell_call_output", "call_id": call_id,
            "output": [{"stdout": "", "stderr": text, "outcome": {"type": "timeout"}}],
        },
        "apply_patch_call": lambda call_id, text: {
            "type": "apply_patch_call_output", "call_id": call_id, "status": "failed",
            "output": text,
        },
    }
)  # fmt: skip
"""What is made in place of a result, given the id of the call and a text: no screenshot is."""


def cleaned(given: Sequence[Item], repairs: list[Repair]) -> Items:
    """Returns the items that say something, with arguments and outputs that can be sent."""
    kept = _without_known_ids(dict(enumerate(given)), repairs)
    silent = {i for i, item in kept.items() if item_type(item) == "message" and is_silent(item)}
    for index in silent:
        repairs.append(Repair(index, "empty_content", "left out: a message without content"))
    kept = {i: _sendable(item, i, repairs) for i, item in without(kept, silent, repairs).items()}
    kept = _with_ids(kept, repairs)
    gone = repetitions(_exchanges(kept), repairs)
    kept = {index: item for index, item in kept.items() if index not in gone}
    return without_reasoning_alone(kept, repairs)


def without(kept: Items, gone: set[int], repairs: list[Repair]) -> Items:
    """Returns the items without some, and without the reasoning that led to these."""
    left: Items = {}
    led_to_gone = False
    for index, item in reversed(kept.items()):
        if index in gone:
            led_to_gone = True
        elif led_to_gone and item_type(item) == "reasoning":
            text = "left out: reasoning that led to what was left out"
            repairs.append(Repair(index, "reasoning_only", text))
        else:
            led_to_gone = False
            left[index] = item
    return dict(reversed(left.items()))


def without_reasoning_alone(kept: Items, repairs: list[Repair]) -> Items:
    """Returns the items without reasoning behind which its turn ends.

    Answers do not end it yet: they may move.
    """
    left: Items = {}
    follows = False
    for index, item in reversed(kept.items()):
        if item_type(item) == "reasoning" and not follows:
            repairs.append(Repair(index, "reasoning_only", "left out: reasoning alone"))
            continue
        left[index] = item
        if item_type(item) not in ANSWERS:
            follows = is_turn_item(item)
    return dict(reversed(left.items()))


def with_key(item: Item, key: str) -> Item:
    """Returns a call or an answer with the id that joins them; the same where it has it."""
    kind = item_type(item)
    if (call_key(item) if kind in ANSWERED else answer_key(item)) == key:
        return item
    name = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}
    return {**item, name.get(kind, "call_id"): key}


def _without_known_ids(kept: Items, repairs: list[Repair]) -> Items:
    """Returns the items without those whose id another has; what they say otherwise stays."""
    first: dict[str, int] = {}
    for index, item in list(kept.items()):
        item_id = item.get("id")
        if not isinstance(item_id, str) or (before := first.setdefault(item_id, index)) == index:
            continue
        has_more = item != kept[before] and item_type(item) in ("message", *CALLS, *OUTPUTS)
        what = "another item has its id"
        if item_type(kept[before]) == "item_reference":
            repairs.append(Repair(before, "duplicate_item", "left out: what it refers to is there"))
            del kept[before]
            first[item_id] = index
        elif has_more:
            kept[index] = {key: value for key, value in item.items() if key != "id"}
            repairs.append(Repair(index, "duplicate_item", f"sent without its id: {what}"))
        else:
            del kept[index]
            repairs.append(Repair(index, "duplicate_item", f"left out: {what}"))
    return kept


def _sendable(item: Item, index: int, repairs: list[Repair]) -> Item:
    """Returns an item whose arguments, name and output are of the types that they must have."""
    kind, changes = item_type(item), dict[str, Any]()
    if kind in CALLS and not (isinstance(item.get("name"), str) and item["name"]):
        changes["name"] = text_of(item.get("name")) or UNNAMED
        repairs.append(Repair(index, "call_name", f"the call's name became {changes['name']!r}"))
    if kind == "reasoning" and not isinstance(item.get("summary"), list | tuple):
        changes["summary"] = []
        repairs.append(Repair(index, "shape", "reasoning got an empty summary"))
    passed = item.get(CALLS.get(kind, ""))
    if kind == "function_call" and (text := json_text(passed)) is not passed:
        changes["arguments"] = text
    if kind == "custom_tool_call" and not isinstance(passed, str):
        changes["input"] = "" if passed is None else json.dumps(passed, ensure_ascii=False)
    if changes.keys() & {"arguments", "input"}:
        text = f"what {item.get('call_id')!r} passes on became text"
        repairs.append(Repair(index, "arguments", text))
    if kind in OUTPUTS and item.get("output") is None:
        changes["output"] = ""
        repairs.append(Repair(index, "empty_content", "a missing result became empty text"))
    elif not has_content(item):
        changes["output"] = json.dumps(item["output"], ensure_ascii=False)
        repairs.append(Repair(index, "result_content", "a result became JSON text"))
    return {**item, **changes} if changes else item


def _with_ids(kept: Items, repairs: list[Repair]) -> Items:
    """Returns the items with ids that join calls and what answers them."""
    if all(map(has_id, kept.values())):
        return kept
    block_of = blocks(kept.items())
    joined = [i for i, item in kept.items() if item_type(item) in (*ANSWERED, *ANSWERS)]
    for block in dict.fromkeys(block_of[index] for index in joined):
        own = [index for index in joined if block_of[index] == block]
        calls = [index for index in own if item_type(kept[index]) in ANSWERED]
        results = [index for index in own if item_type(kept[index]) in ANSWERS]
        ids = settled_ids(
            [call_key(kept[i]) for i in calls], [answer_key(kept[i]) for i in results],
            f"call_{block}",
        )  # fmt: skip
        for index, key in zip([*calls, *results], [*ids[0], *ids[1]], strict=True):
            if not has_id(kept[index]):
                kept[index] = with_key(kept[index], key)
                repairs.append(Repair(index, "call_id", f"the id of a call became {key!r}"))
    return kept


def _exchanges(kept: Items) -> list[Exchange]:
    """Returns the turns with calls and the answers right behind them."""
    places = dict[int, list[int]]()
    for index, block in blocks(kept.items()).items():
        places.setdefault(block, []).append(index)
    out: list[Exchange] = []
    for own in (own for block, own in places.items() if block >= 0):
        turn = [kept[i] for i in own if is_turn_item(kept[i])]
        results = [(i, kept[i]) for i in own if not is_turn_item(kept[i])]
        if any(item_type(item) in CALLS for item in turn):
            out.append(Exchange(own[0], own[-1] + 1, turn, results))
    return out
