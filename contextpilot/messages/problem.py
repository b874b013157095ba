"""One reason for which a provider would refuse a message list."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextpilot.messages.encodable import can_dump, fault_of


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where.

    Attributes:
        index: the message at fault: for calls without a result the message that holds the calls,
            for a result that answers nothing the message that holds the result.
        rule: the name of the rule that is broken.
        message: the fault in words, with the ids that it concerns.
    """

    index: int
    rule: str
    message: str


def unreadable_problems(
    messages: Sequence[Any], shape: Callable[[int, Any], Problem | None]
) -> list[Problem]:
    """Returns the messages that cannot be read, or that hold what JSON does not have.

    Half a surrogate pair is none of it: hosts may have it, and `without_lone_surrogates` of
    `contextpilot.messages.encodable` takes it out of requests.

    Args:
        messages: the list.
        shape: returns what is wrong with the shape of a message, given its index.
    """
    found: list[Problem] = []
    for index, message in enumerate(messages):
        is_read = isinstance(message, Mapping) or can_dump(message)
        if is_read and fault_of(message) == "not_json":
            found.append(Problem(index, "not_json", "a message holds what JSON does not have"))
        elif (problem := shape(index, message)) is not None:
            found.append(problem)
    return found


def shape_problem(index: int, message: Any, roles: Collection[str]) -> Problem | None:
    """Returns the problem of an entry that cannot be read at all, or None."""
    if not isinstance(message, Mapping):
        return Problem(index, "shape", f"a message must be a dict, not {type(message).__name__}")
    role = message.get("role")
    if not isinstance(role, str) or role not in roles:
        return Problem(index, "role", f"role {role!r} does not belong here")
    content = message.get("content")
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list | tuple):
        return Problem(index, "shape", f"content is a {type(content).__name__}")
    if not all(isinstance(b, Mapping) and isinstance(b.get("type"), str) for b in content):
        return Problem(index, "shape", "a content block is not a dict with a type")
    return None


def repeated(ids: Iterable[Any]) -> list[Any]:
    """Returns the ids that occur more than once, in order of first occurrence."""
    return [value for value, count in Counter(ids).items() if count > 1]


def is_json(text: object) -> bool:
    """True for JSON text."""
    if not isinstance(text, str):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
