"""Repaired item lists are valid, valid ones are left alone, and what was said stays."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages.corruptions_responses import RESPONSES
from messages.message_lists import Message, Messages
from messages.responses_cases import SAID, call, output, thought, user
from messages.responses_lists import responses_lists
from messages.test_repair_lists import is_encodable
from messages.test_responses_rules import CORRUPTIONS, ITEMS

from contextpilot.errors import MessageFormatError
from contextpilot.messages.repair import Repaired, repair
from contextpilot.messages.responses_items import CALLS, OUTPUTS, item_type
from contextpilot.messages.validate import problems

GO, NEXT = user("go"), user("and?")
CLICK: Message = {"type": "computer_call", "call_id": "s", "id": "cu_1", "action": {}}
SHOT: Message = {"type": "computer_call_output", "call_id": "s", "output": {}}


def checked(items: Messages) -> Repaired:
    """Repairs a list, and checks what holds of every repair."""
    before = copy.deepcopy(items)
    repaired = repair("responses", items)
    assert items == before
    assert problems("responses", repaired.messages) == ()
    assert is_encodable(repaired.messages)
    assert [r.index for r in repaired.repairs] == sorted(r.index for r in repaired.repairs)
    assert all(0 <= r.index < max(1, len(items)) for r in repaired.repairs)
    was_valid = not problems("responses", items) and is_encodable(items)
    assert bool(repaired.repairs) != was_valid
    if was_valid:
        assert all(a is b for a, b in zip(repaired.messages, items, strict=True))
    own = {id(item) for item in items}
    for index in repaired.synthetic:
        assert id(repaired.messages[index]) not in own
        assert "ContextPilot" in json.dumps(repaired.messages[index])
    again = repair("responses", repaired.messages)
    assert (again.repairs, again.synthetic) == ((), frozenset())
    assert all(a is b for a, b in zip(again.messages, repaired.messages, strict=True))
    return repaired


def rules(repaired: Repaired) -> list[tuple[int, str]]:
    return [(done.index, done.rule) for done in repaired.repairs]


@given(st.data())
def test_valid_lists_stay_as_they_are(data: st.DataObject) -> None:
    items = data.draw(responses_lists())
    assert problems("responses", items) == ()
    checked(items)


@settings(max_examples=300)
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_corruptions_on_corruptions(data: st.DataObject, random: Random) -> None:
    items = copy.deepcopy(data.draw(responses_lists(data.draw(st.booleans()))))
    for corruption in data.draw(st.lists(st.sampled_from(RESPONSES), max_size=5)):
        corruption.corrupt(items, random)
    repaired = checked(items)
    if is_encodable(items) and not any(p.rule == "not_json" for p in problems("responses", items)):
        check_nothing_else_is_lost(items, repaired)


def check_nothing_else_is_lost(items: Messages, repaired: Repaired) -> None:
    """What users and turns said and called is there in order, and no result is made up."""
    doubled = {done.index for done in repaired.repairs if done.rule.startswith("duplicate")}
    left_out = [item for i, item in enumerate(items) if i in doubled]
    out = [item for i, item in enumerate(repaired.messages) if i not in repaired.synthetic]
    for kinds in (("message",), CALLS):
        said = [told(item) for item in items if item_type(item) in kinds and told(item)]
        sent = [told(item) for item in out if item_type(item) in kinds]
        assert all(text in sent for text in said)
        assert len(said) - len(sent) <= len(left_out)
    came = [told(item) for item in items if item_type(item) in OUTPUTS]
    assert all(told(item) in came for item in out if item_type(item) in OUTPUTS)


def told(item: Message) -> Any:
    """Returns what a message says, a result holds or a call is named; empty where it is nothing."""
    if item_type(item) in OUTPUTS:
        value = item["output"]
        typed = isinstance(value, list) and all(isinstance(part, dict) for part in value)
        return (value or "") if typed or not value or isinstance(value, str) else json.dumps(value)
    if item_type(item) in CALLS:
        name = item.get("name")
        return name if isinstance(name, str) else str(name or "unknown_tool")
    content = item.get("content")
    if isinstance(content, list):
        return [part for part in content if "text" not in part or part["text"]]
    return content


@pytest.mark.parametrize("row", CORRUPTIONS, ids=lambda row: row[0])
def test_what_the_validator_finds_is_repaired_or_refused(row: Any) -> None:
    name, corrupt, index, rule = row
    items = copy.deepcopy(ITEMS)
    corrupt(items)
    if rule in ("role", "shape") and name != "summary dropped":
        with pytest.raises(MessageFormatError, match=rf"messages\[{index}\]"):
            repair("responses", items)
    else:
        assert checked(items).repairs


def test_a_late_result_is_moved_beside_its_call() -> None:
    late = output("b")
    items = [GO, thought(), call("a"), call("b"), output("a"), NEXT, late]
    repaired = checked(items)
    assert repaired.messages == [*items[:5], late, NEXT]
    assert repaired.messages[5] is late
    assert rules(repaired) == [(6, "late_result")]


@pytest.mark.parametrize(("behind", "said"), [(2, "still pending"), (3, "ever came")])
def test_a_pending_call_is_waited_for_and_then_given_up(behind: int, said: str) -> None:
    replies: Messages = [thought("rs_9"), {"role": "assistant", "content": "hm"}, NEXT]
    replies = [{**item, "id": f"i{n}"} for n in range(behind) for item in replies]
    for n, item in enumerate(replies):
        item["id"] = f"i{n}"
    repaired = repair("responses", [GO, call("a"), NEXT, *replies], pending_wait=3)
    assert repaired.messages[2]["call_id"] == "a"
    assert said in repaired.messages[2]["output"]
    assert repaired.synthetic == {2}
    assert rules(repaired) == [(1, "dangling_call")]


def test_calls_at_the_end_are_pending() -> None:
    checked([GO, thought(), call("a"), call("b"), output("b")])


def test_reused_ids_are_matched_by_position() -> None:
    first, second = output("a", "1"), output("a", "2")
    repaired = checked([GO, call("a"), NEXT, first, call("a"), NEXT, second])
    assert repaired.messages == [GO, call("a"), first, NEXT, call("a"), second, NEXT]


def test_what_a_host_recorded_twice_is_there_once() -> None:
    items = [GO, call("a"), output("a"), call("a"), output("a"), output("a"), NEXT]
    repaired = checked(items)
    assert repaired.messages == [*items[:3], NEXT]
    assert rules(repaired) == [
        (3, "duplicate_exchange"),
        (4, "duplicate_exchange"),
        (5, "duplicate_result"),
    ]
    twice = [thought(), call("a", id="fc_1"), output("a")]
    repaired = checked([GO, *twice, *twice, SAID, SAID])
    assert repaired.messages == [GO, *twice, SAID]
    assert {rule for _, rule in rules(repaired)} == {"duplicate_item", "duplicate_result"}


def test_another_item_with_a_known_id_is_sent_without_it() -> None:
    other = {**SAID, "content": [{"type": "output_text", "text": "More.", "annotations": []}]}
    repaired = checked([GO, SAID, NEXT, other])
    assert repaired.messages[3] == {key: value for key, value in other.items() if key != "id"}
    reference = {"type": "item_reference", "id": "msg_1"}
    assert checked([GO, reference, SAID]).messages == [GO, SAID]


def test_duplicate_ids_of_a_turn_get_a_suffix_with_their_results() -> None:
    items = [GO, call("a"), call("a", '{"p": 1}'), output("a", "1"), output("a", "2"), NEXT]
    sent = checked(items).messages
    assert [item["call_id"] for item in sent[1:5]] == ["a", "a_2", "a", "a_2"]
    assert [item["output"] for item in sent[3:5]] == ["1", "2"]


def test_reasoning_leaves_with_what_it_led_to() -> None:
    repaired = checked([GO, thought(), CLICK, NEXT, thought("rs_2"), SAID])
    assert repaired.messages == [GO, NEXT, thought("rs_2"), SAID]
    assert rules(repaired) == [(1, "reasoning_only"), (2, "dangling_call")]
    silent = {"role": "assistant", "content": ""}
    items = [GO, thought(), silent, call("a"), output("a"), thought("rs_2")]
    assert checked(items).messages == [GO, call("a"), output("a")]
    assert checked([GO, thought(), CLICK]).repairs == ()
    assert checked([GO, thought(), CLICK, NEXT, SHOT]).messages == [
        GO,
        thought(),
        CLICK,
        SHOT,
        NEXT,
    ]


@pytest.mark.parametrize(
    ("kind", "answer", "key"),
    [
        ("local_shell_call", "local_shell_call_output", "id"),
        ("shell_call", "shell_call_output", "call_id"),
        ("apply_patch_call", "apply_patch_call_output", "call_id"),
        ("custom_tool_call", "custom_tool_call_output", "call_id"),
    ],
)
def test_calls_of_other_kinds_get_results_of_theirs(kind: str, answer: str, key: str) -> None:
    dangling = {"type": kind, "call_id": "a", "name": "f", "input": "x"}
    repaired = checked([GO, dangling, NEXT])
    assert repaired.messages[2]["type"] == answer
    assert repaired.messages[2][key] == "a"
    assert repaired.synthetic == {2}


def test_ids_are_settled_by_position() -> None:
    nameless: Message = {"type": "function_call", "name": "f", "arguments": "{}"}
    result: Message = {"type": "function_call_output", "output": "r"}
    sent = checked([GO, nameless, {**call("b"), "call_id": 7}, output("7"), result]).messages
    made = sent[1]["call_id"]
    assert [item["call_id"] for item in sent[1:]] == [made, "7", "7", made]
    sent = checked([GO, nameless, output("a")]).messages
    assert sent[1]["call_id"] == "a"
    assert checked([GO, result, NEXT]).messages == [GO, NEXT]


def test_what_stands_elsewhere_stays() -> None:
    """Answers of calls that are only referred to, approvals that come late, provider's searches."""
    reference = {"type": "item_reference", "id": "fc_1"}
    asked = {"type": "mcp_approval_request", "id": "m", "name": "f", "arguments": "{}"}
    response = {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}
    searched = {"type": "tool_search_call", "call_id": None, "arguments": {}}
    found = {"type": "tool_search_output", "call_id": None, "tools": []}
    for items in (
        [GO, reference, output("a"), output("b"), NEXT],
        [GO, asked, NEXT, response],
        [GO, searched, found, NEXT],
        [GO, {"type": "mcp_call", "id": "x", "arguments": "no JSON"}, NEXT],
    ):
        assert checked(items).repairs == ()


def test_nothing_may_be_left() -> None:
    nothing = checked([])
    assert [item["role"] for item in nothing.messages] == ["user"]
    assert checked([user(""), thought()]).messages == nothing.messages


@pytest.mark.parametrize("value", ["text", {"role": "user"}, None])
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(MessageFormatError, match="must be a list"):
        repair("responses", value)
