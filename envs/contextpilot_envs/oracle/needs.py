"""Until when each segment is needed, read from the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.segment import Form, Kind, Role
from contextpilot_envs.simulator.prepared import PreparedTask

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Needs:
    """Which requests need which facts of a segment.

    Attributes:
        of: per segment, (request, fact) pairs that it is the designated holder of, in order.
        may: per segment, (request, fact) pairs that it could serve, pinned holders aside.
        sole: per segment, (request, fact) pairs that no other segment can serve.
        fold_from, drop_from: (N,) first request at which the segment may be folded, or its
            exchange dropped, by the invariants alone; the horizon where never.
    """

    of: tuple[tuple[tuple[int, int], ...], ...]
    may: tuple[tuple[tuple[int, int], ...], ...]
    sole: tuple[tuple[tuple[int, int], ...], ...]
    fold_from: Ints
    drop_from: Ints


def needs_of(prepared: PreparedTask) -> Needs:
    """Designates one holder per demanded fact: pinned ones first, then who is needed anyway."""
    task, entries = prepared.task, prepared.entries
    count = len(entries)
    fold_from, drop_from = _editable_from(prepared)
    of: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    may: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    sole: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    until = np.full(count, -1)
    faced = sorted(
        {(d.request, f) for d in task.demands for f in d.facts}, key=lambda x: (-x[0], x[1])
    )
    for request, fact_id in faced:
        known = [i for i in task.facts[fact_id].segments if task.arrivals[i] <= request]
        if any(entries[i].segment.pinned for i in known):
            continue
        for i in known:
            may[i].append((request, fact_id))
        if len(known) == 1:
            sole[known[0]].append((request, fact_id))
        chosen = min(
            known, key=lambda i: (until[i] < request, entries[i].full_tokens, -task.arrivals[i])
        )
        until[chosen] = max(until[chosen], request)
        of[chosen].append((request, fact_id))
    return Needs(
        tuple(tuple(sorted(pairs)) for pairs in of),
        tuple(tuple(sorted(pairs)) for pairs in may),
        tuple(tuple(sorted(pairs)) for pairs in sole),
        fold_from,
        drop_from,
    )


def last_need(
    prepared: PreparedTask, pairs: tuple[tuple[int, int], ...], index: int, form: Form
) -> int:
    """Returns the last request that needs a fact which `form` does not show; -1 for none."""
    facts = prepared.task.facts
    if form == Form.ABSENT:
        return max((request for request, _ in pairs), default=-1)
    shown = ""
    last = -1
    for request, fact_id in pairs:
        if request > last:
            shown = shown or prepared.entries[index].text(form)
            if facts[fact_id].value not in shown:
                last = request
    return last


def _editable_from(prepared: PreparedTask) -> tuple[Ints, Ints]:
    task, entries = prepared.task, prepared.entries
    horizon = task.requests
    users = [
        (i, task.arrivals[i])
        for i, e in enumerate(entries)
        if e.segment.role == Role.USER and e.segment.kind == Kind.TEXT
    ]
    fold = np.array([min(a + 1, horizon) for a in task.arrivals], np.int64)
    drop = fold.copy()
    for i, entry in enumerate(entries):
        group = prepared.members.get(entry.leader, (i,))
        pinned = any(entries[j].segment.pinned for j in group)
        pending = entries[group[0]].segment.pending
        next_user = next((a for j, a in users if j > i), horizon)
        if pinned or pending:
            fold[i] = drop[i] = horizon
            continue
        latest = max(task.arrivals[j] for j in group) + 1
        drop[i] = max(drop[i], latest)
        fold[i] = max(fold[i], latest)
        if entry.segment.role == Role.USER and entry.segment.kind == Kind.TEXT:
            fold[i], drop[i] = max(fold[i], next_user), max(drop[i], next_user)
        if entry.segment.has_reasoning:
            fold[i] = max(fold[i], next_user)
        if entries[group[0]].segment.has_reasoning:
            drop[i] = max(drop[i], next_user)
    return np.minimum(fold, horizon), np.minimum(drop, horizon)
