"""Which result answers which call, wherever in the list it stands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from contextpilot.messages.repair_record import Repair

Place: TypeAlias = tuple[int, int]
"""Where a result stands: its message in the given list, its block (0 where it is the message)."""

_MADE = "[ContextPilot, not the tool: {}]"
_PENDING = _MADE.format("this call is still pending; its result has not come yet")
_DEAD = _MADE.format("no result of this call ever came; do not wait for one")


@dataclass(slots=True)
class Call:
    """One call.

    Attributes:
        turn: the message that holds it.
        given_id: its id in the given list.
        sent_id: its id in the repaired list, unlike all others of its turn.
        kind: what kinds of results may answer it; "" where there is one kind only.
        result: where its result stands, or None.
        is_home: whether that is right behind the turn.
        stand_in: the text that is sent in place of a result.
    """

    turn: int
    given_id: str
    sent_id: str
    kind: str = ""
    result: Place | None = None
    is_home: bool = False
    stand_in: str = ""


class Pairing:
    """The calls of a list, and which results answer them.

    A result answers the nearest call before it that has its id and no result, since servers use
    ids again in later turns; of several calls with one id in a turn, the first. Where all have
    one it takes the place of the nearest one's, since the last result of a call is what counts;
    unless that call is not the latest turn's and others share its id: then it is left out.

    Attributes:
        turns: the calls of each turn, by message.
        calls: the calls by the place of their results.
    """

    def __init__(self, repairs: list[Repair]) -> None:
        """Keeps `repairs`, which receives what the pairing changes."""
        self.turns: dict[int, list[Call]] = {}
        self.calls: dict[Place, Call] = {}
        self._by_id: dict[str, list[Call]] = {}
        self._repairs = repairs

    def add_turn(self, index: int, ids: Sequence[str], kinds: Sequence[str] = ()) -> None:
        """Adds the calls of the next message, which is a turn, and their kinds if there are any."""
        called = zip(ids, _distinct(ids), kinds or [""] * len(ids), strict=True)
        self.turns[index] = [Call(index, *names) for names in called]
        for call in self.turns[index]:
            self._by_id.setdefault(call.given_id, []).append(call)
            if call.sent_id != call.given_id:
                text = f"of two calls {call.given_id!r} in a turn one became {call.sent_id!r}"
                self._repairs.append(Repair(index, "duplicate_call", text))

    def add_result(self, place: Place, call_id: object, kinds: Sequence[str] = ("",)) -> None:
        """Adds the next result; one that answers no call of its kinds has none in `calls`."""
        same = self._by_id.get(call_id, []) if isinstance(call_id, str) else []
        same = [call for call in same if call.kind in kinds]
        if not same:
            text = f"a result was left out: no call before it has the id {call_id!r}"
            self._repairs.append(Repair(place[0], "orphan_result", text))
            return
        call = self._call_for(same)
        surplus = place if call is None else call.result
        if surplus is not None:
            text = f"one result of {call_id!r} was left out, since there is another"
            self._repairs.append(Repair(surplus[0], "duplicate_result", text))
            self.calls.pop(surplus, None)
        if call is not None:
            call.result = place
            self.calls[place] = call

    def _call_for(self, same: Sequence[Call]) -> Call | None:
        """Returns the call that the next result answers, of those with its id."""
        nearest = next((call for call in reversed(same) if call.result is None), same[-1])
        if nearest.result is None:
            return next(c for c in same if c.turn == nearest.turn and c.result is None)
        is_clear = same[0].turn == nearest.turn or nearest.turn == max(self.turns)
        return nearest if is_clear else None

    def settle(self, follows: Mapping[int, int]) -> None:
        """Sets which results are at home; the others are to be moved beside their calls.

        Args:
            follows: for each message with results, what stands before it besides results.
        """
        for (index, _), call in self.calls.items():
            call.is_home = follows[index] == call.turn
            if not call.is_home:
                text = f"the result of {call.given_id!r} was moved beside its call"
                self._repairs.append(Repair(index, "late_result", text))

    def knows(self, call_id: object, kinds: Sequence[str]) -> bool:
        """True where a call before has the id, and one of the kinds or else a result."""
        same = self._by_id.get(call_id, []) if isinstance(call_id, str) else []
        return any(call.kind in kinds or call.result is not None for call in same)

    def fill(
        self,
        turns: Sequence[int],
        pending_turn: int,
        pending_wait: int,
        without: Collection[str] = (),
    ) -> None:
        """Sets what stands in for results that are missing.

        Args:
            turns: the messages that are turns, in order.
            pending_turn: the turn that ends the list; its calls go without results.
            pending_wait: from how many turns behind a call its result is not waited for.
            without: kinds of call for which nothing stands in.
        """
        for call in (call for calls in self.turns.values() for call in calls):
            if call.result is None and call.turn != pending_turn and call.kind not in without:
                is_dead = len(turns) - bisect_right(turns, call.turn) >= pending_wait
                call.stand_in = _DEAD if is_dead else _PENDING
                state = "none ever came" if is_dead else "it is pending"
                text = f"a result that says that {state} was made for {call.given_id!r}"
                self._repairs.append(Repair(call.turn, "dangling_call", text))

    def answered(self, turn: int) -> list[Call]:
        """Returns a turn's calls that have a result or a stand-in, in the order of these.

        Results at home stay in order, and the others come behind them as they were called: what
        stands in for a missing result has the place of the late one.
        """
        calls = self.turns[turn]
        home = sorted(
            (call.result, n) for n, call in enumerate(calls) if call.result and call.is_home
        )
        others = [call for call in calls if not call.is_home and (call.result or call.stand_in)]
        return [*(calls[n] for _, n in home), *others]


def _distinct(ids: Sequence[str]) -> list[str]:
    """Returns the ids, those that occur before with a suffix."""
    out: list[str] = []
    for call_id in ids:
        sent, number = call_id, 2
        while sent in out or (sent != call_id and sent in ids):
            sent, number = f"{call_id}_{number}", number + 1
        out.append(sent)
    return out
