"""When two episodes of one task play on alike, whatever happened before."""

from __future__ import annotations

from contextpilot.core.columns import COLUMN_DEFAULTS
from contextpilot.core.interned import Interned
from contextpilot.core.invariants import COOLDOWN_REQUESTS, FACT_COLUMNS
from contextpilot_envs.simulator.episode import Episode, EpisodeSnapshot

_SINCE = ("edited", "reloaded")
"""Requests that matter for a cooldown only."""

_COMPARED = tuple(name for name in (*FACT_COLUMNS, "order") if name not in _SINCE)


def plays_on_alike(episode: Episode, snapshot: EpisodeSnapshot) -> bool:
    """True where the same edits from here on have the same effects, bills and misses.

    Args:
        episode: before a request's first edit.
        snapshot: of another episode of the task with the same noise, at the same request.
    """
    context, there = episode.context, snapshot.context
    if (
        context.total != there.total
        or context.length != there.length
        or context.break_at != there.break_at
        or context.sent_length != there.sent_length
        or context.request != there.request
        or context.latest_user != there.latest_user
        or context.cold != there.cold
        or len(context.entries) != there.indices
        or tuple(context.unread) != there.unread
        or episode.carried != (snapshot.previous_tokens, snapshot.pending_bill)
    ):
        return False
    made = context.entries[context.native :]
    if not all(map(_shows_the_same, made, there.made)):
        return False
    count, columns = there.indices, dict(zip(COLUMN_DEFAULTS, there.columns, strict=True))
    for name in _COMPARED:
        if getattr(context.columns, name)[:count].tobytes() != columns[name]:
            return False
    long_ago = context.request - COOLDOWN_REQUESTS
    for name in _SINCE:
        here, then = getattr(context.columns, name), memoryview(columns[name]).cast("i")
        if any(max(here[i], long_ago) != max(then[i], long_ago) for i in range(count)):
            return False
    return True


def _shows_the_same(left: Interned, right: Interned) -> bool:
    if left is right:
        return True
    return left.origin == right.origin and (left.origin >= 0 or left.segment == right.segment)
