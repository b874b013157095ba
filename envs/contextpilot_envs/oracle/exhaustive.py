"""All plans of a task that is small enough to try them all, those that miss on purpose included."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from contextpilot_envs.oracle.plan import FORMS, Plan, PlanModel

LARGEST = 5000
"""Plans that are tried at most; about what five requests of two exchanges have."""

Life = tuple[tuple[tuple[int, int], ...], int]
"""Of an exchange: when and as what each of its segments leaves, and when all of it is dropped."""


def every_plan(model: PlanModel) -> Iterator[Plan]:
    """Yields every plan without copies, or nothing where there are too many."""
    groups = [np.nonzero(model.leaders == leader)[0] for leader in np.unique(model.leaders)]
    if prod(_count(model, group.tolist()) for group in groups) > LARGEST:
        return
    for lives in product(*(_lives(model, group.tolist()) for group in groups)):
        plan = model.empty()
        for group, (leaving, drop) in zip(groups, lives, strict=True):
            plan.drop[group] = drop
            for i, (time, form) in zip(group.tolist(), leaving, strict=True):
                plan.leave[i], plan.form[i] = time, form
        yield plan


def _leavings(model: PlanModel, i: int) -> list[tuple[int, int]]:
    starts = [_earliest(model, i, int(start)) for start in model.start[:, i]]
    times = [(t, f) for f in range(len(FORMS)) for t in range(starts[f], model.horizon)]
    return [(model.horizon, 0), *times]


def _drops(model: PlanModel, group: list[int]) -> list[int]:
    start = _earliest(model, group[-1], int(model.drop_start[group[0]]))
    return [model.horizon, *range(start, model.horizon)]


def _earliest(model: PlanModel, i: int, start: int) -> int:
    """Returns the first request to try: a full window lifts what protects the unread."""
    arrival = int(model.arrival[i])
    full = arrival < model.horizon and model.prepared.raw.tokens[arrival] > model.limit
    return arrival if full and start == arrival + 1 else start


def _count(model: PlanModel, group: list[int]) -> int:
    """Returns an upper bound of an exchange's lives."""
    return prod(len(_leavings(model, i)) for i in group) * len(_drops(model, group))


def _lives(model: PlanModel, group: list[int]) -> list[Life]:
    never = model.horizon
    return [
        (leaving, drop)
        for drop in _drops(model, group)
        for leaving in product(*(_leavings(model, i) for i in group))
        if all(time < drop or time == never for time, _ in leaving)
    ]
