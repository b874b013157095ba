"""Potentials of a context: what the key facts that cannot be read now are expected to cost.

Together they are minus what the context as it stands is expected to cost, as a share of the task's
raw bill, were nothing more edited. Facts of one demand that the same segments state are lost and
found together, so they count once. Written p for how probably the agent notices what it sees in
their place, over the demands of this request and all later ones:

    key_info  -(1 - p) * miss_price_requests * raw price of the demand's request,
              -task_weight * [how probably the task fails by what is missed, or 1 once it has]
    reload    -p * (tokens of the original at the write price + words that ask for it)
    rent      -(price of the next request, with its pending prefix break and summaries
                + cached price of what is shown now, in each request after it), against raw's

The end has potential 0, and so has the start, where all that has arrived is in full. An edit is so
paid at once what it is expected to bring, where its bill and its misses would come many requests
later and among those of all other edits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, prod

from contextpilot.core.segment import Form
from contextpilot_envs.simulator.billing import request_price
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import holder, need_of
from contextpilot_envs.simulator.prepared import PreparedTask

STRUCTURED_BONUS = 0.25
"""What losing a value that only works verbatim adds to `key_info`, as a share."""

STRUCTURED_KINDS = frozenset({"number", "code", "identifier", "path"})

_FULL = int(Form.FULL)


@dataclass(frozen=True, slots=True)
class _Group:
    """Facts of one demand that the same segments state."""

    request: int
    facts: tuple[int, ...]
    segments: tuple[int, ...]
    query: str
    decisive: bool
    """Whether the task fails where they are missed."""


@dataclass(slots=True)
class _Groups:
    """The groups of a task, and by segment those whose facts it states or supersedes."""

    groups: list[_Group] = field(default_factory=list)
    of_segment: dict[int, list[int]] = field(default_factory=dict)


Shaping = tuple[float, float, float]
"""Changes of `key_info`, `reload` and `rent`."""


class PotentialTracker:
    """Follows one episode; looks again only at what its latest edits may have changed.

    Args:
        episode: what is followed, from where it stands now.
        past: also watch the facts of requests that were sent, for `all_readable`.

    Attributes:
        key_info, reload: at most 0.
        rent: positive where less is shown than raw would show.
    """

    def __init__(self, episode: Episode, *, past: bool = False) -> None:
        self._episode, self._past = episode, past
        self._known = _groups_of(episode.prepared)
        self.rebuild()

    def rebuild(self) -> None:
        """Looks at everything anew, as after a restore."""
        self._seen, self._request = len(self._episode.log), self._episode.context.request
        self._unreadable: dict[int, Shaping] = {}  # with what each adds to both, and p
        self._displaced: set[int] = set()  # shown by no original in full, so perhaps by a copy
        self._look(range(len(self._known.groups)))
        self._add_up()

    def update(self) -> Shaping:
        """Follows the episode to where it is; returns how much the potentials changed."""
        key_info, reload, rent = self.key_info, self.reload, self.rent
        self._follow()
        self._add_up()
        return self.key_info - key_info, self.reload - reload, self.rent - rent

    def all_readable(self) -> bool:
        """True where every fact that is ever demanded and has arrived can be read now."""
        self._follow()
        return not self._unreadable

    def _follow(self) -> None:
        """Looks again at the groups that records and arrivals since the last look may concern."""
        episode, of_segment = self._episode, self._known.of_segment
        native, log, arriving = episode.context.native, episode.log, episode.prepared.arriving
        stale: set[int] = set()
        for number in range(self._seen, len(log)):
            for index, *_ in log[number].rows:
                if index < native:
                    stale.update(of_segment.get(index, ()))
                else:
                    stale |= self._displaced
        self._seen = len(log)
        last = min(episode.context.request, len(arriving) - 1)
        for request in range(self._request + 1, last + 1):
            for index in arriving[request]:
                stale.update(of_segment.get(index, ()))
        if self._request != episode.context.request:
            self._request = episode.context.request
            self._forget_past()
        self._look(stale)

    def _forget_past(self) -> None:
        if not self._past:
            groups, request = self._known.groups, self._request
            self._displaced = {n for n in self._displaced if groups[n].request >= request}
            for number in [n for n in self._unreadable if groups[n].request < request]:
                del self._unreadable[number]

    def _look(self, numbers: Iterable[int]) -> None:
        columns = self._episode.context.columns
        rank, form = columns.rank, columns.form
        for number in numbers:
            group = self._known.groups[number]
            self._unreadable.pop(number, None)
            self._displaced.discard(number)
            if group.request < self._request and not self._past:
                continue
            arrived = [i for i in group.segments if rank[i] >= 0]
            if not arrived or any(form[i] == _FULL for i in arrived):
                continue
            self._displaced.add(number)
            costs = self._costs(group)
            if costs is not None:
                self._unreadable[number] = costs

    def _costs(self, group: _Group) -> Shaping | None:
        """Returns what a group adds to `key_info` and `reload`, and p where a miss fails the task.

        None where it can be read.
        """
        prepared, context = self._episode.prepared, self._episode.context
        facts = [prepared.task.facts[n] for n in group.facts]
        missing = [fact for fact in facts if holder(prepared, context, fact) < 0]
        if not missing:
            return None
        need = need_of(context, missing[0], group.query)
        config, raw = prepared.config, prepared.raw
        noticed = config.notice_table.of(need.seen)
        structured = any(fact.kind in STRUCTURED_KINDS for fact in missing)
        missed = config.miss_price_requests * raw.requests[group.request]
        fetched = config.price_table.cache_write * context.entries[need.source].full_tokens
        fetched += config.price_table.output * config.reload_output_tokens
        return (
            -(1.0 - noticed) * (1.0 + STRUCTURED_BONUS * structured) * missed / raw.total,
            -noticed * fetched / raw.total,
            noticed if group.decisive else 1.0,
        )

    def _add_up(self) -> None:
        # `fsum` does not depend on the order, so that restored episodes add up to the same.
        episode, groups = self._episode, self._known.groups
        if episode.ended:
            self.key_info = self.reload = self.rent = 0.0
            return
        costs = [c for n, c in self._unreadable.items() if groups[n].request >= self._request]
        succeeds = prod(sorted(cost[2] for cost in costs)) * episode.succeeded
        failure = episode.prepared.config.task_weight * (1.0 - succeeds)
        self.key_info = fsum(cost[0] for cost in costs) - failure
        self.reload = fsum(cost[1] for cost in costs)
        self.rent = _rent(episode)


def _rent(episode: Episode) -> float:
    """Returns what raw would still be billed for what has arrived, minus what this context is."""
    prepared, context = episode.prepared, episode.context
    prices, raw, request = prepared.config.price_table, prepared.raw, context.request
    before = raw.tokens[request - 1] if request else 0
    raw_tokens, tokens = raw.tokens[request], context.used_tokens
    raw_cached = 0 if request in prepared.cold else before
    previous, summaries = episode.carried
    difference = request_price(prices, raw_cached, raw_tokens, before) - summaries
    difference -= request_price(prices, context.cached_tokens(), tokens, previous)
    later = prepared.task.requests - request - 1
    return (difference + prices.cached_read * later * (raw_tokens - tokens)) / raw.total


def _groups_of(prepared: PreparedTask) -> _Groups:
    """Returns the groups of a task, kept with it."""
    known: _Groups | None = prepared.memo.get("key_fact_groups")
    if known is None:
        known = prepared.memo["key_fact_groups"] = _Groups()
        facts = prepared.task.facts
        for demand in (demand for demands in prepared.demands for demand in demands):
            members: dict[tuple[int, ...], list[int]] = {}
            for fact in demand.facts:
                members.setdefault(facts[fact].segments, []).append(fact)
            for segments, group in members.items():
                concerned = {i for fact in group for i in facts[fact].stale_segments}
                for index in concerned.union(segments):
                    known.of_segment.setdefault(index, []).append(len(known.groups))
                decisive = demand.final or prepared.task.success == "no_silent_miss"
                known.groups.append(
                    _Group(demand.request, tuple(group), segments, demand.query, decisive)
                )
    return known
