"""Every segment that a conversation has had: its id, its index, what was computed of it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from contextpilot.archives.base import Archive
from contextpilot.core.edit import EditRecord, Op
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Kind, Role, Segment, Source, Trust
from contextpilot.edits.references import GoalRelevance, ReferenceIndex, resource_of
from contextpilot.edits.services import Services
from contextpilot.errors import ArchiveError

SegmentKey: TypeAlias = tuple[int, int]
"""The number of a message, and the segment's block in it; of a turn of several the last number."""

_NOWHERE = Segment("", Role.USER, Kind.TEXT, (), Source.USER, Trust.USER)


@dataclass(frozen=True, slots=True)
class Present:
    """A history's segments, in its order.

    Attributes:
        indices: of the segments.
        arrivals: per segment, the request before which it was there: how many turns stand before
            it, a turn itself included.
        turns: how many turns there are, which is the number of the next request.
        renewed: entries of old indices have changed, so nothing derived from them holds.
        known: how many entries there were before.
    """

    indices: tuple[int, ...]
    arrivals: tuple[int, ...]
    turns: int
    renewed: bool
    known: int


class Entries:
    """Interned segments by index: the host's by first sight, and between them what edits made.

    Attributes:
        all: the entries; contexts share this list.
        keys: by index; None for what an edit made.
    """

    def __init__(self, services: Services) -> None:
        self.all: list[Interned] = []
        self.keys: list[SegmentKey | None] = []
        self._services = services
        self._blank = services.interned(_NOWHERE, leader=-1)
        self._index: dict[SegmentKey, int] = {}
        self._ids: list[str] = []
        self._natives = 0
        self._references = ReferenceIndex()
        self._relevance = GoalRelevance(services.goal)

    def id(self, index: int) -> str:
        """Returns the id of an index, whether or not its segment is at hand."""
        return self._ids[index]

    def index(self, segment_id: str) -> int:
        """Returns the index of an id, or -1."""
        try:
            return self._ids.index(segment_id)
        except ValueError:
            return -1

    def message(self, index: int) -> int:
        """Returns the number of the message that a segment is from; -1 for what an edit made."""
        key = self.keys[index]
        return -1 if key is None else key[0]

    def follow(self, goal: str) -> None:
        """Sets what relevance is measured against, from the next segment on."""
        self._services.goal = goal
        self._relevance = GoalRelevance(goal)

    def admit(self, segments: Sequence[Segment], numbers: Sequence[int]) -> Present:
        """Returns where the segments of a parsed history are, making entries for new ones.

        Args:
            segments: as parsed; positions are into `numbers`.
            numbers: of the history's messages; where a turn of several begins, that of its last.
        """
        known, renewed, turns = len(self.all), False, 0
        leaders: dict[str, int] = {}
        indices, arrivals = [], []
        for segment in segments:
            message, block = segment.position
            index = self._place((numbers[message], block))
            leader = leaders.setdefault(segment.exchange, index) if segment.exchange else index
            renewed |= self._renew(index, leader, segment) and index < known
            turns += segment.kind == Kind.TURN
            indices.append(index)
            arrivals.append(turns)
        return Present(tuple(indices), tuple(arrivals), turns, renewed, known)

    def note_made(self) -> None:
        """Gives ids to the entries that edits have appended to `all`."""
        while len(self._ids) < len(self.all):
            self._ids.append(f"m{len(self._ids)}")
            self.keys.append(None)

    def restore(self, keys: Sequence[SegmentKey | None]) -> None:
        """Makes room for the entries of a saved session; they come back when they are seen."""
        for key in keys:
            if key is None:
                self.all.append(self._blank)
                self.note_made()
            else:
                self._place(key)

    def revive(self, record: EditRecord, made: Sequence[int]) -> bool:
        """Brings back what a saved record's edit made; False where it is lost.

        Args:
            record: a record whose targets are at hand.
            made: indices of the segments that it made.
        """
        if record.op == Op.SUMMARIZE and record.rows and not made:
            return self._revive_summary_of(record)
        for index in made:
            if self.all[index] is not self._blank:
                continue
            if record.op == Op.RELOAD:
                origin = self.index(record.targets[0])
                self.all[index] = self._services.interned_copy(self.all[origin], origin, index)
                continue
            summary = self._archived(record.output)
            if summary is None:
                return False
            tokens = self._services.tokenizer.count(summary.text)
            self.all[index] = self._services.interned_summary(summary, index, tokens)
        return True

    def _revive_summary_of(self, record: EditRecord) -> bool:
        summary = self._archived(record.output)
        if summary is not None:
            tokens = self._services.shown_tokens(summary.text)
            self.all[record.rows[0][0]].set_summary(summary.text, tokens)
        return summary is not None

    def _archived(self, segment_id: str) -> Segment | None:
        archive: Archive = self._services.archive
        try:
            return archive.get(self._services.session, segment_id)
        except ArchiveError:
            return None

    def _place(self, key: SegmentKey) -> int:
        """Returns the index of a key; a new one is blank until it is renewed."""
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.all)
            self._natives += 1
            self.all.append(self._blank)
            self.keys.append(key)
            self._ids.append(f"s{self._natives}")
        return index

    def _renew(self, index: int, leader: int, segment: Segment) -> bool:
        """Gives an entry the host's present objects; True where more than that has changed."""
        segment_id = self._ids[index]
        exchange = f"x{self._ids[leader][1:]}" if segment.exchange else ""
        if (segment.id, segment.exchange) != (segment_id, exchange):
            segment = replace(segment, id=segment_id, exchange=exchange)
        entry = self.all[index]
        if entry is self._blank or len(entry.segment.parts) != len(segment.parts):
            turn = segment if leader == index else self.all[leader].segment
            self.all[index] = self._services.interned(
                segment,
                leader=leader,
                resource=resource_of(segment, turn),
                references=self._references.add(index, segment),
                goal_relevance=self._relevance.add(segment.text),
            )
            return True
        entry.segment = segment
        moved, entry.leader = entry.leader != leader, leader
        return moved
