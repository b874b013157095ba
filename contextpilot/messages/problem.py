"""One reason for which a provider would refuse a message list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


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
