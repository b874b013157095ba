"""Cost against success: the front of each rule family, and token ratios at matched success.

Two policies can only be compared on tokens where they succeed equally often. A family of rules over
a grid of settings has a whole front of costs and successes; its cost at a given success is read off
between two neighbouring points of that front, which playing each on a part of the tasks attains. A
single policy has one point, so its ratio exists only where it succeeds as often as the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contextpilot.evaluation.slices import (
    SUCCESS,
    Group,
    ReportPlan,
    Slice,
    billed_share,
    pair_key,
)
from contextpilot.evaluation.statistics import FloatArray, Interval, interval_of, resampled_means


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A named policy: its bill as a share of raw's, and its success in [0, 1]."""

    policy: str
    cost: Interval
    success: Interval


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One setting of a rule family: mean bill as a share of raw's, mean success in [0, 1]."""

    family: str
    policy: str
    cost: float
    success: float


@dataclass(frozen=True, slots=True)
class Front:
    """All that the cost-against-success plot of one slice shows.

    Attributes:
        measure: the success it is about, "demand_success" or "task_success".
        points: the plan's policies that have rows, in its order.
        grid: every setting of every family that has rows.
        pareto: indices into `grid` of the settings that no other one beats, by rising cost.
    """

    slice: Slice
    measure: str
    points: tuple[FrontPoint, ...]
    grid: tuple[GridPoint, ...]
    pareto: tuple[int, ...]


def front_of(group: Group, plan: ReportPlan) -> Front:
    """Returns the cost-against-success front of one slice."""
    success = SUCCESS[plan.success]
    points = []
    for policy in plan.policies:
        cost = group.interval(policy, billed_share, plan.seed)
        share = group.interval(policy, success, plan.seed)
        if cost is not None and share is not None:
            points.append(FrontPoint(policy, cost, share))
    grid = []
    for family, policies in plan.families.items():
        for policy in policies:
            rows = group.of(policy)
            if rows:
                cost_mean = float(np.mean([billed_share(row) for row in rows]))
                success_mean = float(np.mean([success(row) for row in rows]))
                grid.append(GridPoint(family, policy, cost_mean, success_mean))
    best = pareto([point.cost for point in grid], [point.success for point in grid])
    return Front(group.slice, plan.success, tuple(points), tuple(grid), best)


def pareto(costs: Sequence[float], successes: Sequence[float]) -> tuple[int, ...]:
    """Returns the indices that no other beats on both, by rising cost and success."""
    kept: list[int] = []
    best = -np.inf
    for index in np.lexsort((-np.asarray(successes), np.asarray(costs))):
        if successes[index] > best:
            best = successes[index]
            kept.append(int(index))
    return tuple(kept)


def cost_at(
    costs: npt.ArrayLike, successes: npt.ArrayLike, level: float, margin: float = 0.0
) -> float:
    """Returns the cost at which a front of points `(P,)` reaches a success of `level`.

    Linear between neighbours of the Pareto front; below its cheapest point that point's cost;
    infinite where the level is more than `margin` above its best success.
    """
    cost, success = np.asarray(costs, dtype=np.float64), np.asarray(successes, dtype=np.float64)
    order = np.lexsort((-success, cost))
    cost, success = cost[order], success[order]
    best_before = np.maximum.accumulate(np.concatenate(([-np.inf], success[:-1])))
    kept = success > best_before
    if not kept.any() or level > success[kept][-1] + margin:
        return float("inf")
    return float(np.interp(level, success[kept], cost[kept]))


def matched_ratio(group: Group, policy: str, level: str, plan: ReportPlan) -> Interval | None:
    """Returns the policy's billed share over that of the policy `level`, if it succeeds as often.

    None where its success is lower than that of `level` by more than the margin on the episodes
    that both have, or where they have none in common.
    """
    columns = _paired_columns(group, (policy,), level, plan)
    if columns is None:
        return None
    values, clusters = columns
    (cost, own), (base_cost, base) = values[:, :2].mean(axis=0), values[:, 2:].mean(axis=0)
    # The tiny slack keeps a policy exactly at the margin in, whatever the float's last digit.
    if own < base - plan.margin - 1e-12:
        return None
    draws = resampled_means(values, clusters, plan.seed)
    return interval_of(float(cost / base_cost), draws[:, 0] / draws[:, 2], len(set(clusters)))


def family_ratio(group: Group, family: str, level: str, plan: ReportPlan) -> Interval | None:
    """Returns the family's cost at the success of the policy `level`, over the cost of `level`.

    The front is found anew in each resample, so the interval covers the choice of the settings. An
    end is infinite where the family falls short of that success in that share of the resamples.
    """
    members = tuple(policy for policy in plan.families[family] if group.of(policy))
    columns = _paired_columns(group, members, level, plan)
    if columns is None:
        return None
    values, clusters = columns
    mean = _ratio_at_match(values.mean(axis=0), plan.margin)
    if not np.isfinite(mean):
        return None
    draws = resampled_means(values, clusters, plan.seed)
    ratios = np.array([_ratio_at_match(draw, plan.margin) for draw in draws])
    return interval_of(mean, ratios, len(set(clusters)))


def _ratio_at_match(means: FloatArray, margin: float) -> float:
    """Returns the front's cost at the success of the last pair, over that pair's cost."""
    cost, success = means[-2:]
    return cost_at(means[:-2:2], means[1:-2:2], float(success), margin) / float(cost)


def _paired_columns(
    group: Group, policies: Sequence[str], level: str, plan: ReportPlan
) -> tuple[FloatArray, list[str]] | None:
    """Returns (cost, success) column pairs `(N, 2 * P + 2)`, those of `level` last, and clusters.

    Rows are the episodes that all of them have; None where there are none.
    """
    if not policies or not group.of(level):
        return None
    success = SUCCESS[plan.success]
    tables = [
        {pair_key(row): (billed_share(row), success(row)) for row in group.of(policy)}
        for policy in (*policies, level)
    ]
    keys = [key for key in tables[-1] if all(key in table for table in tables)]
    if not keys:
        return None
    clusters = group.clusters(level)
    values = np.array([[number for table in tables for number in table[key]] for key in keys])
    return values, [clusters[key] for key in keys]
