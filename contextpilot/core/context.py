"""The ordered segments, each in its form, that the agent's model sees now."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contextpilot.core.budget import TokenBudget
from contextpilot.core.columns import COLUMN_TYPE, Columns
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Form, Kind, Role

_FULL, _ABSENT = int(Form.FULL), int(Form.ABSENT)
_CONSTANT = ("kind", "leader", "full", "exchange", "stub", "reasoning", "foldable")


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context's whole state, as small arrays and numbers."""

    columns: tuple[bytes, ...]
    indices: int
    length: int
    total: int
    break_at: int
    sent_length: int
    request: int
    latest_user: int
    unread: tuple[int, ...]
    arrived_tokens: int
    cold: bool
    made: tuple[Interned, ...]
    resources: dict[str, int] = field(repr=False)


def constant_columns(
    entries: Sequence[Interned], members: Mapping[int, tuple[int, ...]]
) -> dict[str, memoryview]:
    """Returns the columns that do not change once a segment exists, for all contexts of a task."""
    together = {
        leader: sum(entries[i].full_tokens for i in group) for leader, group in members.items()
    }
    rows = [
        (
            e.kind, e.leader, e.full_tokens, together.get(e.leader, e.full_tokens),
            e.stub_tokens, e.has_reasoning, e.foldable,
        )
        for e in entries
    ]  # fmt: skip
    columns = zip(*rows, strict=True) if rows else [()] * len(_CONSTANT)
    return {
        name: memoryview(array(COLUMN_TYPE, column))
        for name, column in zip(_CONSTANT, columns, strict=True)
    }


