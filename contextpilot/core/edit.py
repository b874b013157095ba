"""The seven edits, and the record that an applied or rejected one leaves.

Content edits (fold, summarize one segment) change a form; presence edits (drop, reorder, a run's
summary, reload) change what is there and where. Targets are segment indices of one context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from contextpilot.core.segment import Form


class Op(IntEnum):
    """The operations, in the order of the action layout."""

    KEEP = 0
    SUMMARIZE = 1
    FOLD = 2
    EXPIRE = 3
    DROP = 4
    RELOAD = 5
    REORDER = 6


class Placement(StrEnum):
    """Where a reloaded original appears."""

    IN_PLACE = "in_place"
    AT_END = "at_end"


class Position(StrEnum):
    """Where a reordered segment goes."""

    FRONT = "front"
    END = "end"


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing; ends the editing of this request."""


@dataclass(frozen=True, slots=True)
class Summarize:
    """One segment in place (`run` False), or a run that one summary segment then stands for."""

    targets: tuple[int, ...]
    max_tokens: int
    run: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """Deterministic stubs inside the segments' own messages; `form` is STUB or OUTLINE."""

    targets: tuple[int, ...]
    form: Form = Form.STUB


@dataclass(frozen=True, slots=True)
class Expire:
    """Marks a segment; it may leave from `requests` requests from now on. Free."""

    targets: tuple[int, ...]
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Drop:
    """Whole exchanges and standalone segments leave; only the archive has them."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reload:
    """An original returns: in its place, or as a copy at the end."""

    targets: tuple[int, ...]
    placement: Placement = Placement.AT_END


@dataclass(frozen=True, slots=True)
class Reorder:
    """A standalone segment moves to the front (behind what is pinned) or to the end."""

    targets: tuple[int, ...]
    position: Position = Position.END


Edit: TypeAlias = Keep | Summarize | Fold | Expire | Drop | Reload | Reorder

OP_OF: Mapping[type, Op] = MappingProxyType(
    {
        Keep: Op.KEEP,
        Summarize: Op.SUMMARIZE,
        Fold: Op.FOLD,
        Expire: Op.EXPIRE,
        Drop: Op.DROP,
        Reload: Op.RELOAD,
        Reorder: Op.REORDER,
    }
)


class Outcome(StrEnum):
    """What became of an edit."""

    APPLIED = "applied"
    REJECTED_INFLATED = "rejected_inflated"
    REJECTED_EMPTY_SUMMARY = "rejected_empty_summary"
    REJECTED_FAILED_SUMMARY = "rejected_summarizer_error"
    REJECTED_NOT_ARCHIVED = "rejected_archive_error"


ChangeRow: TypeAlias = tuple[int, ...]
"""A `Change` as plain numbers, which the garbage collector leaves alone: there are very many.

The index, then form, mark, edited, reloaded, after and covered, each before and after. The last two
are `UNCHANGED` where they are None in the `Change`.
"""

UNCHANGED: Final = -2
MOVED_FROM: Final = 9
"""Where a row has the segment that it stood behind before."""


class Change(NamedTuple):
    """One segment before and after an edit: what undo and replay need."""

    index: int  # type: ignore[assignment]  # a tuple's own `index` is not needed
    form: tuple[int, int]
    mark: tuple[int, int]
    edited: tuple[int, int]
    reloaded: tuple[int, int]
    after: tuple[int, int] | None = None
    """For a move: the segment that it stood behind, before and after (-1: at the front)."""
    covered: tuple[int, int] | None = None
    """The index of the summary that stands for it, before and after (-1: none), if that changes."""

    @classmethod
    def of(cls, row: ChangeRow) -> Change:
        """Returns what a row of numbers means."""
        index, form, shown, mark, marked, edited, again, reloaded, anew, *rest = row
        before, after, covered, covers = rest
        return cls(
            index, (form, shown), (mark, marked), (edited, again), (reloaded, anew),
            None if before == UNCHANGED else (before, after),
            None if covered == UNCHANGED else (covered, covers),
        )  # fmt: skip


class EditRecord(NamedTuple):
    """One line of the edit log.

    Attributes:
        id: position in the log.
        request: the request before which it was made.
        op: the operation.
        targets: ids of the segments that it names.
        params: its parameters as text.
        reason: the policy's own words, or which signal decided.
        before_tokens, after_tokens: of the context, without the fixed prefix.
        outcome: applied, or why not.
        break_position: index in the order from which on the cached prefix is lost; -1: unbroken.
        latency_seconds: of the edit itself, the summarizer included.
        output: id of the segment that it made; "" for none. Its content is in the archive.
        summarizer_tokens: (input, output) tokens that a summarizer used.
        undoes: id of the record that this one undoes; -1 for none.
        rows: what it did, segment by segment; `changes` gives the numbers names.
    """

    id: int
    request: int
    op: Op
    targets: tuple[str, ...]
    params: Mapping[str, str]
    reason: str
    before_tokens: int
    after_tokens: int
    outcome: Outcome = Outcome.APPLIED
    break_position: int = -1
    latency_seconds: float = 0.0
    output: str = ""
    summarizer_tokens: tuple[int, int] = (0, 0)
    undoes: int = -1
    rows: tuple[ChangeRow, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """What it did, segment by segment."""
        return tuple(map(Change.of, self.rows))
