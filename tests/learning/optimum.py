"""The highest return of a tiny task, by exact search on the simulator itself.

Best-first search over edits with an admissible bound (A*; Hart, Nilsson and Raphael, 1968): the
first finished episode that is taken up is the best one. States that play on alike are visited again
only when they were reached at a lower cost, which also makes the order of the edits of one request
immaterial.

The alphabet leaves out what cannot be part of an optimum here:

- outlines: longer than stubs, and they state no fact of these tasks;
- summaries: the summarizer reads every token for 1 and writes for 5, where a stub is free;
- `expire` with a delay: a mark that is due earlier can leave whenever the later one could;
- flushes as folds: a fold of the first marked segment takes along those behind it;
- reloads of what nobody will demand;
- reload in place: it breaks the prefix where the copy at the end does not, for as many tokens;
- reorder: only for documents, notes and copies, of which the order changes no request's tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeAlias

from contextpilot.core.budget import UNLIMITED
from contextpilot.core.context import Context
from contextpilot.core.edit import Drop, Edit, Expire, Fold, Placement, Reload
from contextpilot.core.invariants import COOLDOWN_REQUESTS, is_legal, legal_among
from contextpilot.core.segment import Form, Kind
from contextpilot_envs.simulator.episode import Episode, EpisodeSnapshot
from contextpilot_envs.simulator.prepared import PreparedTask

ALPHABET = ("keep", "fold", "drop", "expire", "flush", "reload")

_FULL = int(Form.FULL)
_EDITED = ("form", "mark", "sent", "covered", "rank", "order", "pinned")
_TOLERANCE = 1e-9

_Node: TypeAlias = tuple[float, int, int, int, EpisodeSnapshot, tuple[str, ...]]
"""Minus its bound, minus its request, its number, edits of this request, its state, its edits."""


@dataclass(frozen=True)
class Found:
    """What a search found: the highest return (J + 1), and the edits that lead to it."""

    value: float
    edits: tuple[str, ...]
    visited: int


def optimum(prepared: PreparedTask, noise_seed: int, alphabet: Collection[str] = ALPHABET) -> Found:
    """Returns the highest return of all policies that edit with an alphabet.

    Args:
        prepared: the task.
        noise_seed: what its agent will notice.
        alphabet: some of `ALPHABET`.
    """
    episode, relaxation = Episode(prepared, noise_seed), Relaxation(prepared)
    queue: list[_Node] = [(-relaxation.bound(episode), 0, 0, 0, episode.bookmark(), ())]
    cheapest: dict[object, float] = {}
    visited = counter = 0
    while queue:
        bound, _, _, step, bookmark, path = heappop(queue)
        episode.rewind(bookmark)
        visited += 1
        if episode.ended:
            return Found(-bound, path, visited)
        for name, edit in edits(episode, alphabet):
            if edit is not None:
                episode.commit(edit)
            sends = edit is None or step + 1 >= prepared.config.max_edits
            if sends:
                episode.send()
            following = 0 if sends else step + 1
            key, cost = state_key(episode, following), -episode.objective
            if cost < cheapest.get(key, float("inf")) - _TOLERANCE:
                cheapest[key] = cost
                counter += 1
                child: _Node = (
                    -relaxation.bound(episode), -episode.context.request, counter, following,
                    episode.bookmark(), (*path, f"{bookmark.context.request}: {name}"),
                )  # fmt: skip
                heappush(queue, child)
            episode.rewind(bookmark)
    raise AssertionError("no episode ends")


def edits(episode: Episode, alphabet: Collection[str]) -> Iterator[tuple[str, Edit | None]]:
    """Yields what an alphabet allows now, by name; keep is None."""
    context = episode.context
    c = context.columns
    yield "keep", None
    shown = [i for i in context.visible() if not c.pinned[i]]
    for i in shown:
        if "flush" in alphabet and is_legal("flush_drop", context, i):
            behind = [j for j in shown if c.mark[j] >= 0 and c.rank[j] >= c.rank[i]]
            yield f"flush {i}", Drop(tuple(legal_among("flush_drop", context, behind)))
        if "drop" in alphabet and context.group(i)[0] == i and is_legal("drop", context, i):
            yield f"drop {i}", Drop((i,))
        if "expire" in alphabet and is_legal("expire", context, i):
            yield f"expire {i}", Expire((i,), 0)
        if "fold" in alphabet and is_legal("fold", context, i):
            yield f"fold {i}", Fold((i,))
    demanded = {
        segment
        for demands in episode.prepared.demands[context.request :]
        for demand in demands
        for fact in demand.facts
        for segment in episode.prepared.task.facts[fact].segments
    }
    for i in sorted(demanded):
        if "reload" in alphabet and is_legal("reload_at_end", context, i):
            yield f"reload {i}", Reload((i,), Placement.AT_END)


def state_key(episode: Episode, step: int) -> object:
    """Returns what the rest of an episode depends on, besides task, noise and further edits."""
    context, count = episode.context, len(episode.context.entries)
    long_ago = context.request - COOLDOWN_REQUESTS
    since = [
        max(getattr(context.columns, name)[i], long_ago)
        for name in ("edited", "reloaded")
        for i in range(count)
    ]
    made = tuple(origin(context, i) for i in range(context.native, count))
    return (
        step, context.request, context.break_at, context.sent_length, tuple(context.unread),
        context.cold, episode.carried, episode.succeeded, made, tuple(since),
        tuple(getattr(context.columns, name)[:count].tobytes() for name in _EDITED),
    )  # fmt: skip


class Relaxation:
    """A share of raw's bill that the rest of an episode costs at least.

    A token costs what a cached one does, or, where it is new or behind a break, what writing does.
    Relaxed: a request has any number of edits, stubs are free, the prefix breaks once, what nobody
    will demand leaves as soon as it was read, and a reload costs the writing of its tokens.
    """

    def __init__(self, prepared: PreparedTask, *, reloads: bool = True) -> None:
        task, prices = prepared.task, prepared.config.price_table
        # Without reloads of its own, a policy gets nothing back but what the agent asks for.
        self.fetch = 0.0 if reloads else prices.output * prepared.config.reload_output_tokens
        self.prepared, self.entries = prepared, prepared.entries
        cached = prepared.prefix_tokens >= prices.minimum_prefix_tokens
        self.read = prices.cached_read
        self.write = prices.cache_write if cached else min(prices.cache_write, prices.input)
        self.demanded: dict[int, list[int]] = {}
        for demand in sorted(task.demands, key=lambda demand: demand.request):
            for fact in demand.facts:
                (segment,) = task.facts[fact].segments
                self.demanded.setdefault(segment, []).append(demand.request)
        # Where the window is full, an unread call may be dropped; results and users' texts cost.
        limited = prepared.budget.max_context_tokens < UNLIMITED
        arriving = [
            sum(self.entries[i].full_tokens for i in new if not limited or self._faced(i))
            for new in prepared.arriving
        ]
        self.to_come = [self.write * sum(arriving[t + 1 :]) for t in range(task.requests)]

    def _faced(self, i: int) -> bool:
        return self.entries[i].segment.kind != Kind.TURN

    def bound(self, episode: Episode) -> float:
        """Returns the highest return (J + 1) that an episode can still come to."""
        if episode.ended:
            return episode.objective + 1.0
        failed = self.prepared.config.task_weight * (not episode.succeeded)
        return episode.objective + 1.0 - failed - self.bill(episode)

    def bill(self, episode: Episode) -> float:
        """Returns the least share of raw's bill that the present and all later requests cost."""
        context, task = episode.context, self.prepared.task
        now, left = context.request, task.requests - context.request
        first = self.write if now == 0 or context.cold else self.read
        total = self.prepared.prefix_tokens * (first + self.read * (left - 1)) + self.to_come[now]
        needs, unmet = self._needs(context)
        total += unmet
        shown = list(context.visible())
        pairs = [self._costs(context, i, needs.get(i, []), left) for i in shown]
        # In front of the first break nothing leaves any more; behind it everything may.
        least = cost = sum(stays for stays, _ in pairs)
        for stays, leaves in reversed(pairs):
            cost += leaves - stays
            least = min(least, cost)
        return (total + least) / self.prepared.raw.total

    def _needs(self, context: Context) -> tuple[dict[int, list[int]], float]:
        """Returns by visible segment when it is demanded, and what bringing back the rest costs."""
        needs: dict[int, list[int]] = {}
        unmet, form = 0.0, context.columns.form
        for segment, requests in self.demanded.items():
            coming = [request for request in requests if request >= context.request]
            full = self.entries[segment].full_tokens
            if coming and not context.has_arrived(segment):
                unmet += self._kept([self.prepared.task.arrivals[segment], *coming], full)
            if not coming or not context.has_arrived(segment):
                continue
            copies = range(context.native, len(context.entries))
            holders = [j for j in copies if form[j] == _FULL and origin(context, j) == segment]
            holders += [segment] * (form[segment] == _FULL)
            if len(holders) == 1:
                needs[holders[0]] = coming
            elif not holders:
                price = self.prepared.config.miss_price_requests * sum(
                    self.prepared.raw.requests[request] for request in coming
                )
                unmet += min(price, self.write * full + self.fetch + self._kept(coming, full))
        return needs, unmet

    def _kept(self, requests: Sequence[int], tokens: int) -> float:
        """Returns what tokens cost that are shown at each of some requests, the first not counted.

        Between two of them they stay, or leave and come back, whichever is cheaper.
        """
        back = self.write * tokens + self.fetch
        return sum(min(self.read * tokens * (b - a), back) for a, b in pairwise(requests))

    def _costs(
        self, context: Context, i: int, requests: Sequence[int], left: int
    ) -> tuple[float, float]:
        """Returns what a visible segment costs in front of the first break to come, and behind."""
        c, now = context.columns, context.request
        tokens = c.size[i]
        new = c.rank[i] >= min(context.break_at, context.sent_length)
        unread = not c.sent[i] and (not context.overflows or c.kind[i] == Kind.RESULT)
        stays = tokens * ((self.write if new else self.read) + self.read * (left - 1))
        lost = 0.0 if new else tokens * (self.write - self.read)
        if i < context.native and self.entries[i].segment.pinned:
            return stays, stays + lost
        if not requests:
            return stays, self.write * tokens * unread
        if unread:
            return stays, self.write * tokens + self._kept([now, *requests], tokens)
        if new:
            return stays, self.write * tokens + self._kept(requests, tokens)
        times = [now - 1, *requests]
        gaps = [self._kept(gap, tokens) for gap in pairwise(times)]
        # The break falls into one of the gaps, or behind the last demand where requests follow.
        last = requests[-1] == self.prepared.task.requests - 1
        return stays, sum(gaps) + last * max(0.0, min(self.write * tokens - gap for gap in gaps))


def origin(context: Context, i: int) -> int:
    """Returns the segment that a copy shows; -1 where it is none."""
    return int(getattr(context.entries[i], "origin", -1))
