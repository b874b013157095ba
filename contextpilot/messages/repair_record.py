"""What a repair gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was changed.

    Attributes:
        index: the message in the given list that it concerns: for a call without a result the
            message that holds the call, for a result the message that holds it.
        rule: the rule of `contextpilot.messages.validate` that was broken, or "late_result" or
            "lone_surrogate".
        message: what was done, in words, with the ids that it concerns.
    """

    index: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Repaired:
    """A message list that providers take.

    Attributes:
        messages: untouched messages are the objects of the given list, and share their content
            with it where they were changed.
        repairs: what was changed, by index; none for a valid list.
        synthetic: indices in `messages` of those in which nothing comes from the given list.
    """

    messages: list[dict[str, Any]]
    repairs: tuple[Repair, ...]
    synthetic: frozenset[int]
