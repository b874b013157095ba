"""Corruptions of Anthropic lists."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from messages.corruption_parts import (
    Corruption,
    answered,
    before_no_result,
    calls_of,
    changed,
    lone_surrogate,
    put,
    removed,
    results,
    text_block,
    turn_removed,
    typed,
)
from messages.message_lists import Message, Messages


def use(call_id: str) -> Message:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def user_removed(messages: Messages, random: Random) -> int | None:
    if len(messages) < 2 or messages[1]["role"] != "assistant":
        return None
    del messages[0]
    return 0


def call_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    removed(messages[turn], random.choice(calls_of(messages[turn])))
    messages[turn]["content"].append(text_block())
    return end


def results_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    messages[end]["content"] = [text_block()]
    return turn


def result_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    removed(messages[end], random.choice(results(messages[end])))
    return turn


def result_late(messages: Messages, turn: int, end: int, random: Random) -> int:
    block = random.choice(results(messages[end]))
    removed(messages[end], block)
    messages.append({"role": "user", "content": [block]})
    return turn


def results_apart(messages: Messages, turn: int, end: int, random: Random) -> int:
    first = results(messages[end])[0]
    removed(messages[end], first)
    messages.insert(end, {"role": "user", "content": [first]})
    return turn


def message_between(messages: Messages, turn: int, end: int, random: Random) -> int:
    messages.insert(end, {"role": random.choice(["user", "assistant"]), "content": "aside"})
    return turn


def result_order(messages: Messages, turn: int, end: int, random: Random) -> int:
    messages[end]["content"].insert(0, text_block("before"))
    return end


def result_renamed(messages: Messages, turn: int, end: int, random: Random) -> int:
    random.choice(results(messages[end]))["tool_use_id"] = "nobody"
    return end


def result_twice(messages: Messages, turn: int, end: int, random: Random) -> int:
    block = random.choice(results(messages[end]))
    messages[end]["content"].insert(0, {**block, "content": "before"})
    return end


def goes_on(messages: Messages, random: Random) -> int:
    messages += [
        {"role": "assistant", "content": [use("call_1"), use("call_2")]},
        {"role": "user", "content": "Are you there?"},
    ]
    return len(messages) - 2


def text_instead(message: Message, block: Message) -> None:
    removed(message, block)
    message["content"].append(text_block())  # or the call may be what ends the list, paused


def blocks(kind: str) -> Callable[[Message], Messages]:
    return lambda message: typed(message, kind) if message["role"] == "assistant" else []


def inputs(name: str, value: object) -> Corruption:
    return changed(
        name, "arguments", blocks("tool_use"), lambda _, part: part.update(input=value)
    )  # fmt: skip


ALONE = "server_pair"
THINKING: Messages = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
]
ANTHROPIC = [
    Corruption("user removed", "first_user", user_removed),
    put("user", "empty_content", "empty", content=[]),
    put("user", "empty_content", "null", content=None),
    put("assistant", "empty_text", "blank turn", content=" \n"),
    put("user", "empty_text", "blank string", content=""),
    put("user", "empty_text", "blank block", content=[text_block(), text_block(" ")]),
    put("assistant", "empty_text", "blank compaction",
        content=[{"type": "compaction", "content": ""}]),
    changed("result null", "empty_content", results, lambda _, block: block.update(content=None)),
    put("assistant", "reasoning_only", "thinking only", content=THINKING),
    changed("thinking blanked", "blank_thinking", blocks("thinking"),
            lambda _, block: block.update(thinking="")),
    inputs("input a string", '{"a": "\\ud800"}'),
    inputs("input cut", '{"a": "b'),
    inputs("input null", None),
    changed("id twice", "duplicate_call", blocks("tool_use"),
            lambda message, block: message["content"].append({**block, "name": "g"})),
    changed("server call removed", ALONE, blocks("server_tool_use"), removed),
    changed("server result removed", ALONE, blocks("web_search_tool_result"), text_instead),
    answered("results removed", "dangling_call", results_removed),
    answered("result removed", "dangling_call", result_removed),
    answered("result at the end", "dangling_call", result_late),
    answered("results apart", "dangling_call", results_apart,
             lambda messages, turn: len(calls_of(messages[turn])) > 1),
    answered("message between", "dangling_call", message_between),
    answered("call removed", "orphan_result", call_removed),
    answered("turn removed", "orphan_result", turn_removed, before_no_result),
    answered("result renamed", "orphan_result", result_renamed),
    answered("result twice", "duplicate_result", result_twice),
    answered("text before results", "result_order", result_order),
    Corruption("host went on", "dangling_call", goes_on),
    Corruption("lone surrogate", "lone_surrogate", lone_surrogate),
]  # fmt: skip
