"""Coordinate descent and block moves over plans, under exact billing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.invariants import COOLDOWN_REQUESTS
from contextpilot_envs.oracle.plan import FORMS, Plan, PlanModel
from contextpilot_envs.oracle.schedule import scheduled
from contextpilot_envs.oracle.starts import gaps, independent, starts, use_copy

KEPT_GAPS = 3

TOLERANCE = 1e-6

KICK_SHARE = 10
"""What share of a descent's cap each disturbance of the best plan gets."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a plan is looked for.

    Attributes:
        segments: up to this many in the task.
        evaluations: cap of one descent; short tasks converge long before.
        starts: how many plans are improved.
        kicks: how often the best one is disturbed and improved again.
        schedules: how many schedules are improved, and the cap of evaluations of each.
    """

    segments: int
    evaluations: int
    starts: int
    kicks: int
    schedules: tuple[int, int]


EFFORTS = (
    Effort(24, 6000, 3, 16, (5, 3000)),
    Effort(80, 3000, 2, 4, (3, 1000)),
    Effort(1 << 30, 3000, 2, 0, (2, 500)),
)
"""Small tasks are searched until nothing helps; on long sessions a bill takes longer, and the
first descents find nearly all there is."""

Indices = NDArray[np.int64]
_Move = tuple[Indices, Plan]


def best_plans(model: PlanModel, seed: int = 0) -> list[Plan]:
    """Returns improved plans, the cheapest first, and the starts that they came from."""
    rng = np.random.default_rng(seed)
    effort = next(effort for effort in EFFORTS if model.count <= effort.segments)
    count, cap = effort.schedules
    planned = scheduled(model, seed, evaluations=cap, starts=count)
    initial = _distinct(model, [*starts(model), *planned])[: effort.starts]
    improved = [descend(model, plan, rng, effort.evaluations) for plan in initial]
    best, bill = _cheapest(model, improved)
    for _ in range(effort.kicks):
        kicked = _kicked(model, best, rng)
        candidate = descend(model, kicked, rng, effort.evaluations // KICK_SHARE)
        price = model.bill(candidate)
        if price < bill - TOLERANCE:
            best, bill = candidate, price
    return _distinct(model, [best, *improved, *initial, model.empty()])


def _distinct(model: PlanModel, plans: list[Plan]) -> list[Plan]:
    """Returns the plans by price, one of each price."""
    priced = {round(model.bill(plan), 3): plan for plan in reversed(plans)}
    return [priced[price] for price in sorted(priced)]


def _cheapest(model: PlanModel, plans: list[Plan]) -> tuple[Plan, float]:
    priced = [(model.bill(plan), k) for k, plan in enumerate(plans)]
    bill, k = min(priced)
    return plans[k], bill


def _kicked(model: PlanModel, plan: Plan, rng: np.random.Generator) -> Plan:
    """Returns a plan in which some exchanges, a run of them or any, start anew."""
    kicked, exchanges = plan.clone(), np.unique(model.leaders)
    count = int(rng.integers(1, max(2, len(exchanges) // 3)))
    if rng.random() < 0.5:
        first = int(rng.integers(len(exchanges)))
        chosen = exchanges[first : first + count]
    else:
        chosen = rng.choice(exchanges, count, replace=False)
    kicked.put(model.empty(), np.nonzero(np.isin(model.leaders, chosen))[0])
    style = int(rng.integers(3))
    for leader in chosen.tolist() if style else ():  # 0: all of it stays
        ready = int(model.drop_ready[leader])
        if ready < model.horizon:
            group = model.leaders == leader
            kicked.drop[group] = ready if style == 1 else rng.integers(ready, model.horizon)
    return kicked


def descend(model: PlanModel, start: Plan, rng: np.random.Generator, evaluations: int) -> Plan:
    """Returns the plan that no single segment and no block move improves (or the cap's)."""
    plan, bill, used = start.clone(), model.bill(start), 0
    while used < evaluations:
        before = bill
        for propose in (_single_moves, _block_moves):
            for indices, candidate in propose(model, plan, rng):
                saved = _part(plan, indices)
                if np.array_equal(saved, _part(candidate, indices)):
                    continue
                used += 1
                plan.put(candidate, indices)
                price = model.bill(plan)
                if price < bill - TOLERANCE:
                    bill = price
                else:
                    for name, values in zip(Plan.__slots__, saved, strict=True):
                        getattr(plan, name)[indices] = values
                if used >= evaluations:
                    return plan
        if bill >= before - TOLERANCE:
            return plan
    return plan


def _part(plan: Plan, indices: Indices) -> Indices:
    """Returns all that a plan says about some segments, (5, n)."""
    return np.array([getattr(plan, name)[indices] for name in Plan.__slots__])


def flush_times(model: PlanModel, plan: Plan) -> NDArray[np.int64]:
    """Returns the requests before which the prefix breaks, in order."""
    times = np.concatenate([plan.leave, plan.drop, plan.copy_leave[plan.copy < model.horizon]])
    return np.unique(times[times < model.horizon])


def _single_moves(model: PlanModel, plan: Plan, rng: np.random.Generator) -> Iterator[_Move]:
    """Yields for each exchange: other times and forms of its members, drop or no drop, copies."""
    order = rng.permutation(np.unique(model.leaders))
    for leader in order:
        group = np.nonzero(model.leaders == leader)[0]
        for i in group.tolist():
            yield from _leave_moves(model, plan, i, rng)
            yield from _copy_moves(model, plan, i, group)
        yield from _drop_moves(model, plan, group, rng)


def _leave_moves(model: PlanModel, plan: Plan, i: int, rng: np.random.Generator) -> Iterator[_Move]:
    one = np.array([i])
    for form in range(len(FORMS)):
        for ready in {int(model.ready[form, i]), int(model.start[form, i])}:
            for time in _times(model, plan, ready, rng):
                if (time, form) != (plan.leave[i], plan.form[i]) or plan.copy[i] < model.horizon:
                    yield one, _changed(model, plan, i, time, form)
    yield one, _changed(model, plan, i, model.horizon, 0)


def _copy_moves(model: PlanModel, plan: Plan, i: int, group: Indices) -> Iterator[_Move]:
    """Hidden during a gap between needs, folded or dropped, and shown again behind it."""
    if plan.copy[i] < model.horizon:
        return
    for gap in sorted(gaps(model, i), key=lambda gap: gap[0] - gap[1])[:KEPT_GAPS]:
        candidate = plan.clone()
        use_copy(model, candidate, i, gap)
        yield group, candidate
        away = max(gap[0], int(model.drop_start[i]))
        if away + COOLDOWN_REQUESTS <= gap[1]:
            candidate = candidate.clone()
            candidate.leave[i] = model.horizon
            candidate.drop[group] = away
            yield group, candidate


def _drop_moves(
    model: PlanModel, plan: Plan, group: Indices, rng: np.random.Generator
) -> Iterator[_Move]:
    leader = group[0]
    times = [model.horizon]
    for ready in {int(model.drop_ready[leader]), int(model.drop_start[leader])}:
        times += _times(model, plan, ready, rng)
    times += [int(t) + COOLDOWN_REQUESTS for t in plan.copy[group] if t < model.horizon]
    for time in dict.fromkeys(times):
        if time != plan.drop[leader] and time <= model.horizon:
            candidate = plan.clone()
            candidate.drop[group] = time
            yield group, candidate
            if time < model.horizon:  # dropped from full, without a fold before
                candidate = candidate.clone()
                candidate.leave[group] = model.horizon
                candidate.copy[group] = model.horizon
                yield group, candidate


def _changed(model: PlanModel, plan: Plan, i: int, time: int, form: int) -> Plan:
    candidate = plan.clone()
    candidate.leave[i], candidate.form[i] = time, form
    candidate.copy[i] = candidate.copy_leave[i] = model.horizon
    return candidate


def _times(model: PlanModel, plan: Plan, ready: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Returns when something that is ready may leave: at once, with the next batches, some time."""
    if ready >= model.horizon:
        return ()
    flushes = flush_times(model, plan)
    later = flushes[flushes >= ready][:3].tolist()
    return tuple(dict.fromkeys([ready, *later, int(rng.integers(ready, model.horizon))]))


def _block_moves(model: PlanModel, plan: Plan, rng: np.random.Generator) -> Iterator[_Move]:
    """Yields whole batches moved, merged, dissolved, and new batches at other times."""
    everyone = np.arange(model.count)
    lone = independent(model, copies=False)
    times = flush_times(model, plan)
    for k, time in enumerate(times):
        targets = [time - 2, time - 1, time + 1, time + 2, time + 4, model.horizon]
        if k + 1 < len(times):
            targets.append(times[k + 1])
        for target in targets:
            if 0 < target <= model.horizon:
                yield everyone, _shifted(model, plan, int(time), int(target))
    for time in rng.permutation(np.arange(1, model.horizon))[:24]:
        for drops in (False, True):
            for place in (0, model.count // 3, 2 * model.count // 3):
                yield everyone, _gathered(model, plan, lone, int(time), place, drops=drops)


def _shifted(model: PlanModel, plan: Plan, time: int, target: int) -> Plan:
    """Moves everything that leaves before request `time`, as far as it is ready by `target`."""
    candidate = plan.clone()
    everyone = np.arange(model.count)
    ready = model.ready[plan.form, everyone]
    folds = (plan.leave == time) & ((ready <= target) | (target == model.horizon))
    folds &= plan.copy == model.horizon
    drops = (plan.drop == time) & ((model.drop_ready <= target) | (target == model.horizon))
    candidate.leave[folds] = target
    candidate.drop[drops] = target
    return candidate


def _gathered(
    model: PlanModel, plan: Plan, lone: Plan, time: int, place: int, *, drops: bool
) -> Plan:
    """Lets everything behind `place` that is ready leave before request `time`."""
    candidate = plan.clone()
    behind = np.arange(model.count) >= place
    behind &= plan.copy == model.horizon
    folds = behind & (lone.leave <= time) & (plan.leave > time) & (plan.drop > time)
    candidate.leave[folds], candidate.form[folds] = time, lone.form[folds]
    if drops:
        whole = behind[model.leaders] & (model.drop_ready <= time) & (plan.drop > time)
        candidate.drop[whole] = time
    return candidate
