"""A plan of an episode's edits, and what it costs, exactly but for where copies are inserted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.columns import NEVER
from contextpilot.core.invariants import COOLDOWN_REQUESTS
from contextpilot.core.segment import Form, Kind, Role
from contextpilot_envs.oracle.coverage import Coverage
from contextpilot_envs.oracle.needs import last_need, needs_of
from contextpilot_envs.simulator.prepared import PreparedTask

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FORMS = (Form.STUB, Form.OUTLINE, Form.SUMMARY)
"""How a segment may leave its full form, besides being dropped."""

SMALL = 8
"""With so few segments every form of every segment is considered."""

OVERFLOW_PRICE = 1e3
"""Per token over the window: a plan that does not fit must lose to every one that does."""

EDITS_PER_REQUEST = 15
CROWDING_PRICE = 1e5
"""Per edit beyond what one request allows, and per copy that hysteresis forbids."""

UNMET_PRICE = 1e6
"""Per needed fact that nothing shows: the plan of an oracle misses nothing."""


@dataclass(slots=True)
class Plan:
    """When each segment leaves its full form, in which form, and when its exchange is dropped.

    Attributes:
        leave: (N,) request before which it is folded or summarized; the horizon: never.
        form: (N,) index into FORMS.
        drop: (N,) request before which its exchange is dropped; equal within an exchange.
        copy: (N,) request before which the original is shown again at the end; horizon: never.
        copy_leave: (N,) request before which that copy is dropped.
    """

    leave: Ints
    form: Ints
    drop: Ints
    copy: Ints
    copy_leave: Ints

    def clone(self) -> Plan:
        """Returns an independent copy."""
        return Plan(
            self.leave.copy(), self.form.copy(), self.drop.copy(), self.copy.copy(),
            self.copy_leave.copy(),
        )  # fmt: skip

    def put(self, other: Plan, indices: Ints) -> None:
        """Takes over what another plan says about some segments."""
        for name in self.__slots__:
            getattr(self, name)[indices] = getattr(other, name)[indices]


class PlanModel:
    """Everything about a task that planning needs, as arrays, and the price of a plan.

    Args:
        prepared: the task.
        results_only: plan nothing but folds of tool results, as clearing rules do.
        archive_slots: how many of those that left last can be reloaded; None: all.

    Attributes:
        needs: who holds what until when.
        full, sizes: (N,) and (3, N) tokens in full and in each of FORMS.
        start: (3, N) first request at which leaving in a form is legal; the horizon: never.
        drop_start: (N,) the same for dropping, over the whole exchange.
        ready, drop_ready: from when on no fact that the segment is to hold is lost by it.
        leaders: (N,) leader of each segment's exchange.
    """

    def __init__(
        self,
        prepared: PreparedTask,
        *,
        results_only: bool = False,
        archive_slots: int | None = None,
    ) -> None:
        task, entries = prepared.task, prepared.entries
        self.prepared, self.needs = prepared, needs_of(prepared)
        self._archive_slots = archive_slots
        self.horizon = task.requests
        self.count = len(entries)
        self.full = np.array([e.full_tokens for e in entries], np.float64)
        self.arrival = np.minimum(np.array(task.arrivals, np.int64), self.horizon)
        self.leaders = np.array([e.leader for e in entries], np.int64)
        self.sizes = np.repeat(self.full[None], len(FORMS), axis=0)
        self.ready = np.full((len(FORMS), self.count), self.horizon, np.int64)
        self.start = self.ready.copy()
        self.extra = np.zeros((len(FORMS), self.count))
        for i in range(self.count):
            if not results_only or entries[i].segment.kind == Kind.RESULT:
                self._variants(i)
        self.drop_ready = np.full(self.count, self.horizon, np.int64)
        self.drop_start = self.drop_ready.copy()
        if not results_only:
            self.drop_start = self._over_exchange(self.needs.drop_from)
            self.drop_ready = np.maximum(self.drop_start, self._over_exchange(self._needed_to()))
        self._coverage = Coverage(prepared, self.needs, FORMS)
        self.cumulated = np.concatenate([[0.0], np.cumsum(self.full)])
        self._arriving = np.bincount(
            self.arrival, weights=self.full, minlength=self.horizon
        )[: self.horizon]  # fmt: skip
        self.limit = prepared.budget.input_limit
        prices = prepared.config.price_table
        self.prices = prices
        self._outputs = prices.output * sum(prepared.output_tokens)
        self._cold = np.zeros(self.horizon, bool)
        self._cold[[t for t in task.cold_requests if t < self.horizon]] = True
        self._each = np.arange(self.count)
        self._positions = self._each.astype(np.float64)
        self._is_user_text = np.array(
            [e.segment.role == Role.USER and e.segment.kind == Kind.TEXT for e in entries]
        )
        self._is_leader = self.leaders == self._each

    def empty(self) -> Plan:
        """Returns the plan that edits nothing."""
        never = np.full(self.count, self.horizon, np.int64)
        return Plan(
            never.copy(), np.zeros(self.count, np.int64), never.copy(), never.copy(), never.copy()
        )

    def bill(self, plan: Plan) -> float:
        """Returns the plan's price in input-token equivalents, with penalties where it cannot be.

        A segment's life is full, then a smaller form, then absent; a copy is a segment more. The
        prefix breaks at the first position that changes before a request.
        """
        leaves = plan.leave < plan.drop
        leave = np.where(leaves, plan.leave, self.horizon)
        after = np.where(leaves, self.sizes[plan.form, self._each], self.full)
        copies = np.nonzero(plan.copy < self.horizon)[0]
        times, deltas, places = self._events(plan, leave, after, copies)
        change = np.bincount(times, weights=deltas, minlength=self.horizon) + self._arriving
        total = self.prepared.prefix_tokens + np.cumsum(change)
        price = self._price(total, self._cached(total, times, deltas, places)) + self._outputs
        price += self.extra[plan.form, self._each][leave < self.horizon].sum()
        price += UNMET_PRICE * self._coverage.unmet(
            leave, plan.form, plan.drop, plan.copy, plan.copy_leave
        )
        price += OVERFLOW_PRICE * np.maximum(0.0, total - self.limit).sum()
        if len(copies):
            price += CROWDING_PRICE * self._rash_copies(plan, leave, copies)
        if len(times) > EDITS_PER_REQUEST:
            price += CROWDING_PRICE * self._crowded(plan, leave, copies)
        return float(price)

    def _events(
        self, plan: Plan, leave: Ints, after: Floats, copies: Ints
    ) -> tuple[Ints, Floats, Floats]:
        """Returns what changes: before which request, by how many tokens, and where."""
        shown, at = self.full[copies], self._copy_places(plan.copy[copies])
        times = np.concatenate([leave, plan.drop, plan.copy[copies], plan.copy_leave[copies]])
        deltas = np.concatenate([after - self.full, -after, shown, -shown])
        places = np.concatenate([self._positions, self._positions, at, at])
        live = times < self.horizon
        return times[live], deltas[live], places[live]

    def _crowded(self, plan: Plan, leave: Ints, copies: Ints) -> int:
        """Returns how many edits are more than their requests allow."""
        dropped = plan.drop[self._is_leader]
        edits = np.bincount(np.concatenate([leave, dropped, plan.copy[copies]]))[: self.horizon]
        return int(np.maximum(0, edits - EDITS_PER_REQUEST).sum())

    def _rash_copies(self, plan: Plan, leave_time: Ints, copies: Ints) -> int:
        """Returns how many copies cannot be made then, or keep their original from leaving."""
        again = plan.copy[copies]
        left, gone = leave_time[copies], plan.drop[copies]
        hidden = np.maximum(
            np.where(left <= again, left, NEVER), np.where(gone <= again, gone, NEVER)
        )
        rash = (again - hidden < COOLDOWN_REQUESTS) | (hidden == NEVER)
        rash |= (gone > again) & (gone < again + COOLDOWN_REQUESTS)
        if self._archive_slots is not None:
            since = (plan.drop >= gone[:, None]) & (plan.drop < again[:, None])
            rash |= since.sum(axis=1) > self._archive_slots
        return int(np.count_nonzero(rash))

    def _cached(self, total: Floats, times: Ints, deltas: Floats, places: Floats) -> Floats:
        """Returns the tokens that each request still finds cached."""
        cached = np.concatenate([[0.0], total[:-1]])
        if len(times):
            first = np.full(self.horizon, np.inf)
            np.minimum.at(first, times, places)
            broken = np.nonzero(np.isfinite(first))[0]
            edge = first[broken]
            before = (times[None] <= broken[:, None]) & (places[None] < edge[:, None])
            kept = self.cumulated[np.ceil(edge).astype(np.int64)] + before @ deltas
            cached[broken] = np.minimum(cached[broken], self.prepared.prefix_tokens + kept)
        cached[self._cold] = 0.0
        return cached

    def _copy_places(self, copy: Ints) -> Floats:
        """A copy stands behind everything that had arrived by then, but for a user's last word."""
        arrived = np.searchsorted(self.arrival, copy, side="right")
        places: Floats = arrived - 0.5 - self._is_user_text[arrived - 1]
        return places

    def _price(self, total: Floats, cached: Floats) -> float:
        prices = self.prices
        before = np.concatenate([[0.0], total[:-1]])
        cached = np.where(before < prices.minimum_prefix_tokens, 0.0, cached)
        warm = prices.cached_read * cached + prices.cache_write * (total - cached)
        return float(
            np.where(total < prices.minimum_prefix_tokens, prices.input * total, warm).sum()
        )

    def _variants(self, i: int) -> None:
        """Fills in from when on, how small and at what price segment i can leave its full form."""
        entry, pairs = self.prepared.entries[i], self.needs.of[i]
        may = self.needs.may[i]
        start = int(self.needs.fold_from[i])
        if start >= self.horizon:
            return
        for f, form in enumerate(FORMS):
            if form != Form.STUB and not may and self.count > SMALL:
                continue  # nothing in it is needed: hardly ever is more than a stub of use
            if not self.prepared.allows(i, form):
                continue
            if form == Form.SUMMARY:
                tokens, cost = self.prepared.summary_of(i)
                if tokens >= entry.full_tokens:
                    continue
                self.extra[f, i] = cost
                self.sizes[f, i] = tokens
            else:
                self.sizes[f, i] = entry.tokens(form)
            self.start[f, i] = start
            needed = last_need(self.prepared, pairs, i, form)
            self.ready[f, i] = min(self.horizon, max(start, needed + 1))

    def _needed_to(self) -> Ints:
        """Returns per segment the first request that needs nothing of it any more."""
        return np.array(
            [last_need(self.prepared, p, i, Form.ABSENT) + 1 for i, p in enumerate(self.needs.of)],
            np.int64,
        )

    def _over_exchange(self, own: Ints) -> Ints:
        """Returns the latest of each exchange's times, for each of its segments."""
        group = np.zeros(self.count, np.int64)
        np.maximum.at(group, self.leaders, own)
        return np.minimum(group[self.leaders], self.horizon)
