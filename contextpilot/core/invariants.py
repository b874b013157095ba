"""What makes an edit legal: small named conditions, intersected per operation.

A condition takes `Facts` and returns True where it holds. Facts are integers for one segment, or
arrays of integers for many (the action mask), and every condition is written with operators that
mean the same for both, so that a mask and the check inside `apply_edit` cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from contextpilot.core.columns import Columns
from contextpilot.core.context import Context
from contextpilot.core.segment import Form, Kind

COOLDOWN_REQUESTS = 2
"""Requests for which a reloaded segment may not be hidden, nor a hidden one be reloaded."""

OUTLINE_MIN_TOKENS = 160
"""From this size on an outline (at most about 120 tokens) is always smaller than the original."""

SUMMARY_MIN_TOKENS = 80
"""Below this size a summary with its header saves nothing."""

Value: TypeAlias = Any
"""An int or bool, or an array of them; conditions work on both."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What legality depends on, per segment (columns) and per context (the last four)."""

    kind: Value
    form: Value
    size: Value
    full: Value
    mark: Value
    pinned: Value
    reasoning: Value
    locked: Value
    foldable: Value
    sent: Value
    settled: Value
    edited: Value
    reloads: Value
    covered: Value
    rank: Value
    request: Value
    overflows: Value
    latest_user_rank: Value
    room: Value
    """Tokens that still fit into the hard budget."""


FACT_COLUMNS = (
    "kind", "form", "size", "full", "mark", "pinned", "reasoning", "locked", "foldable", "sent", "settled",
    "edited", "reloads", "covered", "rank",
)  # fmt: skip
"""The columns among the facts, in order."""


def facts_of(context: Context, index: int) -> Facts:
    """Returns the facts of one segment."""
    c: Columns = context.columns
    return Facts(
        c.kind[index], c.form[index], c.size[index], c.full[index], c.mark[index],
        c.pinned[index], c.reasoning[index], c.locked[index], c.foldable[index], c.sent[index], c.settled[index],
        c.edited[index], c.reloads[index], c.covered[index], c.rank[index], context.request,
        int(context.overflows), context.latest_user_rank,
        context.budget.input_limit - context.used_tokens,
    )  # fmt: skip


Invariant: TypeAlias = Callable[[Facts], Value]


def arrived(f: Facts) -> Value:
    """The segment has a place in the order."""
    return f.rank >= 0


def visible(f: Facts) -> Value:
    """Something of it is shown."""
    return f.form != Form.ABSENT


def whole(f: Facts) -> Value:
    """It is shown in full."""
    return f.form == Form.FULL


def hidden(f: Facts) -> Value:
    """It is not shown in full."""
    return f.form != Form.FULL


def not_pinned(f: Facts) -> Value:
    """System prompt, goal and latest user request never leave."""
    return f.pinned == 0


def read(f: Facts) -> Value:
    """The agent has seen it once; only a request that would not fit lifts this."""
    return (f.sent != 0) | (f.overflows != 0)


def settled(f: Facts) -> Value:
    """Every call of its exchange has its result."""
    return f.settled != 0


def reasoning_untouched(f: Facts) -> Value:
    """Reasoning in the open tool loop stays as the provider signed it."""
    return (f.reasoning == 0) | (f.rank < f.latest_user_rank)


def exchange_untouched(f: Facts) -> Value:
    """An exchange whose turn has reasoning stays while its tool loop is open."""
    return (f.locked == 0) | (f.rank < f.latest_user_rank)


def not_just_reloaded(f: Facts) -> Value:
    """Hysteresis: what was just reloaded stays for the cooldown."""
    return (f.reloads == 0) | (f.request - f.edited >= COOLDOWN_REQUESTS)


def not_just_hidden(f: Facts) -> Value:
    """Hysteresis: what was just hidden is not reloaded at once."""
    return f.request - f.edited >= COOLDOWN_REQUESTS


def shrinks_by_fold(f: Facts) -> Value:
    """Its stub is smaller than what is shown."""
    return f.foldable != 0


def shrinks_by_outline(f: Facts) -> Value:
    """Its outline is smaller than what is shown, whatever it says."""
    return (f.full >= OUTLINE_MIN_TOKENS) & (f.kind != Kind.TURN)


def worth_a_summary(f: Facts) -> Value:
    """It is large enough for a summary to save something."""
    return f.size >= SUMMARY_MIN_TOKENS


def can_be_rewritten(f: Facts) -> Value:
    """Turns are never rewritten: their calls must stay what the results answer."""
    return (f.kind != Kind.TURN) & (f.kind != Kind.SUMMARY) & (f.kind != Kind.IMAGE)


def due(f: Facts) -> Value:
    """It is marked, and may leave now."""
    return (f.mark >= 0) & (f.mark <= f.request)


def unmarked(f: Facts) -> Value:
    """It has no mark yet."""
    return f.mark < 0


def standalone(f: Facts) -> Value:
    """No message order depends on it."""
    return (f.kind == Kind.DOCUMENT) | (f.kind == Kind.NOTE) | (f.kind == Kind.COPY)


def not_covered(f: Facts) -> Value:
    """No summary stands for it; the original beside its summary would say things twice."""
    return f.covered < 0


def fits(f: Facts) -> Value:
    """One more full copy stays within the hard budget."""
    return f.full <= f.room


def has_original(f: Facts) -> Value:
    """Copies and summaries are not reloaded: what they stand for is."""
    return (f.kind != Kind.COPY) & (f.kind != Kind.SUMMARY)


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
        "reload_in_place": (arrived, hidden, not_just_hidden, not_covered, fits, has_original),
        "reload_at_end": (arrived, hidden, not_just_hidden, fits, has_original),
        "reorder": (arrived, not_pinned, read, visible, standalone),
    }
)
"""Which invariants each way of editing must satisfy; the mask and `apply_edit` both read this."""

def legal(rule: str, facts: Facts) -> Value:
    """Returns True where every invariant of a rule holds."""
    first, *rest = LEGAL[rule]
    allowed = first(facts)
    for invariant in rest:
        allowed = allowed & invariant(facts)
    return allowed


def violated(rule: str, facts: Facts) -> str:
    """Returns the name of the first invariant that one segment's facts violate, or ""."""
    for invariant in LEGAL[rule]:
        if not invariant(facts):
            return invariant.__name__
    return ""
