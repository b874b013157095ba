"""Exchanges that a host recorded twice.

A call and its result may well come again, id and all, from a server that uses ids again. So an
exact repetition is taken for a slip of the host's only where results to spare show that it is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextpilot.messages.repair_record import Repair


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn with calls and the results right behind it.

    Attributes:
        start, end: its messages are those from `start` until before `end`.
        turn: what calls.
        results: what answers, in order; each with the message that it is in.
    """

    start: int
    end: int
    turn: Sequence[Any]
    results: Sequence[tuple[int, Any]]


def repetitions(exchanges: Iterable[Exchange], repairs: list[Repair]) -> set[int]:
    """Returns the messages that only repeat the exchange right before them.

    Args:
        exchanges: in order.
        repairs: receives what is to be left out.
    """
    gone: set[int] = set()
    before: Exchange | None = None
    for exchange in exchanges:
        if before is None or not _repeats(exchange, before):
            before = exchange
            continue
        gone.update(range(exchange.start, exchange.end))
        once = len(_distinct(exchange.results))
        surplus = {index for index, _ in exchange.results[once:]}
        for index in range(exchange.start, exchange.end):
            rule = "duplicate_result" if index in surplus else "duplicate_exchange"
            repairs.append(Repair(index, rule, f"left out: as from message {before.start} on"))
        before = replace(before, end=exchange.end)
    return gone


def _repeats(exchange: Exchange, before: Exchange) -> bool:
    results, answered = _distinct(exchange.results), _distinct(before.results)
    given = len(exchange.results) + len(before.results)
    has_surplus = given > len(results) + len(answered)
    is_same = exchange.turn == before.turn and results == answered
    return before.end == exchange.start and has_surplus and bool(results) and is_same


def _distinct(results: Sequence[tuple[int, Any]]) -> list[Any]:
    found: list[Any] = []
    for _, value in results:
        if value not in found:
            found.append(value)
    return found