class Context:
    """Segments in order, each in its form. All mutation of forms goes through `apply_edit`.

    Attributes:
        entries: interned segments by index; manager-made ones are appended.
        members: per exchange leader, the indices of the whole exchange.
        budget, prefix_tokens: the limits, and what is sent before the first segment.
        length: number of positions in `order`, absent segments included.
        total: tokens of what is visible, without the fixed prefix.
        break_at: first position that differs from the last request; what lies before is cached.
        sent_length: number of positions that the last request had.
        request: number of requests sent so far.
        latest_user: index of the latest user text; it is pinned. -1: none.
        unread: indices that arrived since the last request.
        cold: the provider's cache has run out since the last request.
    """

    def __init__(
        self,
        entries: Sequence[Interned],
        members: dict[int, tuple[int, ...]],
        budget: TokenBudget,
        *,
        prefix_tokens: int = 0,
        columns: Columns | None = None,
        constants: Mapping[str, memoryview] | None = None,
    ) -> None:
        """Begins empty. `constants` is what `constant_columns` returns, where it is at hand."""
        self.entries: list[Interned] = list(entries)
        self.members = members
        self.budget = budget
        self.prefix_tokens = prefix_tokens
        self.columns = columns or Columns.allocate(max(16, len(entries) + 16))
        while self.columns.capacity < len(entries):
            self.columns.grow()
        self.native = len(entries)
        self.columns.reset()
        for name, values in (constants or constant_columns(entries, members)).items():
            getattr(self.columns, name)[: self.native] = values
        self.length = self.total = self.break_at = self.sent_length = 0
        self.request = self.arrived_tokens = 0
        self.latest_user = -1
        self.unread: list[int] = []
        self.resources: dict[str, int] = {}
        self.cold = False

    # ---- reading -------------------------------------------------------------------------

    def form(self, index: int) -> Form:
        """Returns the form that a segment is in."""
        return Form(self.columns.form[index])

    def has_arrived(self, index: int) -> bool:
        """True once a segment has a place in the order."""
        return self.columns.rank[index] >= 0

    def visible(self) -> Iterator[int]:
        """Yields the indices of what the agent's model sees, in order."""
        form = self.columns.form
        return (i for i in self.columns.order[: self.length] if form[i])

    def text(self, index: int) -> str:
        """Returns what is readable of a segment now."""
        return self.entries[index].text(self.form(index))

    def group(self, index: int) -> tuple[int, ...]:
        """Returns the whole exchange of a segment, or the segment alone."""
        return self.members.get(self.columns.leader[index], (index,))

    @property
    def used_tokens(self) -> int:
        """Tokens of the next request: fixed prefix and everything visible."""
        return self.prefix_tokens + self.total

    @property
    def overflows(self) -> bool:
        """True where the next request would be refused: what is unread may be edited too."""
        return self.used_tokens > self.budget.input_limit

    @property
    def under_pressure(self) -> bool:
        """True from the compression threshold on."""
        return self.used_tokens > self.budget.threshold_tokens

    @property
    def has_pending_break(self) -> bool:
        """True where an edit has already broken the prefix that the last request cached."""
        return self.break_at < self.sent_length

    @property
    def in_tool_loop(self) -> bool:
        """True where the agent is between a call's result and its next turn."""
        if not self.length:
            return False
        last = self.columns.order[self.length - 1]
        return self.entries[last].segment.role == Role.TOOL

    @property
    def latest_user_rank(self) -> int:
        """Position of the latest user text; everything behind it is the open tool loop."""
        return self.columns.rank[self.latest_user] if self.latest_user >= 0 else -1

    def cached_tokens(self) -> int:
        """Returns the tokens that the provider still has cached, fixed prefix included."""
        if self.cold or not self.sent_length:
            return 0
        return self.prefix_tokens + self.tokens_before(self.break_at)

    def tokens_before(self, position: int) -> int:
        """Returns the visible tokens in front of a position."""
        return sum(map(self.columns.size.__getitem__, self.columns.order[:position]))

    # ---- arrivals and requests ---------------------------------------------------------------

    def arrive(self, index: int) -> None:
        """Appends a segment that the host has added to its history."""
        entry = self.entries[index]
        segment = entry.segment
        self._place(index, entry, self.length)
        c = self.columns
        group = self.members.get(entry.leader)
        if group is None:
            c.settled[index] = not segment.pending
            c.pinned[index], c.locked[index] = segment.pinned, entry.has_reasoning
        else:
            self._join(index, group)
        if segment.role == Role.USER and segment.kind == Kind.TEXT:
            self._pin_latest_user(index)
        if entry.resource:
            older = self.resources.get(entry.resource)
            if older is not None:
                c.superseded[older] = 1
            self.resources[entry.resource] = index
        for i in entry.references:
            c.references[i] += 1
            c.referenced[i] = self.request
        self.unread.append(index)
        self.arrived_tokens += c.size[index]

    def _join(self, index: int, group: tuple[int, ...]) -> None:
        """Settles an exchange that a segment completes, or makes it wait for more."""
        c, entries = self.columns, self.entries
        turn = entries[group[0]]
        settled = not turn.segment.pending
        pinned = False
        for i in group:
            settled = settled and c.rank[i] >= 0
            pinned = pinned or entries[i].segment.pinned
        c.pinned[index], c.locked[index] = pinned, turn.has_reasoning
        for i in group:  # a late result is unread, and so is its exchange as a whole
            if c.sent[i] and c.rank[i] >= 0:
                self.unread.append(i)
            c.settled[i], c.sent[i] = settled, 0

    def mark_sent(self) -> None:
        """Notes that the context was sent as it is: nothing is unread, and all of it is cached."""
        sent = self.columns.sent
        for i in self.unread:
            sent[i] = 1
        self.unread.clear()
        self.arrived_tokens = 0
        self.break_at = self.sent_length = self.length
        self.cold = False

    def send(self) -> None:
        """Ends a request: it was sent, and the agent's turn begins."""
        self.mark_sent()
        self.request += 1

    # ---- mutation, for `apply_edit` and undo only --------------------------------------------

    def set_form(self, index: int, form: int) -> None:
        """Shows a segment in another form, and notes where the prefix breaks."""
        c = self.columns
        size = self.entries[index].tokens(form)
        self.total += size - c.size[index]
        c.size[index] = size
        c.form[index] = form
        self.touch(c.rank[index])

    def touch(self, position: int) -> None:
        """Notes that a position no longer shows what the last request had there."""
        if position < self.break_at:
            self.break_at = position

    def add(self, entry: Interned, position: int) -> int:
        """Inserts a manager-made segment at a position; returns its index."""
        index = len(self.entries)
        self.entries.append(entry)
        self._place(index, entry, position)
        c = self.columns
        c.kind[index], c.leader[index] = entry.kind, entry.leader
        c.full[index] = c.exchange[index] = entry.full_tokens
        c.stub[index] = entry.stub_tokens
        c.reasoning[index], c.foldable[index] = entry.has_reasoning, entry.foldable
        c.settled[index] = 1
        self.unread.append(index)
        return index

    def move(self, index: int, position: int) -> None:
        """Moves a segment so that it stands at `position` of the order without it."""
        c = self.columns
        start = c.rank[index]
        if start == position:
            return  # the prefix stays what it was
        low, high = min(start, position), max(start, position)
        if start < position:
            c.order[start:position] = c.order[start + 1 : position + 1]
        else:
            c.order[position + 1 : start + 1] = c.order[position:start]
        c.order[position] = index
        self._number(low, high + 1)
        self.touch(low)

    def _number(self, start: int, stop: int) -> None:
        """Notes the positions of what stands between two of them."""
        rank = self.columns.rank
        for position, index in enumerate(self.columns.order[start:stop].tolist(), start):
            rank[index] = position

    def _place(self, index: int, entry: Interned, position: int) -> None:
        """Opens a position for a segment and shows it there in full."""
        length = self.length
        while max(index, length) + 1 >= self.columns.capacity:
            self.columns.grow()
        c = self.columns
        c.order[position + 1 : length + 1] = c.order[position:length]
        c.order[position] = index
        self.length = length + 1
        self._number(position, length + 1)
        size = entry.full_tokens
        c.arrival[index], c.form[index], c.size[index] = self.request, _FULL, size
        self.total += size
        if position < self.sent_length:
            self.sent_length += 1
            self.touch(position)

    def _pin_latest_user(self, index: int) -> None:
        """The latest user request is pinned; the one before it is released."""
        if self.latest_user >= 0:
            former = self.latest_user
            self.columns.pinned[former] = self.entries[former].segment.pinned
        self.columns.pinned[index] = 1
        self.latest_user = index

    # ---- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> ContextSnapshot:
        """Returns the whole state; copies small arrays only."""
        indices = len(self.entries)
        return ContextSnapshot(
            self.columns.dump(indices), indices, self.length, self.total, self.break_at,
            self.sent_length, self.request, self.latest_user, tuple(self.unread),
            self.arrived_tokens, self.cold, tuple(self.entries[self.native :]),
            dict(self.resources),
        )  # fmt: skip

    def restore(self, snapshot: ContextSnapshot) -> None:
        """Returns to a snapshot of this context, or of one with the same task."""
        self.entries[self.native :] = snapshot.made
        self.columns.load(snapshot.columns, snapshot.indices)
        self.length, self.total = snapshot.length, snapshot.total
        self.break_at, self.sent_length = snapshot.break_at, snapshot.sent_length
        self.request, self.latest_user = snapshot.request, snapshot.latest_user
        self.unread[:] = snapshot.unread
        self.arrived_tokens = snapshot.arrived_tokens
        self.cold = snapshot.cold
        self.resources = dict(snapshot.resources)
