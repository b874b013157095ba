"""The validator finds each named corruption where it is, and nothing in valid lists."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from messages.claude_code_files import claude_code_lists
from messages.message_lists import Message, Messages, full
from messages.real_data import CASES, DATA, needs_cases, needs_data

from contextpilot.errors import ConfigurationError
from contextpilot.messages import anthropic, openai
from contextpilot.messages.validate import problems


def function_call(call_id: str) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def tool(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


CHAT: Messages = [
    {"role": "system", "content": "rule"},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [function_call("a"), function_call("b")]},
    tool("b"),
    tool("a"),
    {"role": "assistant", "content": "and", "tool_calls": [function_call("a")]},
    tool("a"),
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "user", "content": "wait"},
    {"role": "assistant", "content": "", "tool_calls": [function_call("p")]},
]


def use(call_id: str) -> Message:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def answer(call_id: str) -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "r"}


TEXT = {"type": "text", "text": "t"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
SERVER = {"type": "server_tool_use", "id": "v", "name": "web_search", "input": {}}
SERVER_ANSWER = {"type": "web_search_tool_result", "tool_use_id": "v", "content": []}
BLOCKS: Messages = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [THINKING, use("a"), use("b")]},
    {"role": "user", "content": [answer("b"), answer("a"), TEXT]},
    {"role": "assistant", "content": [SERVER, SERVER_ANSWER, TEXT]},
    {"role": "user", "content": [TEXT]},
    {"role": "assistant", "content": [use("p"), use("q")]},
    {"role": "user", "content": [answer("p"), answer("q")]},
    {"role": "assistant", "content": [TEXT, use("p")]},
]

Corruption = tuple[str, Callable[[Messages], Any], int, str]


def put(index: int, key: str, value: Any) -> Callable[[Messages], Any]:
    return lambda m: m[index].__setitem__(key, value)


def replaced(index: int, message: Any) -> Callable[[Messages], Any]:
    return lambda m: m.__setitem__(index, message)


def arguments(value: Any) -> Callable[[Messages], Any]:
    return lambda m: m[5]["tool_calls"][0]["function"].update(arguments=value)


def silent_turn(**fields: Any) -> Callable[[Messages], Any]:
    return lambda m: m[7].update(refusal=None, **fields)


ASIDE: Message = {"role": "user", "content": "x"}
BLANK = {"type": "text", "text": ""}
SUMMARY = {"type": "compaction", "content": ""}
REDACTED = {"type": "redacted_thinking", "data": "x"}


OPENAI_CORRUPTIONS: list[Corruption] = [
    ("result first", lambda m: m.insert(2, tool("a")), 2, "orphan_result"),
    ("call removed", lambda m: m[2]["tool_calls"].pop(0), 4, "orphan_result"),
    ("turn removed", lambda m: m.pop(5), 5, "duplicate_result"),
    ("result removed", lambda m: m.pop(3), 2, "dangling_call"),
    ("text between", lambda m: m.insert(4, ASIDE), 2, "dangling_call"),
    ("text between, result", lambda m: m.insert(4, ASIDE), 5, "orphan_result"),
    ("result twice", lambda m: m.insert(5, tool("a")), 5, "duplicate_result"),
    ("id renamed", put(6, "tool_call_id", "z"), 6, "orphan_result"),
    ("id twice", lambda m: m[2]["tool_calls"].append(function_call("a")), 2, "duplicate_call"),
    ("pending not last", lambda m: m.append(ASIDE), 9, "dangling_call"),
    ("arguments cut", arguments('{"a'), 5, "arguments"),
    ("arguments parsed", arguments({}), 5, "arguments"),
    ("no call left", put(9, "tool_calls", []), 9, "empty_calls"),
    ("empty turn", put(7, "refusal", None), 7, "empty_content"),
    ("empty blocks", silent_turn(content=[BLANK]), 7, "empty_content"),
    ("empty user", put(8, "content", ""), 8, "empty_content"),
    ("null user", put(8, "content", None), 8, "empty_content"),
    ("null result", put(4, "content", None), 4, "empty_content"),
    ("reasoning only", silent_turn(reasoning_content="hm"), 7, "reasoning_only"),
    ("system late", lambda m: m.insert(8, {"role": "system", "content": "x"}), 8, "late_system"),
    ("unknown role", put(8, "role", "human"), 8, "role"),
    ("role missing", lambda m: m[8].pop("role"), 8, "role"),
    ("not a dict", replaced(8, "x"), 8, "shape"),
    ("content a number", put(8, "content", 3), 8, "shape"),
    ("content of strings", put(8, "content", ["x"]), 8, "shape"),
    ("emptied", lambda m: m.clear(), 0, "empty_list"),
    ("blocks of the other", put(8, "content", [use("z")]), 8, "foreign"),
]  # fmt: skip
ANTHROPIC_CORRUPTIONS: list[Corruption] = [
    ("user removed", lambda m: m.pop(0), 0, "first_user"),
    ("system inside", lambda m: m.insert(1, {"role": "system", "content": "x"}), 1, "role"),
    ("empty", put(4, "content", []), 4, "empty_content"),
    ("null", put(4, "content", None), 4, "empty_content"),
    ("blank text", put(4, "content", [TEXT, {"type": "text", "text": " "}]), 4, "empty_text"),
    ("blank string", put(4, "content", ""), 4, "empty_text"),
    ("blank compaction", put(4, "content", [SUMMARY]), 4, "empty_text"),
    ("thinking only", put(3, "content", [THINKING, REDACTED]), 3, "reasoning_only"),
    ("thinking blanked", lambda m: m[1]["content"][0].update(thinking=""), 1, "blank_thinking"),
    ("input a string", lambda m: m[5]["content"][0].update(input="{}"), 5, "arguments"),
    ("id twice", lambda m: m[5]["content"].append(use("p")), 5, "duplicate_call"),
    ("result removed", lambda m: m[2]["content"].pop(0), 1, "dangling_call"),
    ("results removed", lambda m: m.pop(6), 5, "dangling_call"),
    ("pending not last", lambda m: m.append(ASIDE), 7, "dangling_call"),
    ("call removed", lambda m: m[1]["content"].pop(), 2, "orphan_result"),
    ("turn removed", lambda m: m.pop(5), 5, "orphan_result"),
    ("result twice", lambda m: m[6]["content"].append(answer("p")), 6, "duplicate_result"),
    ("text before result", lambda m: m[2]["content"].reverse(), 2, "result_order"),
    ("server result removed", lambda m: m[3]["content"].pop(1), 3, "server_pair"),
    ("server call removed", lambda m: m[3]["content"].pop(0), 3, "server_pair"),
    ("not a dict", replaced(4, None), 4, "shape"),
    ("block without type", put(4, "content", [{"text": "x"}]), 4, "shape"),
    ("emptied", lambda m: m.clear(), 0, "empty_list"),
    ("calls of the other", put(3, "tool_calls", [function_call("z")]), 3, "foreign"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "corrupt", "index", "rule"),
    OPENAI_CORRUPTIONS,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_openai_corruptions(
    name: str, corrupt: Callable[[Messages], Any], index: int, rule: str
) -> None:
    check_corruption("openai", CHAT, corrupt, index, rule)


@pytest.mark.parametrize(
    ("name", "corrupt", "index", "rule"),
    ANTHROPIC_CORRUPTIONS,
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_anthropic_corruptions(
    name: str, corrupt: Callable[[Messages], Any], index: int, rule: str
) -> None:
    check_corruption("anthropic", BLOCKS, corrupt, index, rule)


def check_corruption(
    wire_format: str, valid: Messages, corrupt: Callable[[Messages], Any], index: int, rule: str
) -> None:
    assert problems(wire_format, valid) == ()
    messages = copy.deepcopy(valid)
    corrupt(messages)
    found = problems(wire_format, messages)
    assert (index, rule) in [(problem.index, problem.rule) for problem in found]
    assert [problem.index for problem in found] == sorted(problem.index for problem in found)


def test_every_rule_has_a_corruption() -> None:
    import contextpilot.messages.validate as module

    rows = [line.split("|") for line in str(module.__doc__).splitlines() if line.startswith("| ")]
    table = {(row[1].strip(), row[2].strip()) for row in rows[1:]}
    tested = {
        (rule, name)
        for name, corruptions in (
            ("openai", OPENAI_CORRUPTIONS),
            ("anthropic", ANTHROPIC_CORRUPTIONS),
        )
        for _, _, _, rule in corruptions
    }
    expected = {
        (rule, name)
        for rule, formats in table
        for name in (("openai", "anthropic") if formats == "both" else (formats,))
    }
    assert tested == expected


def test_a_paused_server_call_may_end_the_list() -> None:
    assert (
        problems("anthropic", [BLOCKS[0], {"role": "assistant", "content": [TEXT, SERVER]}]) == ()
    )


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'openai'"):
        problems("open_ai", CHAT)


@needs_cases
def test_reported_cases_are_judged_as_reported() -> None:
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    assert len(cases) >= 25
    expected = {"S06": [(2, "dangling_call")], "S07": [(6, "duplicate_result")]}
    for case in cases:
        found = problems(case["format"], case["messages"])
        assert bool(found) == bool(case.get("input_is_invalid")), case["id"]
        assert [(p.index, p.rule) for p in found] == expected.get(case["id"], []), case["id"]
        module = openai if case["format"] == "openai" else anthropic
        assert module.render(full(module.parse(case["messages"]))) == case["messages"]


@needs_data
def test_recorded_sessions_are_valid_but_for_blank_text_before_thinking() -> None:
    paths = sorted(DATA.glob("claude_code/**/*.jsonl"))
    assert len(paths) >= 12
    for path in paths:
        for messages in claude_code_lists(path):
            for problem in problems("anthropic", messages):
                assert problem.rule == "empty_text", path.name
                blank, thinking, *_ = messages[problem.index]["content"]
                assert (blank["text"], thinking["type"]) == ("\n\n", "thinking")
