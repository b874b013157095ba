"""What makes an edit legal: small named conditions, intersected per operation.

A condition takes `Facts` and returns True where it holds. Facts are integers for one segment, or
arrays of integers for many (the action mask), and every condition is written with operators that
mean the same for both, so that a mask and the check inside `apply_edit` cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias

from contextpilot.core.context import Context
from contextpilot.core.segment import Form, Kind

# Plain integers: looking a member up in its enumeration costs more than the comparison.
_ABSENT, _FULL = int(Form.ABSENT), int(Form.FULL)
_TURN, _DOCUMENT, _IMAGE = int(Kind.TURN), int(Kind.DOCUMENT), int(Kind.IMAGE)
_NOTE, _SUMMARY, _COPY = int(Kind.NOTE), int(Kind.SUMMARY), int(Kind.COPY)

COOLDOWN_REQUESTS = 2
"""Requests for which a reloaded segment may not be hidden, nor a hidden one be reloaded."""

OUTLINE_MIN_TOKENS = 160
"""From this size on an outline (at most about 120 tokens) is always smaller than the original."""

SUMMARY_MIN_TOKENS = 80
"""Below this size a summary with its header saves nothing."""

Value: TypeAlias = Any
"""An int or bool, or an array of them; conditions work on both."""


FACT_COLUMNS = (
    "kind", "form", "size", "full", "exchange", "mark", "pinned", "reasoning", "locked",
    "foldable", "sent", "settled", "edited", "reloaded", "covered", "rank",
)  # fmt: skip
"""The columns that legality depends on."""


@dataclass(slots=True)
class Facts:
    """What legality depends on, for many segments at once: columns, and what their contexts say.

    Attributes:
        request, overflows, latest_user_rank: of each segment's context.
        room: tokens that still fit into its hard budget.
        Others: columns of `contextpilot.core.columns`.
    """

    kind: Value
    form: Value
    size: Value
    full: Value
    exchange: Value
    mark: Value
    pinned: Value
    reasoning: Value
    locked: Value
    foldable: Value
    sent: Value
    settled: Value
    edited: Value
    reloaded: Value
    covered: Value
    rank: Value
    request: Value
    overflows: Value
    latest_user_rank: Value
    room: Value


def _column(name: str) -> property:
    """Returns a property that reads a column at the segment in question."""
    column = attrgetter(name)
    return property(lambda facts: column(facts.columns)[facts.index])


class SegmentFacts:
    """The same of one segment at a time, read from its context when an invariant asks for it.

    Attributes:
        index: of the segment; may be set to another one's.
    """

    __slots__ = ("columns", "index", "latest_user_rank", "overflows", "request", "room")

    kind, form, size = map(_column, ("kind", "form", "size"))
    full, exchange = map(_column, ("full", "exchange"))
    mark, pinned, reasoning = map(_column, ("mark", "pinned", "reasoning"))
    locked, foldable, sent = map(_column, ("locked", "foldable", "sent"))
    settled, edited, reloaded = map(_column, ("settled", "edited", "reloaded"))
    covered, rank = map(_column, ("covered", "rank"))

    def __init__(self, context: Context, index: int = -1) -> None:
        self.columns, self.index = context.columns, index
        self.request = context.request
        self.latest_user_rank = context.latest_user_rank
        self.room = context.budget.input_limit - context.used_tokens
        self.overflows = self.room < 0


Invariant: TypeAlias = Callable[[Any], Value]
"""Takes `Facts` or `SegmentFacts`."""


def arrived(f: Any) -> Value:
    """The segment has a place in the order."""
    return f.rank >= 0


def visible(f: Any) -> Value:
    """Something of it is shown."""
    return f.form != _ABSENT


def whole(f: Any) -> Value:
    """It is shown in full."""
    return f.form == _FULL


def hidden(f: Any) -> Value:
    """It is not shown in full."""
    return f.form != _FULL


def not_pinned(f: Any) -> Value:
    """System prompt, goal and latest user request never leave."""
    return f.pinned == 0


def read(f: Any) -> Value:
    """The agent has seen it once, or said it; a request that would not fit lifts this too."""
    said = (f.kind == _TURN) & (f.exchange == f.full)  # a turn that awaits no results
    return (f.sent != 0) | said | (f.overflows != 0)


def settled(f: Any) -> Value:
    """Every call of its exchange has its result."""
    return f.settled != 0


def reasoning_untouched(f: Any) -> Value:
    """Reasoning in the open tool loop stays as the provider signed it."""
    return (f.reasoning == 0) | (f.rank < f.latest_user_rank)


def exchange_untouched(f: Any) -> Value:
    """An exchange whose turn has reasoning stays while its tool loop is open."""
    return (f.locked == 0) | (f.rank < f.latest_user_rank)


def not_just_reloaded(f: Any) -> Value:
    """Hysteresis: what was just reloaded stays for the cooldown."""
    return f.request - f.reloaded >= COOLDOWN_REQUESTS


def not_just_hidden(f: Any) -> Value:
    """Hysteresis: what was just hidden is not reloaded at once."""
    return f.request - f.edited >= COOLDOWN_REQUESTS


def shrinks_by_fold(f: Any) -> Value:
    """Its stub is smaller than what is shown."""
    return f.foldable != 0


def shrinks_by_outline(f: Any) -> Value:
    """Its outline is smaller than what is shown, whatever it says."""
    return (f.full >= OUTLINE_MIN_TOKENS) & (f.kind != _TURN)


def worth_a_summary(f: Any) -> Value:
    """It is large enough for a summary to save something."""
    return f.size >= SUMMARY_MIN_TOKENS


def can_be_rewritten(f: Any) -> Value:
    """Turns are never rewritten: their calls must stay what the results answer."""
    return (f.kind != _TURN) & (f.kind != _SUMMARY) & (f.kind != _IMAGE)


def due(f: Any) -> Value:
    """It is marked, and may leave now."""
    return (f.mark >= 0) & (f.mark <= f.request)


def unmarked(f: Any) -> Value:
    """It has no mark yet."""
    return f.mark < 0


def standalone(f: Any) -> Value:
    """No message order depends on it."""
    return (f.kind == _DOCUMENT) | (f.kind == _NOTE) | (f.kind == _COPY)


def not_covered(f: Any) -> Value:
    """No summary stands for it; the original beside its summary would say things twice."""
    return f.covered < 0


def fits(f: Any) -> Value:
    """One more full copy stays within the hard budget."""
    return f.full <= f.room


def exchange_fits(f: Any) -> Value:
    """What is absent returns with its whole exchange, and all of that must fit."""
    return (f.form != _ABSENT) | (f.exchange <= f.room)


def has_original(f: Any) -> Value:
    """Copies and summaries are not reloaded: what they stand for is."""
    return (f.kind != _COPY) & (f.kind != _SUMMARY)


_HIDE = (arrived, not_pinned, read, settled, not_just_reloaded)

LEGAL: Mapping[str, tuple[Invariant, ...]] = MappingProxyType(
    {
        "fold": (*_HIDE, reasoning_untouched, whole, shrinks_by_fold),
        "outline": (*_HIDE, reasoning_untouched, whole, shrinks_by_fold, shrinks_by_outline),
        "flush_fold": (*_HIDE, reasoning_untouched, whole, shrinks_by_fold, due),
        "flush_drop": (*_HIDE, exchange_untouched, visible, due),
        "summarize": (*_HIDE, whole, worth_a_summary, can_be_rewritten),
        "summarize_run": (*_HIDE, exchange_untouched, visible),
        "expire": (arrived, not_pinned, whole, unmarked, shrinks_by_fold),
        "drop": (*_HIDE, exchange_untouched, visible),
        "reload_in_place": (
            arrived,
            hidden,
            not_just_hidden,
            not_covered,
            fits,
            exchange_fits,
            has_original,
        ),
        "reload_at_end": (arrived, hidden, not_just_hidden, fits, has_original),
        "reorder": (arrived, not_pinned, read, visible, standalone),
    }
)
"""Which invariants each way of editing must satisfy; the mask and `apply_edit` both read this."""


def legal_facts(rule: str, facts: Facts) -> Any:
    """Returns a bool array: where every invariant of a rule holds."""
    first, *rest = LEGAL[rule]
    allowed = first(facts)
    for invariant in rest:
        allowed = allowed & invariant(facts)
    return allowed


def violated(rule: str, context: Context, index: int) -> str:
    """Returns the name of the first invariant that an edit of one segment violates, or ""."""
    facts = SegmentFacts(context, index)
    for invariant in LEGAL[rule]:
        if not invariant(facts):
            return invariant.__name__
    return ""


def is_legal(rule: str, context: Context, index: int) -> bool:
    """True where every invariant of a rule holds for one segment."""
    return not violated(rule, context, index)


def legal_among(rule: str, context: Context, indices: Iterable[int]) -> list[int]:
    """Returns the segments for which every invariant of a rule holds."""
    facts, invariants, legal = SegmentFacts(context), LEGAL[rule], []
    for index in indices:
        facts.index = index
        for invariant in invariants:
            if not invariant(facts):
                break
        else:
            legal.append(index)
    return legal
