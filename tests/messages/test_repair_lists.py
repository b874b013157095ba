"""Repair on generated lists: whatever broke them, what was said stays, and nothing is made up."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages.corruption_parts import calls_of, results, typed
from messages.corruptions import CORRUPTIONS
from messages.message_lists import Message, Messages, anthropic_lists, openai_lists
from messages.test_validate import (
    ANTHROPIC_CORRUPTIONS,
    BLOCKS,
    CHAT,
    OPENAI_CORRUPTIONS,
    answer,
    function_call,
    tool,
    use,
)

from contextpilot.errors import MessageFormatError
from contextpilot.messages.repair import Repaired, repair
from contextpilot.messages.validate import problems

VALID = {"openai": CHAT, "anthropic": BLOCKS}
LISTS = {"openai": openai_lists, "anthropic": anthropic_lists}
FORMATS = pytest.mark.parametrize("wire_format", ["openai", "anthropic"])


def is_encodable(messages: Messages) -> bool:
    try:
        json.dumps(messages, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def checked(wire_format: str, messages: Messages) -> Repaired:
    """Repairs a list, and checks what holds of every repair."""
    before = copy.deepcopy(messages)
    repaired = repair(wire_format, messages)
    assert messages == before
    assert problems(wire_format, repaired.messages) == ()
    assert is_encodable(repaired.messages)
    assert [r.index for r in repaired.repairs] == sorted(r.index for r in repaired.repairs)
    was_valid = not problems(wire_format, messages) and is_encodable(messages)
    assert bool(repaired.repairs) != was_valid
    own = {id(message) for message in messages}
    for index in repaired.synthetic:
        assert id(repaired.messages[index]) not in own
        assert "ContextPilot" in json.dumps(repaired.messages[index])
    again = repair(wire_format, repaired.messages)
    assert (again.repairs, again.synthetic) == ((), frozenset())
    assert all(a is b for a, b in zip(again.messages, repaired.messages, strict=True))
    return repaired


@pytest.mark.parametrize(
    ("wire_format", "row"),
    [("openai", row) for row in OPENAI_CORRUPTIONS]
    + [("anthropic", row) for row in ANTHROPIC_CORRUPTIONS],
    ids=lambda v: v if isinstance(v, str) else v[0],
)
def test_what_the_validator_finds_is_repaired_or_refused(wire_format: str, row: Any) -> None:
    _, corrupt, index, rule = row
    messages = copy.deepcopy(VALID[wire_format])
    corrupt(messages)
    if rule in ("role", "shape", "foreign"):
        with pytest.raises(MessageFormatError, match=rf"messages\[{index}\]"):
            repair(wire_format, messages)
    else:
        checked(wire_format, messages)


@FORMATS
@settings(max_examples=200)
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_corruptions_on_corruptions(wire_format: str, data: st.DataObject, random: Random) -> None:
    messages = copy.deepcopy(data.draw(LISTS[wire_format](data.draw(st.booleans()))))
    picks = st.lists(st.sampled_from(CORRUPTIONS[wire_format]), min_size=1, max_size=5)
    for corruption in data.draw(picks):
        was_valid = not problems(wire_format, messages)
        index = corruption.corrupt(messages, random)
        if index is not None and was_valid and corruption.rule != "lone_surrogate":
            found = problems(wire_format, messages)
            assert (index, corruption.rule) in [(p.index, p.rule) for p in found]
    repaired = checked(wire_format, messages)
    if is_encodable(messages):
        check_nothing_else_is_lost(messages, repaired)


def check_nothing_else_is_lost(messages: Messages, repaired: Repaired) -> None:
    """What users and turns said and called is there in order, and no result is made up."""
    out = [m for i, m in enumerate(repaired.messages) if i not in repaired.synthetic]
    for role in ("user", "assistant"):
        assert said(out, role) == said(messages, role)
    assert called(out) == called(messages)
    came = [content for message in messages for content in result_contents(message)]
    for content in (content for message in out for content in result_contents(message)):
        assert content in came or "ContextPilot" in content


def said(messages: Messages, role: str) -> list[str]:
    """Returns the texts that are not blank."""
    own = [message for message in messages if message["role"] == role]
    blocks = [block["text"] for message in own for block in typed(message, "text")]
    strings = [m["content"] for m in own if isinstance(m.get("content"), str)]
    return [text for text in [*strings, *blocks] if text.strip()]


def called(messages: Messages) -> list[list[str]]:
    """Returns the names of the calls of each turn that has some."""
    turns = [[call_name(call) for call in calls_of(message)] for message in messages]
    return [names for names in turns if names]


def call_name(call: Message) -> str:
    return str(call["name"] if call["type"] == "tool_use" else call[call["type"]]["name"])


def result_contents(message: Message) -> list[Any]:
    if message["role"] == "tool":
        return [message["content"] or ""]
    return [block.get("content") for block in results(message)]


@FORMATS
def test_a_late_result_takes_the_place_of_its_stand_in(wire_format: str) -> None:
    """So that the request before it stays a prefix up to there."""
    question: Message = {"role": "user", "content": "?"}
    ids = ("a", "b", "c")
    late: Message
    if wire_format == "openai":
        turn: Message = {"role": "assistant", "tool_calls": [function_call(i) for i in ids]}
        home, late = tool("c"), tool("b")
    else:
        turn = {"role": "assistant", "content": [use(i) for i in ids]}
        home, late = ({"role": "user", "content": [answer(i)]} for i in ("c", "b"))
    messages: Messages = [question, turn, home, question]
    before = checked(wire_format, messages)
    after = checked(wire_format, [*messages, late])
    assert [r.rule for r in before.repairs] == ["dangling_call"] * 2
    assert [r.rule for r in after.repairs] == ["dangling_call", "late_result"]
    flat_before, flat_after = blocks_of(before.messages), blocks_of(after.messages)
    changed = [
        i for i, pair in enumerate(zip(flat_before, flat_after, strict=True)) if pair[0] != pair[1]
    ]
    assert [flat_after[i] for i in changed] == blocks_of([late])


def blocks_of(messages: Messages) -> list[Any]:
    """Returns the blocks of all messages; a message without a list is one."""
    return [
        block
        for message in messages
        for block in (message["content"] if isinstance(message.get("content"), list) else [message])
    ]


def test_a_surplus_result_replaces_another_only_where_it_is_clear_which() -> None:
    turn: Message = {"role": "assistant", "tool_calls": [function_call("a")]}
    reply: Message = {"role": "assistant", "content": "so"}
    first, second, surplus = ({**tool("a"), "content": text} for text in "123")
    question: Message = {"role": "user", "content": "?"}
    repaired = checked("openai", [question, turn, first, reply, surplus, question])
    assert repaired.messages == [question, turn, surplus, reply, question]
    assert [(r.index, r.rule) for r in repaired.repairs] == [
        (2, "duplicate_result"),
        (4, "late_result"),
    ]
    messages = [question, turn, first, turn, second]
    repaired = checked("openai", [*messages, surplus])
    assert repaired.messages == [*messages[:-1], surplus]
    repaired = checked("openai", [*messages, reply, surplus])
    assert repaired.messages == [*messages, reply]
    assert [(r.index, r.rule) for r in repaired.repairs] == [(6, "duplicate_result")]


def test_a_missing_result_becomes_empty_text() -> None:
    messages = [CHAT[1], *CHAT[5:6], {"role": "tool", "tool_call_id": "a"}]
    repaired = checked("openai", messages)
    assert repaired.messages[-1] == {"role": "tool", "tool_call_id": "a", "content": ""}
    assert [(r.index, r.rule) for r in repaired.repairs] == [(2, "empty_content")]


def test_arguments_deep_enough_to_fail_are_kept_as_text() -> None:
    deep = "[" * 100_000
    turn: Message = {"role": "assistant", "tool_calls": [function_call("a")]}
    turn["tool_calls"][0]["function"]["arguments"] = deep
    sent = checked("openai", [CHAT[1], turn]).messages[1]["tool_calls"][0]["function"]
    assert json.loads(sent["arguments"]) == {"unparsed_arguments": deep}


@FORMATS
def test_nothing_may_be_left(wire_format: str) -> None:
    nothing = checked(wire_format, [])
    assert [message["role"] for message in nothing.messages] == ["user"]
    assert nothing.synthetic == {0}
    blank: Messages = [{"role": "user", "content": ""}, {"role": "assistant", "content": []}]
    assert checked(wire_format, blank).messages == nothing.messages


@pytest.mark.parametrize("calls", [{"a": 1}, ["x"], [{"type": "function"}], [{"id": "a"}]])
def test_calls_that_cannot_be_read_are_refused(calls: Any) -> None:
    with pytest.raises(MessageFormatError, match=r"messages\[0\].* Received "):
        repair("openai", [{"role": "assistant", "tool_calls": calls}])


def test_a_call_block_without_an_id_is_refused() -> None:
    call = {"type": "tool_use", "name": "f", "input": {}}
    with pytest.raises(MessageFormatError, match=r"messages\[0\]: 'id' of a 'tool_use'"):
        repair("anthropic", [{"role": "assistant", "content": [call]}])


@FORMATS
@pytest.mark.parametrize("value", ["text", {"role": "user"}, None])
def test_what_is_no_list_is_refused(wire_format: str, value: Any) -> None:
    with pytest.raises(MessageFormatError, match="must be a list"):
        repair(wire_format, value)
