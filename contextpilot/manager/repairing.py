"""Repairing what no provider would take, before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from contextpilot.messages.repair import Repair, repair


class RepairedHistory(NamedTuple):
    """A list that can be read, and what had to be done for that."""

    messages: Sequence[Mapping[str, Any]]
    repairs: tuple[Repair, ...] = ()


def repaired(
    format: str, messages: Sequence[Mapping[str, Any]], pending_wait: int
) -> RepairedHistory:
    """Returns a list without the faults that can be repaired; a valid one as it came.

    Raises:
        MessageFormatError: naming the first message that cannot be read at all.
    """
    result = repair(format, messages, pending_wait=pending_wait)
    return RepairedHistory(result.messages, result.repairs)
