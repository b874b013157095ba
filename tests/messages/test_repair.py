"""Repaired lists are valid, valid ones are left alone, and what is repaired stays so."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import json
from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from messages.corruptions import LONE, Corruption
from messages.corruptions_anthropic import ANTHROPIC
from messages.corruptions_openai import OPENAI
from messages.message_lists import Message, Messages, anthropic_lists, openai_lists
from messages.real_data import CASES, needs_cases
from messages.test_validate import BLOCKS, CHAT, answer, function_call, tool, use
from pydantic import TypeAdapter

from contextpilot.errors import ConfigurationError, MessageFormatError
from contextpilot.messages.repair import Repaired, repair
from contextpilot.messages.validate import problems

FORMATS = ("openai", "anthropic")
CORRUPTIONS = {"openai": OPENAI, "anthropic": ANTHROPIC}
LISTS = {"openai": openai_lists, "anthropic": anthropic_lists}
VALID = {"openai": CHAT, "anthropic": BLOCKS}
USER: Message = {"role": "user", "content": "go"}
NEXT: Message = {"role": "user", "content": "and?"}


def check_guarantee(wire_format: str, messages: Messages) -> Repaired:
    before = copy.deepcopy(messages)
    repaired = repair(wire_format, messages)
    assert messages == before
    assert problems(wire_format, repaired.messages) == ()
    json.dumps(repaired.messages, ensure_ascii=False).encode()
    again = repair(wire_format, repaired.messages)
    assert again.messages == repaired.messages
    assert again.repairs == ()
    assert all(0 <= r.index < len(messages) for r in repaired.repairs)
    assert all(0 <= index < len(repaired.messages) for index in repaired.synthetic)
    assert bool(repaired.repairs) == (repaired.messages != before)
    return repaired


@pytest.mark.parametrize("wire_format", FORMATS)
@given(data=st.data())
def test_valid_lists_stay_as_they_are(wire_format: str, data: st.DataObject) -> None:
    messages = data.draw(LISTS[wire_format]())
    repaired = repair(wire_format, messages)
    if problems(wire_format, messages) == ():
        assert len(repaired.messages) == len(messages)
        assert all(a is b for a, b in zip(repaired.messages, messages, strict=True))
        assert (repaired.repairs, repaired.synthetic) == ((), frozenset())


@pytest.mark.parametrize("wire_format", FORMATS)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_corrupt_lists_become_valid(wire_format: str, data: st.DataObject) -> None:
    messages = copy.deepcopy(data.draw(LISTS[wire_format](strange=data.draw(st.booleans()))))
    chosen = st.lists(st.sampled_from(CORRUPTIONS[wire_format]), max_size=4)
    random = Random(data.draw(st.integers(0, 2**16)))
    for corruption in data.draw(chosen):
        corruption.corrupt(messages, random)
    check_guarantee(wire_format, messages)


NAMED = [(name, corruption) for name in FORMATS for corruption in CORRUPTIONS[name]]


def corrupted(wire_format: str, corruption: Corruption, seed: int) -> tuple[Messages, int | None]:
    messages = copy.deepcopy(VALID[wire_format])
    return messages, corruption.corrupt(messages, Random(seed))


@pytest.mark.parametrize(
    ("wire_format", "corruption"), NAMED, ids=[f"{name} {c.name}" for name, c in NAMED]
)
def test_named_corruptions_are_found_and_repaired(wire_format: str, corruption: Corruption) -> None:
    places = 0
    for seed in range(12):
        messages, index = corrupted(wire_format, corruption, seed)
        if index is None:
            assert messages == VALID[wire_format]
            continue
        places += 1
        repaired = check_guarantee(wire_format, messages)
        assert repaired.repairs
        found = [(problem.index, problem.rule) for problem in problems(wire_format, messages)]
        if corruption.rule == "lone_surrogate":
            found = [(done.index, done.rule) for done in repaired.repairs]
        assert (index, corruption.rule) in found
    assert places


def test_there_are_at_least_fifteen_corruptions_a_format() -> None:
    for wire_format in FORMATS:
        assert len({corruption.name for corruption in CORRUPTIONS[wire_format]}) >= 15


def turn(*ids: str) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [function_call(i) for i in ids]}


def test_a_late_chat_result_is_moved_beside_its_call() -> None:
    late = tool("b")
    repaired = repair("openai", [USER, turn("a", "b"), tool("a"), NEXT, late])
    assert repaired.messages == [USER, turn("a", "b"), tool("a"), late, NEXT]
    assert repaired.messages[3] is late
    assert [(r.index, r.rule) for r in repaired.repairs] == [(4, "late_result")]
    assert repaired.synthetic == frozenset()


def test_a_late_anthropic_result_is_moved_beside_its_call() -> None:
    called: Message = {"role": "assistant", "content": [use("a"), use("b")]}
    first: Message = {"role": "user", "content": [answer("a"), {"type": "text", "text": "t"}]}
    reply: Message = {"role": "assistant", "content": "waiting"}
    repaired = repair(
        "anthropic", [USER, called, first, reply, {"role": "user", "content": [answer("b")]}]
    )
    moved = [answer("a"), answer("b"), {"type": "text", "text": "t"}]
    assert repaired.messages == [USER, called, {"role": "user", "content": moved}, reply]
    assert [(r.index, r.rule) for r in repaired.repairs] == [(4, "late_result")]


@pytest.mark.parametrize(("behind", "said"), [(2, "still pending"), (3, "ever came")])
def test_a_pending_call_is_waited_for_and_then_given_up(behind: int, said: str) -> None:
    replies: Messages = [{"role": "assistant", "content": "hm"}, NEXT] * behind
    chat = repair("openai", [USER, turn("a"), NEXT, *replies], pending_wait=3)
    assert said in chat.messages[2]["content"]
    assert "ContextPilot" in chat.messages[2]["content"]
    assert chat.synthetic == {2}
    called: Message = {"role": "assistant", "content": [use("a")]}
    blocks = repair("anthropic", [USER, called, NEXT, *replies], pending_wait=3)
    assert blocks.messages[2]["role"] == "user"
    assert said in blocks.messages[2]["content"][0]["content"]
    assert blocks.synthetic == {2}


def test_reused_ids_are_matched_by_position() -> None:
    first, second = {**tool("a"), "content": "1"}, {**tool("a"), "content": "2"}
    repaired = repair("openai", [USER, turn("a"), NEXT, first, turn("a"), NEXT, second])
    assert repaired.messages == [USER, turn("a"), first, NEXT, turn("a"), second, NEXT]


def test_the_last_of_duplicate_results_is_kept() -> None:
    first, last = {**tool("a"), "content": "old"}, {**tool("a"), "content": "new"}
    repaired = repair("openai", [USER, turn("a"), first, last, NEXT])
    assert repaired.messages == [USER, turn("a"), last, NEXT]
    assert [(r.index, r.rule) for r in repaired.repairs] == [(2, "duplicate_result")]


def test_duplicate_ids_of_a_turn_get_a_suffix_with_their_results() -> None:
    first, second = {**tool("a"), "content": "1"}, {**tool("a"), "content": "2"}
    repaired = repair("openai", [USER, turn("a", "a", "a_2"), first, second, tool("a_2"), NEXT])
    assert [call["id"] for call in repaired.messages[1]["tool_calls"]] == ["a", "a_3", "a_2"]
    assert [(m["tool_call_id"], m["content"]) for m in repaired.messages[2:5]] == [
        ("a", "1"),
        ("a_3", "2"),
        ("a_2", "r"),
    ]


def test_arguments_that_are_no_json_are_kept_as_text() -> None:
    broken = turn("a")
    broken["tool_calls"][0]["function"]["arguments"] = '{"path": "a'
    sent = repair("openai", [USER, broken]).messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"unparsed_arguments": '{"path": "a'}
    called: Message = {"role": "assistant", "content": [{**use("a"), "input": "cut"}]}
    assert repair("anthropic", [USER, called]).messages[1]["content"][0]["input"] == {
        "unparsed_arguments": "cut"
    }


def test_late_system_messages_stand_behind_those_in_front_in_order() -> None:
    system: Messages = [{"role": "system", "content": text} for text in "123"]
    repaired = repair("openai", [system[0], USER, system[1], NEXT, system[2]])
    assert repaired.messages == [*system, USER, NEXT]


def test_blanked_thinking_leaves_alone_in_the_open_loop_and_as_a_whole_behind_it() -> None:
    whole: Message = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blank = {**whole, "thinking": ""}
    called: Message = {"role": "assistant", "content": [blank, whole, use("a")]}
    results: Message = {"role": "user", "content": [answer("a")]}
    sent = repair("anthropic", [USER, called, results]).messages
    assert sent[1]["content"] == [whole, use("a")]
    sent = repair("anthropic", [USER, called, results, NEXT]).messages
    assert sent[1]["content"] == [use("a")]


def test_an_opening_is_made_where_the_user_is_missing() -> None:
    reply: Message = {"role": "assistant", "content": "hi"}
    repaired = repair("anthropic", [reply, NEXT])
    assert repaired.messages[1] is reply
    assert "not the user" in repaired.messages[0]["content"]
    assert repaired.synthetic == {0}


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    given_text = f"{LONE} \ud83d\ude00"
    message: Message = {"role": "user", "content": given_text}
    repaired = repair("openai", [message])
    assert repaired.messages[0]["content"] == "half \ufffd of a pair \U0001f600"
    assert message["content"] == given_text


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"role": "human", "content": "x"}, "unknown role.*'human'"),
        ("x", "must be a dict.*'x'"),
        ({"role": "user", "content": 3}, "string or a list of blocks.*3"),
        ({"role": "user", "content": ["x"]}, "'type'.*'x'"),
    ],
)
def test_what_cannot_be_read_is_an_error(wire_format: str, entry: Any, said: str) -> None:
    with pytest.raises(MessageFormatError, match=rf"messages\[1\]: .*{said}"):
        repair(wire_format, [USER, entry])


def test_wrong_settings_are_errors() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'openai'"):
        repair("open_ai", CHAT)
    with pytest.raises(ConfigurationError, match="Received -1"):
        repair("openai", CHAT, pending_wait=-1)


# ---- other judges --------------------------------------------------------------------------------


def repaired_lists(wire_format: str) -> Iterator[Messages]:
    for corruption in CORRUPTIONS[wire_format]:
        for seed in range(4):
            messages, index = corrupted(wire_format, corruption, seed)
            if index is not None:
                yield repair(wire_format, messages).messages


def exhaust(value: Any) -> Any:
    """Walks validated values: the packages' lists are lazy, and fail only when they are read."""
    if isinstance(value, dict):
        return {key: exhaust(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [exhaust(item) for item in value]


@pytest.mark.parametrize(
    ("wire_format", "module", "name"),
    [
        ("openai", "openai.types.chat", "ChatCompletionMessageParam"),
        ("anthropic", "anthropic.types", "MessageParam"),
    ],
)
def test_repaired_messages_have_the_packages_types(
    wire_format: str, module: str, name: str
) -> None:
    adapter = TypeAdapter(getattr(importlib.import_module(module), name))
    for messages in repaired_lists(wire_format):
        for message in messages:
            exhaust(adapter.validate_python(message))


def case_judge() -> ModuleType:
    path = CASES.parent / "check_cases.py"
    spec = importlib.util.spec_from_file_location("check_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_cases
def test_another_judge_finds_nothing_in_repaired_lists() -> None:
    judge = case_judge()
    for case in (json.loads(line) for line in CASES.read_text().splitlines()):
        repaired = check_guarantee(case["format"], case["messages"])
        assert judge.problems(case["format"], repaired.messages) == [], case["id"]
        assert bool(repaired.repairs) == bool(case.get("input_is_invalid")), case["id"]
    for wire_format in FORMATS:
        for messages in repaired_lists(wire_format):
            # the judge does not know that a refusal says something without content
            said = [{**m, "content": "no"} if m.get("refusal") else m for m in messages]
            assert judge.problems(wire_format, said) == []
