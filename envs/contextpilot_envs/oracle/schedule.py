"""Plans as schedules: before which requests the prefix breaks, and from which position on.

What lies behind a break leaves with it once it is ready, since it costs nothing more. A schedule
has one number a request where a plan has several a segment, so whole batches move at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.oracle.plan import Plan, PlanModel
from contextpilot_envs.oracle.starts import drop_ready, independent

Ints = NDArray[np.int64]

PERIODS = (0, 4, 1, 2, 8)
"""Schedules to start from: a break every so many requests; 0: none."""

BACK = (1, 2, 3, 5, 8, 13, 21, 34, 55)
"""A break is tried where what arrived so many requests ago begins, and at the front."""


class Schedules:
    """Turns schedules into plans and improves them.

    A schedule is an array (H,): per request the position from which on the prefix breaks before
    it; the number of segments where it does not break.
    """

    def __init__(self, model: PlanModel, lone: Plan) -> None:
        self.model, self._lone = model, lone
        requests = np.arange(model.horizon)[:, None]
        self._may_leave = requests >= lone.leave[None]
        self._may_drop = requests >= drop_ready(model, lone)[None]
        self._positions = np.arange(model.count)
        self._begins = np.searchsorted(model.arrival, np.arange(model.horizon))

    def plan(self, schedule: Ints) -> Plan:
        """Returns the plan in which everything leaves with the first break that it can."""
        plan, never = self._lone.clone(), self.model.horizon
        behind = schedule[:, None] <= self._positions[None]
        leaves = behind & self._may_leave
        drops = behind[:, self.model.leaders] & self._may_drop
        plan.leave[:] = np.where(leaves.any(axis=0), leaves.argmax(axis=0), never)
        plan.drop[:] = np.where(drops.any(axis=0), drops.argmax(axis=0), never)
        plan.copy[plan.leave >= plan.copy] = never  # never hidden before its copy is due
        return plan

    def periodic(self, every: int) -> Ints:
        """Returns a schedule with a break every so many requests; none for 0."""
        horizon, count = self.model.horizon, self.model.count
        schedule = np.full(horizon, count)
        if every:
            schedule[every::every] = self._begins[: horizon - every : every]
        return schedule

    def improved(self, start: Ints, rng: np.random.Generator, evaluations: int) -> Plan:
        """Returns the plan of the schedule that no other place or time of a break improves.

        Long sessions stop after so many evaluations.
        """
        schedule, used = start.copy(), 0
        price = self.model.bill(self.plan(schedule))
        while used < evaluations:
            before = price
            for t in rng.permutation(np.arange(1, self.model.horizon)).tolist():
                for candidate in self._moves(schedule, t):
                    cost, used = self.model.bill(self.plan(candidate)), used + 1
                    if cost < price - 1e-6:
                        price, schedule = cost, candidate
                if used >= evaluations:
                    break
            if price > before - 1e-6:
                break
        return self.plan(schedule)

    def _moves(self, schedule: Ints, t: int) -> Iterator[Ints]:
        count, horizon = self.model.count, self.model.horizon
        places = [count, *(int(self._begins[t - back]) for back in BACK if back <= t), 0]
        for place in dict.fromkeys(places):
            if place != schedule[t]:
                candidate = schedule.copy()
                candidate[t] = place
                yield candidate
        for other in (t - 1, t + 1, t - 2, t + 2):
            if 0 < other < horizon and schedule[t] < count:
                candidate = schedule.copy()
                candidate[other] = min(schedule[t], schedule[other])
                candidate[t] = count
                yield candidate


def scheduled(model: PlanModel, seed: int, evaluations: int, starts: int) -> list[Plan]:
    """Returns an improved plan for the first `starts` of PERIODS, with and without copies."""
    rng, plans = np.random.default_rng(seed), []
    for copies in (False, True):
        lone = independent(model, copies=copies)
        if copies and not (lone.copy < model.horizon).any():
            continue
        schedules = Schedules(model, lone)
        plans += [
            schedules.improved(schedules.periodic(every), rng, evaluations)
            for every in PERIODS[:starts]
        ]
    return plans
