"""Plans to start from: each segment on its own, gathered into batches of different sizes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from contextpilot.core.invariants import COOLDOWN_REQUESTS
from contextpilot.core.segment import Form
from contextpilot_envs.oracle.needs import last_need
from contextpilot_envs.oracle.plan import FORMS, Plan, PlanModel

THRESHOLDS = (0, 200, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)
"""Tokens that must have become free before a batch leaves."""


def starts(model: PlanModel) -> list[Plan]:
    """Returns plans for every batch size, with and without drops and copies, and the empty one."""
    plans = [model.empty()]
    for copies in (False, True):
        lone = independent(model, copies=copies)
        if copies and not (lone.copy < model.horizon).any():
            continue
        for drops in (False, True):
            plans.extend(batched(model, lone, threshold, drops=drops) for threshold in THRESHOLDS)
    return plans


def independent(model: PlanModel, *, copies: bool) -> Plan:
    """Returns for each segment alone the cheapest way to leave, as if prefixes never broke."""
    plan, prices = model.empty(), model.prices
    rent = prices.cached_read
    remaining = model.horizon - model.ready
    staying = rent * model.full * (model.ready - model.arrival)
    cost = staying + rent * model.sizes * remaining + model.extra
    cost = np.where(model.ready < model.horizon, cost, np.inf)
    best = cost.argmin(axis=0)
    chosen = np.isfinite(cost.min(axis=0))
    plan.form[chosen] = best[chosen]
    plan.leave[chosen] = model.ready[best[chosen], np.nonzero(chosen)[0]]
    if copies:
        for i in range(model.count):
            _bridge(model, plan, i, float(cost[:, i].min()))
    return plan


def _bridge(model: PlanModel, plan: Plan, i: int, cost_without: float) -> None:
    """Hides a segment during its longest gap and shows a copy when it is needed again.

    Whether that pays is left to the search where segments stay to the end anyway.
    """
    gap = longest_gap(model, i)
    if gap is None:
        return
    start, again = gap
    rent, write = model.prices.cached_read, model.prices.cache_write
    last = last_need(model.prepared, model.needs.of[i], i, Form.ABSENT)
    full, stub = model.full[i], model.sizes[0, i]
    cost = (
        rent * (full * (start - model.arrival[i]) + stub * (model.horizon - start))
        + write * full
        + rent * full * (last - again)
    )
    if cost < min(cost_without, rent * full * (model.horizon - model.arrival[i])):
        use_copy(model, plan, i, gap)


def use_copy(model: PlanModel, plan: Plan, i: int, gap: tuple[int, int]) -> None:
    """Writes into a plan that segment i is hidden during a gap and copied at its end."""
    last = last_need(model.prepared, model.needs.of[i], i, Form.ABSENT)
    plan.leave[i], plan.form[i], plan.copy[i] = gap[0], 0, gap[1]
    plan.copy_leave[i] = min(model.horizon, last + 1)


def longest_gap(model: PlanModel, i: int) -> tuple[int, int] | None:
    """Returns the longest of `gaps`, or None."""
    return max(gaps(model, i), key=lambda gap: gap[1] - gap[0], default=None)


def gaps(model: PlanModel, i: int) -> list[tuple[int, int]]:
    """Returns the (first request it may be hidden, request that needs it again), in order."""
    earliest = int(model.needs.fold_from[i])
    if earliest >= model.horizon or FORMS[0] != Form.STUB or model.sizes[0, i] >= model.full[i]:
        return []
    points = [earliest - 1, *sorted({request for request, _ in model.needs.of[i]})]
    return [
        (max(earliest, a + 1), b)
        for a, b in pairwise(points)
        if b - max(earliest, a + 1) >= COOLDOWN_REQUESTS
    ]


def batched(model: PlanModel, lone: Plan, threshold: int, *, drops: bool) -> Plan:
    """Returns a plan in which segments leave together once they free `threshold` tokens."""
    plan = lone.clone()
    everyone = np.arange(model.count)
    may_drop = drop_ready(model, lone) if drops else np.full(model.count, model.horizon)
    after = model.sizes[plan.form, everyone]
    waiting = np.where(plan.leave < model.horizon, plan.leave, model.horizon)
    plan.leave[:] = model.horizon
    size = model.full.copy()
    left = np.zeros(model.count, bool)
    gone = np.zeros(model.count, bool)
    total = float(model.prepared.prefix_tokens)
    for t in range(model.horizon):
        total += model.full[model.arrival == t].sum() + model.full[plan.copy == t].sum()
        dropping = ~gone & (may_drop <= t)
        leaving = ~left & ~gone & ~dropping & (waiting <= t)
        freed = size[dropping].sum() + (size - after)[leaving].sum()
        if freed <= 0 or (freed < threshold and total <= model.limit):
            continue
        plan.drop[dropping], plan.leave[leaving] = t, t
        total -= freed
        size[leaving] = after[leaving]
        size[dropping] = 0
        left |= leaving
        gone |= dropping
    return plan


def drop_ready(model: PlanModel, plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """When exchanges may be dropped; what has a copy may go once the copy is there."""
    ready = model.drop_ready.copy()
    for i in np.nonzero(plan.copy < model.horizon)[0]:
        group = np.nonzero(model.leaders == model.leaders[i])[0]
        others = [
            last_need(model.prepared, model.needs.of[j], int(j), Form.ABSENT) + 1
            for j in group
            if j != i
        ]
        floor = max(
            [
                int(model.needs.drop_from[group].max()),
                int(plan.copy[i]) + COOLDOWN_REQUESTS,
                *others,
            ]
        )
        ready[group] = min(model.horizon, floor)
    return ready
