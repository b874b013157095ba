"""The log's edits on a context that is built anew: those whose targets are there, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contextpilot.core.context import Context
from contextpilot.core.edit import Change, EditRecord, Op
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Form, Kind, Role
from contextpilot.edits.effect import count_reloads
from contextpilot.manager.entries import Entries, Present

_HIDING = (Op.SUMMARIZE, Op.FOLD, Op.DROP)


@dataclass(frozen=True, slots=True)
class Protected:
    """What may not be hidden in a history, whatever was done to it in another one.

    Attributes:
        pinned: indices that stay as they are.
        reasoning: indices whose reasoning belongs to the open tool loop.
        exchanges: indices of the exchanges of such turns.
        unread: indices that the agent has not seen in this history.
    """

    pinned: frozenset[int]
    reasoning: frozenset[int]
    exchanges: frozenset[int]
    unread: frozenset[int]

    def forbids(self, record: EditRecord, indices: Sequence[int], request: int) -> bool:
        """True where an edit would hide what must be seen.

        What is unread was hidden in this very request because it would not have fitted.
        """
        if record.op == Op.REORDER:
            return not self.pinned.isdisjoint(indices)
        if record.op not in _HIDING:
            return False
        whole = record.op == Op.DROP or "run" in record.params
        loop = self.exchanges if whole else self.reasoning
        unread = frozenset() if record.request == request else self.unread
        return any(not each.isdisjoint(indices) for each in (self.pinned, loop, unread))


def protected(entries: Entries, present: Present) -> Protected:
    """Returns what may not be hidden in a history."""
    everything = entries.all
    pinned = {everything[i].leader for i in present.indices if everything[i].segment.pinned}
    user, said = latest_user(entries, present), latest_said(entries, present)
    behind = present.indices[present.indices.index(user) :] if user >= 0 else present.indices
    reasoning = {i for i in behind if everything[i].has_reasoning}
    return Protected(
        frozenset(i for i in present.indices if everything[i].leader in pinned or i in said),
        frozenset(reasoning),
        frozenset(i for i in behind if everything[i].leader in reasoning),
        frozenset(
            i
            for i, arrival in zip(present.indices, present.arrivals, strict=True)
            if arrival == present.turns and everything[i].segment.kind != Kind.TURN
        ),
    )


def latest_user(entries: Entries, present: Present) -> int:
    """Returns the index of the latest user text, or -1; as a context has it."""
    for index in reversed(present.indices):
        segment = entries.all[index].segment
        if segment.role == Role.USER and segment.kind == Kind.TEXT:
            return index
    return -1


def latest_said(entries: Entries, present: Present) -> frozenset[int]:
    """Returns the indices of the user's latest words, and of what they showed since, if anything.

    A message of images or documents alone is a request as much as a text is.
    """
    text = latest_user(entries, present)
    said = {text} if text >= 0 else set()
    for index in reversed(present.indices):
        if index == text:
            break
        if entries.all[index].segment.role == Role.USER and entries.all[index].kind != Kind.NOTE:
            number = entries.message(index)
            said |= {i for i in present.indices if i > text and entries.message(i) == number}
            break
    return frozenset(said)


class Replay:
    """Brings a log's live edits to a context, request by request.

    Attributes:
        asleep: ids of the records that cannot apply to this history.
        unsettled: a longer history may bring the same records otherwise: some were made at a later
            request than this one has, or hide what it protects.
    """

    def __init__(self, log: EditLog, entries: Entries, present: Present) -> None:
        self.asleep: set[int] = set()
        self._entries, self._turns = entries, present.turns
        self._protected = protected(entries, present)
        live = log.live_since(-1)
        self.unsettled = any(record.request > present.turns for record in live)
        self._due: dict[int, list[EditRecord]] = {}
        due = 0  # a cut history has fewer requests than they were made in; their order stays
        for record in live:
            due = max(due, min(record.request, present.turns))
            self._due.setdefault(due, []).append(record)

    def apply(self, context: Context) -> None:
        """Makes the edits of the context's present request again."""
        for record in self._due.get(context.request, ()):
            changes = record.changes
            made = [change.index for change in changes if _is_creation(change)]
            if self._is_awake(context, record, made):
                place = _place_of_run(context, record)
                for change in changes:
                    self._make(context, change, place)
                if record.op == Op.RELOAD:
                    count_reloads(context, record.rows, 1)
            else:
                self.asleep.add(record.id)

    def _is_awake(self, context: Context, record: EditRecord, made: Sequence[int]) -> bool:
        there = [row[0] for row in record.rows if row[0] not in made]
        if not all(context.has_arrived(index) for index in there):
            return False
        if self._protected.forbids(record, there, self._turns):
            self.unsettled = True
            return False
        return not _reveals(context, record) and self._entries.revive(record, made)

    def _make(self, context: Context, change: Change, place: int) -> None:
        """Makes one change again; what an edit made goes to a place, where that is not -1."""
        c, index = context.columns, change.index
        if _is_creation(change):
            self._create(context, change, place)
            return
        if change.after is not None:
            position = _behind(context, change.after[1])
            context.move(index, position - (c.rank[index] < position))
        before, after = change.form
        if before != after != c.form[index]:  # a mark made on a stub does not make the stub
            context.set_form(index, after)
        if change.covered is not None:
            c.covered[index] = change.covered[1]
        c.mark[index] = change.mark[1]
        c.edited[index] = min(change.edited[1], context.request)
        c.reloaded[index] = min(change.reloaded[1], context.request)

    def _create(self, context: Context, change: Change, place: int) -> None:
        """Gives what an edit made its place again, as `Context.add` did."""
        assert change.after is not None
        c, index, entry = context.columns, change.index, self._entries.all[change.index]
        position = _behind(context, change.after[1]) if place < 0 else place
        was_sent = position < context.sent_length
        for name, value in (
            ("kind", entry.kind), ("leader", index), ("full", entry.full_tokens),
            ("exchange", entry.full_tokens), ("stub", entry.stub_tokens),
            ("reasoning", entry.has_reasoning), ("foldable", entry.foldable),
        ):  # fmt: skip
            getattr(c, name)[index] = value
        context.arrive(index)
        context.arrived_tokens -= c.size[index]  # it did not come from the host
        c.locked[index] = 0
        context.move(index, position)
        context.sent_length += was_sent


def _reveals(context: Context, record: EditRecord) -> bool:
    """True where an edit would show again what another one hides, made where that one slept."""
    form = context.columns.form
    return any(
        change.form[0] != change.form[1] != Form.ABSENT != change.form[0]
        and form[change.index] == Form.ABSENT
        for change in record.changes
    )


def _place_of_run(context: Context, record: EditRecord) -> int:
    """Returns where a summary of several goes: where they begin; -1 for any other edit."""
    rank = context.columns.rank
    run = record.op == Op.SUMMARIZE and "run" in record.params
    places = [rank[row[0]] for row in record.rows if rank[row[0]] >= 0] if run else []
    return min(places, default=-1)


def _is_creation(change: Change) -> bool:
    return change.after is not None and change.form[0] == Form.ABSENT


def _behind(context: Context, index: int) -> int:
    """Returns the position behind a segment; the front for -1, the end where it is not there.

    The user keeps the last word, as where something is shown again at the end.
    """
    if index < 0:
        return 0
    rank, last = context.columns.rank[index], context.length - 1
    if rank >= 0:
        return rank + 1
    return last if context.latest_user_rank == last and not context.in_tool_loop else last + 1
