"""Potentials of a context: what the key facts that cannot be read now are expected to cost.

Both are minus an expected cost over the demands of this request and all later ones, as a share of
the task's raw bill. Facts of one demand that the same segments state are lost and found together,
so they count once. Written p for how probably the agent notices what it sees in their place:

    key_info  -(1 - p) * miss_price_requests * raw price of the demand's request
    reload    -p * (tokens of the original at the write price + words that ask for it)

The end has potential 0, and so has the start, where all that has arrived is in full.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum

from contextpilot.core.segment import Form
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


@dataclass(slots=True)
class _Groups:
    """The groups of a task, and by segment those whose facts it states or supersedes."""

    groups: list[_Group] = field(default_factory=list)
    of_segment: dict[int, list[int]] = field(default_factory=dict)


class PotentialTracker:
    """Follows one episode; looks again only at what its latest edits may have changed.

    Args:
        episode: what is followed, from where it stands now.
        past: also watch the facts of requests that were sent, for `all_readable`.

    Attributes:
        key_info, reload: the potentials, at most 0.
    """

    def __init__(self, episode: Episode, *, past: bool = False) -> None:
        self._episode, self._past = episode, past
        self._known = _groups_of(episode.prepared)
        self.rebuild()

    def rebuild(self) -> None:
        """Looks at everything anew, as after a restore."""
        self._seen, self._request = len(self._episode.log), self._episode.context.request
        self._unreadable: dict[int, tuple[float, float]] = {}  # with what each adds to both
        self._displaced: set[int] = set()  # shown by no original in full, so perhaps by a copy
        self._look(range(len(self._known.groups)))
        self._add_up()

    def update(self) -> tuple[float, float]:
        """Follows the episode to where it is; returns how much `key_info` and `reload` changed."""
        key_info, reload = self.key_info, self.reload
        self._follow()
        self._add_up()
        return self.key_info - key_info, self.reload - reload

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
            for change in log[number].changes:
                if change.index < native:
                    stale.update(of_segment.get(change.index, ()))
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

    def _costs(self, group: _Group) -> tuple[float, float] | None:
        """Returns what a group adds to both potentials; None where it can be read."""
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
        )

    def _add_up(self) -> None:
        # `fsum` does not depend on the order, so that restored episodes add up to the same.
        groups, request = self._known.groups, self._request
        costs = [c for n, c in self._unreadable.items() if groups[n].request >= request]
        if self._episode.ended:
            costs = []
        self.key_info = fsum(key_info for key_info, _ in costs)
        self.reload = fsum(reload for _, reload in costs)


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
                known.groups.append(_Group(demand.request, tuple(group), segments, demand.query))
    return known
