"""Ids of calls and results that are missing or no text."""

from __future__ import annotations

from collections.abc import Sequence

UNNAMED = "unknown_tool"
"""The name of a tool whose name is missing."""


def settled_ids(
    calls: Sequence[object], results: Sequence[object], made: str
) -> tuple[list[str], list[str]]:
    """Returns the ids of a turn's calls, and of the results right behind it, as text.

    Numbers become their text. A call without an id gets the first that a result names and no call
    has, or else one that is made. A result without an id gets that of the first call that no other
    result names; it stays "" where there is none.

    Args:
        calls: the ids of the calls.
        results: the ids that the results name.
        made: what a made id begins with.
    """
    given, named = [text_of(value) for value in calls], [text_of(value) for value in results]
    unclaimed = iter(dict.fromkeys(value for value in named if value and value not in given))
    called = [value or next(unclaimed, f"{made}_{number}") for number, value in enumerate(given)]
    free = iter([value for value in called if value not in named])
    return called, [value or next(free, "") for value in named]


def text_of(value: object) -> str:
    """Returns an id or a name as text; "" where it is none."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
