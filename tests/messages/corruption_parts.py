"""How corruptions of message lists are made.

Each corrupts a list in place, somewhere, and returns the index at which `problems` has to find
the rule; None, with the list untouched, where the list has no place for it. Lists may be corrupt
before: places are looked for in what is there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from messages.message_lists import Message, Messages

LONE = "half \ud83d of a pair"


@dataclass(frozen=True)
class Corruption:
    name: str
    rule: str
    corrupt: Callable[[Messages, Random], int | None]


def text_block(text: str = "t") -> Message:
    return {"type": "text", "text": text}


def typed(message: Message, *kinds: str) -> Messages:
    content = message.get("content")
    return [b for b in content if b["type"] in kinds] if isinstance(content, list) else []


def calls_of(message: Message) -> Messages:
    if message["role"] != "assistant":
        return []
    return list(message.get("tool_calls") or ()) or typed(message, "tool_use")


def results(message: Message) -> Messages:
    return typed(message, "tool_result") if message["role"] == "user" else []


def exchanges(messages: Messages) -> Iterator[tuple[int, int]]:
    """Yields (turn, last message with its results) of turns with calls."""
    for turn, message in enumerate(messages):
        if not calls_of(message):
            continue
        end = turn
        while end + 1 < len(messages) and messages[end + 1]["role"] == "tool":
            end += 1
        if end == turn < len(messages) - 1 and results(messages[turn + 1]):
            end += 1
        yield turn, end


def is_answered(messages: Messages, turn: int, end: int) -> bool:
    """True where each call has its result and more follows."""
    behind = messages[turn + 1 : end + 1]
    answers = [message["tool_call_id"] for message in behind if message["role"] == "tool"]
    answers += [block["tool_use_id"] for message in behind for block in results(message)]
    called = [call["id"] for call in calls_of(messages[turn])]
    return turn < end < len(messages) - 1 and sorted(called) == sorted(answers)


def put(role: str, rule: str, name: str, first: int = 1, **fields: object) -> Corruption:
    """Puts a message where it stands between no call and its results."""

    def corrupt(messages: Messages, random: Random) -> int | None:
        inside = {i for turn, end in exchanges(messages) for i in range(turn + 1, end + 1)}
        gaps = [i for i in range(first, len(messages) + 1) if i not in inside]
        if not gaps:
            return None
        at = random.choice(gaps)
        messages.insert(at, {"role": role, **copy.deepcopy(fields)})
        return at

    return Corruption(name, rule, corrupt)


def answered(
    name: str,
    rule: str,
    change: Callable[[Messages, int, int, Random], int],
    where: Callable[[Messages, int], bool] = lambda messages, turn: True,
) -> Corruption:
    """Changes an exchange, given its turn and the last message of its results."""

    def corrupt(messages: Messages, random: Random) -> int | None:
        places = [
            place
            for place in exchanges(messages)
            if is_answered(messages, *place) and where(messages, place[0])
        ]
        return change(messages, *random.choice(places), random) if places else None

    return Corruption(name, rule, corrupt)


def changed(
    name: str,
    rule: str,
    found: Callable[[Message], Messages],
    change: Callable[[Message, Message], object],
) -> Corruption:
    """Changes one of the parts that `found` finds in a message, given the message."""

    def corrupt(messages: Messages, random: Random) -> int | None:
        places = [(i, part) for i, message in enumerate(messages) for part in found(message)]
        if not places:
            return None
        index, part = random.choice(places)
        change(messages[index], part)
        return index

    return Corruption(name, rule, corrupt)


def removed(message: Message, block: Message) -> None:
    """Removes a block itself, not one that is equal."""
    message["content"] = [other for other in message["content"] if other is not block]


def before_no_result(messages: Messages, turn: int) -> bool:
    return messages[turn - 1]["role"] != "tool" and not calls_of(messages[turn - 1])


def turn_removed(messages: Messages, turn: int, end: int, random: Random) -> int:
    del messages[turn]
    return turn


def functions(message: Message) -> Messages:
    return [call["function"] for call in message.get("tool_calls") or () if "function" in call]


def lone_surrogate(messages: Messages, random: Random) -> int:
    index = random.randrange(len(messages))
    message = messages[index]
    if isinstance(message.get("content"), list):
        message["content"].append(text_block(LONE))
    elif functions(message):
        functions(message)[0]["arguments"] = f'{{"a": "{LONE}"}}'
    else:
        message["content"] = LONE
    return index
