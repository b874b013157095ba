"""Corruptions of chat lists."""

from __future__ import annotations

from random import Random

from messages.corruption_parts import (
    Corruption,
    answered,
    before_no_result,
    changed,
    functions,
    lone_surrogate,
    put,
    text_block,
    turn_removed,
)
from messages.message_lists import Message, Messages


def function_call(call_id: str) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat_result(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


def chat_call_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    calls = messages[turn]["tool_calls"]
    call = calls.pop(random.randrange(len(calls)))
    if not calls:
        messages[turn] = {"role": "assistant", "content": "no call"}
    ids = [message["tool_call_id"] for message in messages[turn + 1 : end + 1]]
    return turn + 1 + ids.index(call["id"])


def chat_result_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    del messages[random.randint(turn + 1, end)]
    return turn


def chat_result_late(messages: Messages, turn: int, end: int, random: Random) -> int:
    result = messages.pop(random.randint(turn + 1, end))
    messages += [{"role": "user", "content": "still there?"}, result]
    return turn


def chat_result_first(messages: Messages, turn: int, end: int, random: Random) -> int:
    messages[turn], messages[turn + 1] = messages[turn + 1], messages[turn]
    return turn


def chat_text_between(messages: Messages, turn: int, end: int, random: Random) -> int:
    messages.insert(random.randint(turn + 1, end), {"role": "user", "content": "aside"})
    return turn


def chat_result_twice(messages: Messages, turn: int, end: int, random: Random) -> int:
    again = {**messages[random.randint(turn + 1, end)], "content": "again"}
    messages.insert(end + 1, again)
    return end + 1


def chat_result_renamed(messages: Messages, turn: int, end: int, random: Random) -> int:
    index = random.randint(turn + 1, end)
    messages[index]["tool_call_id"] = "nobody"
    return index


def chat_id_twice(messages: Messages, turn: int, end: int, random: Random) -> int:
    call_id = random.choice(messages[turn]["tool_calls"])["id"]
    messages[turn]["tool_calls"].append(function_call(call_id))
    if random.random() < 0.5:
        messages.insert(end + 1, chat_result(call_id))
    return turn


def chat_goes_on(messages: Messages, random: Random) -> int:
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [function_call("call_1")]},
        {"role": "user", "content": "Are you there?"},
    ]
    return len(messages) - 2


def chat_arguments(name: str, value: object) -> Corruption:
    return changed(name, "arguments", functions, lambda _, part: part.update(arguments=value))


OPENAI = [
    answered("call removed", "orphan_result", chat_call_removed),
    answered("turn removed", "orphan_result", turn_removed, before_no_result),
    answered("result removed", "dangling_call", chat_result_removed),
    answered("result at the end", "dangling_call", chat_result_late),
    answered("result before its call", "orphan_result", chat_result_first, before_no_result),
    answered("text between", "dangling_call", chat_text_between),
    answered("result twice", "duplicate_result", chat_result_twice),
    answered("result renamed", "orphan_result", chat_result_renamed),
    answered("id twice", "duplicate_call", chat_id_twice),
    Corruption("host went on", "dangling_call", chat_goes_on),
    changed("result null", "empty_content", lambda m: [m] if m["role"] == "tool" else [],
            lambda m, _: m.update(content=None)),
    chat_arguments("arguments cut", '{"path": "a'),
    chat_arguments("arguments parsed", {"path": "a", "n": [1]}),
    chat_arguments("arguments empty", ""),
    chat_arguments("arguments null", None),
    put("assistant", "empty_calls", "no call left", content="x", tool_calls=[]),
    put("assistant", "empty_content", "empty turn", content=""),
    put("assistant", "empty_content", "turn of empty blocks", content=[text_block("")]),
    put("assistant", "reasoning_only", "reasoning only", content=None, reasoning_content="hm"),
    put("user", "empty_content", "empty user", content=""),
    put("user", "empty_content", "null user", content=None),
    put("system", "late_system", "late system", first=3, content="rule"),
    put("developer", "late_system", "late developer", first=3, content="rule"),
    Corruption("lone surrogate", "lone_surrogate", lone_surrogate),
]  # fmt: skip
