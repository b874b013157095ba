"""The rules of Responses lists find each named corruption where it is, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages.message_lists import Message, Messages
from messages.responses_lists import responses_lists

from contextpilot.errors import ConfigurationError
from contextpilot.messages import responses_rules
from contextpilot.messages.responses_items import OUTPUTS, is_turn_item
from contextpilot.messages.validate import problems


def call(call_id: str, **fields: Any) -> Message:
    item = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
    return {**item, **fields}


def output(call_id: str) -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": "r"}


def thought(number: int) -> Message:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


CLICK: Message = {"type": "computer_call", "call_id": "s", "id": "cu_1", "action": {}}
SHOT: Message = {"type": "computer_call_output", "call_id": "s", "output": {}}
SEARCH: Message = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
ASIDE: Message = {"role": "user", "content": "x"}
ITEMS: Messages = [
    {"role": "system", "content": "rule"},
    {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
    thought(2),
    call("a", id="fc_3"),
    {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "not JSON"},
    {"type": "custom_tool_call_output", "call_id": "b", "output": ""},
    output("a"),
    thought(7),
    {"type": "message", "role": "assistant", "content": "and"},
    call("a"),
    output("a"),
    CLICK,
    SHOT,
    thought(13),
    SEARCH,
    {"role": "assistant", "content": [{"type": "output_text", "text": "found"}]},
    {"role": "user", "content": "wait"},
    call("p"),
    call("q"),
    output("p"),
]

Corruption = tuple[str, Callable[[Messages], Any], int, str]


def put(index: int, key: str, value: Any) -> Callable[[Messages], Any]:
    return lambda m: m[index].__setitem__(key, value)


def replaced(index: int, item: Any) -> Callable[[Messages], Any]:
    return lambda m: m.__setitem__(index, item)


def without(*indexes: int) -> Callable[[Messages], Any]:
    def remove(items: Messages) -> None:
        for index in sorted(indexes, reverse=True):
            del items[index]

    return remove


CORRUPTIONS: list[Corruption] = [
    ("output first", lambda m: m.insert(2, output("a")), 2, "orphan_result"),
    ("call removed", without(3), 5, "orphan_result"),
    ("custom call removed", without(4), 4, "orphan_result"),
    ("id renamed", put(6, "call_id", "z"), 6, "orphan_result"),
    ("id renamed, call", put(6, "call_id", "z"), 3, "dangling_call"),
    ("kind of output changed", put(5, "type", "function_call_output"), 5, "orphan_result"),
    ("kind of output changed, call", put(5, "type", "function_call_output"), 4, "dangling_call"),
    ("turn removed", without(7, 8, 9), 7, "duplicate_result"),
    ("output twice", lambda m: m.insert(11, output("a")), 11, "duplicate_result"),
    ("screenshot twice", lambda m: m.insert(13, SHOT), 13, "duplicate_result"),
    ("output removed", without(6), 3, "dangling_call"),
    ("custom output removed", without(5), 4, "dangling_call"),
    ("pending not last", lambda m: m.append(ASIDE), 18, "dangling_call"),
    ("turn behind pending", lambda m: m.append({**CLICK, "id": "x"}), 18, "dangling_call"),
    ("id twice", lambda m: m.insert(4, call("a")), 4, "duplicate_call"),
    ("item twice", lambda m: m.append(thought(2)), 20, "duplicate_item"),
    ("item sent and referred to", lambda m: m.insert(4, {"id": "fc_3"}), 4, "duplicate_item"),
    ("calls of reasoning removed", without(3, 4), 2, "reasoning_only"),
    ("user behind reasoning", lambda m: m.insert(3, ASIDE), 2, "reasoning_only"),
    ("output behind reasoning", lambda m: m.insert(10, thought(9)), 10, "reasoning_only"),
    ("reasoning last", lambda m: m.append(thought(20)), 20, "reasoning_only"),
    ("arguments cut", put(9, "arguments", '{"a'), 9, "arguments"),
    ("arguments parsed", put(9, "arguments", {}), 9, "arguments"),
    ("arguments missing", lambda m: m[9].pop("arguments"), 9, "arguments"),
    ("input parsed", put(4, "input", {}), 4, "arguments"),
    ("screenshot removed", without(12), 11, "dangling_call"),
    ("click removed", without(11), 11, "orphan_result"),
    ("click renamed", put(11, "call_id", "z"), 12, "orphan_result"),
    ("output behind a message", lambda m: m.insert(6, ASIDE), 7, "late_result"),
    ("empty turn", put(8, "content", ""), 8, "empty_content"),
    ("empty parts", put(15, "content", [{"type": "output_text", "text": ""}]), 15, "empty_content"),
    ("no parts", put(1, "content", []), 1, "empty_content"),
    ("empty user", put(16, "content", ""), 16, "empty_content"),
    ("null user", put(16, "content", None), 16, "empty_content"),
    ("null output", put(10, "output", None), 10, "empty_content"),
    ("unknown role", put(16, "role", "tool"), 16, "role"),
    ("role null", put(16, "role", None), 16, "role"),
    ("not a dict", replaced(16, "x"), 16, "shape"),
    ("no type", replaced(16, {"content": "x"}), 16, "shape"),
    ("type a number", put(16, "type", 3), 16, "shape"),
    ("content a number", put(16, "content", 3), 16, "shape"),
    ("content of strings", put(16, "content", ["x"]), 16, "shape"),
    ("call without name", lambda m: m[9].pop("name"), 9, "call_name"),
    ("call without id", lambda m: m[9].pop("call_id"), 9, "call_id"),
    ("output without id", lambda m: m[10].pop("call_id"), 10, "call_id"),
    ("click without id", put(11, "call_id", ["s"]), 11, "call_id"),
    ("output a dict", put(10, "output", {"text": "r"}), 10, "result_content"),
    ("bytes", put(10, "output", b"r"), 10, "not_json"),
    ("summary dropped", lambda m: m[2].pop("summary"), 2, "shape"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "corrupt", "index", "rule"),
    CORRUPTIONS,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_corruptions(name: str, corrupt: Callable[[Messages], Any], index: int, rule: str) -> None:
    assert problems("responses", ITEMS) == ()
    items = copy.deepcopy(ITEMS)
    corrupt(items)
    found = [(problem.index, problem.rule) for problem in problems("responses", items)]
    assert (index, rule) in found
    assert found == sorted(found, key=lambda place: place[0])


def test_every_rule_has_a_corruption() -> None:
    lines = str(responses_rules.__doc__).splitlines()
    rules = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert {rule for _, _, _, rule in CORRUPTIONS} == set(rules[1:])


@given(st.data(), responses_lists())
def test_a_lost_item_is_found_in_any_list(data: st.DataObject, items: Messages) -> None:
    places = [i for i, item in enumerate(items) if item.get("type") in (*OUTPUTS, "reasoning")]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    kind = items[at]["type"]
    if kind == "reasoning":
        behind = at
        while behind < len(items) and is_turn_item(items[behind]):
            behind += 1
        del items[at + 1 : behind]
        assert (at, "reasoning_only") in places_of(items)
    else:
        items.insert(0, items.pop(at))
        assert (0, "orphan_result") in places_of(items)


def places_of(items: Messages) -> list[tuple[int, str]]:
    return [(problem.index, problem.rule) for problem in problems("responses", items)]


def test_some_calls_may_wait() -> None:
    assert places_of([call("a"), ASIDE, output("a")]) == [(2, "late_result")]
    asked = {"type": "mcp_approval_request", "id": "m", "name": "f", "arguments": "{}"}
    assert problems("responses", [asked, ASIDE]) == ()
    response = {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}
    assert problems("responses", [asked, ASIDE, response]) == ()
    assert places_of([ASIDE, response]) == [(1, "orphan_result")]
    searched = {"type": "tool_search_call", "call_id": None, "arguments": {}}
    found = {"type": "tool_search_output", "call_id": None, "tools": []}
    assert problems("responses", [searched, found, ASIDE]) == ()


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'responses'"):
        problems("response", ITEMS)
