"""What has to be looked at again in a list that has grown from one that is known to be valid.

The rules for messages are local: each concerns one message, or a turn and the results right behind
it. So a list is valid where its beginning up to an assistant message is that of a valid list, and
what is left, that message included, is valid behind any user message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import Any

from contextpilot.messages.problem import Problem
from contextpilot.messages.validate import problems

LOCAL = ("anthropic", "openai")
"""In lists of Responses items an item may concern others far away."""

_OPENING: Mapping[str, Any] = MappingProxyType({"role": "user", "content": "."})


def alike(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Returns how many leading objects of two lists are the same ones."""
    shared = min(len(first), len(second))
    if all(map(is_, first, second)):
        return shared
    return next(i for i in range(shared) if first[i] is not second[i])


def open_end(
    format: str, messages: Sequence[Mapping[str, Any]], valid: int
) -> list[Mapping[str, Any]] | None:
    """Returns a list that is valid exactly if the whole one is.

    Args:
        format: of the messages.
        messages: the whole list.
        valid: how many of its messages a valid list begins with.

    Returns:
        The end of the list behind a user message; None where that tells too little.
    """
    if format not in LOCAL:
        return None
    turns = (i for i in range(valid - 1, 0, -1) if messages[i]["role"] == "assistant")
    start = next(turns, 0)
    return [_OPENING, *messages[start:]] if start else None


class Validator:
    """Finds the problems of lists of which each is much like the one before.

    The messages must be objects that nobody changes: which ones are known is told by that.
    """

    def __init__(self, format: str) -> None:
        self._format = format
        self._valid: Sequence[Mapping[str, Any]] = ()

    def problems(self, messages: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
        """Returns every problem of a list, as `contextpilot.messages.validate.problems` does."""
        known = alike(messages, self._valid)
        if messages and known == len(messages) == len(self._valid):
            return ()
        end = open_end(self._format, messages, known)
        found: tuple[Problem, ...] = ()
        if end is None or problems(self._format, end):
            found = problems(self._format, messages)  # the whole, so that positions are right
        self._valid = () if found else tuple(messages)
        return found
