"""Success as a function of the horizon: where a policy's curve bends, and which edits bend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

import numpy as np

from contextpilot.evaluation.rows import EvaluationRow, RemovedFact
from contextpilot.evaluation.slices import SUCCESS, Group, ReportPlan, Slice
from contextpilot.evaluation.statistics import LEVEL, Interval, interval_of, resampled_means
from contextpilot.evaluation.tables import Column, Table, TableRow

Item = TypeVar("Item", bound=Hashable)
MIN_CLUSTERS = 2


@dataclass(frozen=True, slots=True)
class HorizonPoint:
    """One policy at one horizon: success in [0, 1], and the paired difference to the reference.

    `difference` is None for the reference itself and where the two share no episode.
    """

    horizon: int
    success: Interval
    difference: Interval | None


@dataclass(frozen=True, slots=True)
class HorizonCurve:
    """Success by horizon of every policy of the plan that has rows, in its order."""

    slice: Slice
    measure: str
    reference: str
    horizons: tuple[int, ...]
    curves: tuple[tuple[str, tuple[HorizonPoint, ...]], ...]


@dataclass(frozen=True, slots=True)
class Bend:
    """The largest drop of success between neighbouring horizons that is clear of 0.

    `drop` is success at `before` minus success at `after`; its interval's level is corrected for
    the number of neighbouring pairs that were looked at.
    """

    policy: str
    before: int
    after: int
    drop: Interval


@dataclass(frozen=True, slots=True)
class BendExplanation:
    """Which facts were removed by which edit on the tasks that a bend lost.

    Attributes:
        flipped: episodes that fail after the bend and whose counterpart succeeded before it.
        unmatched: episodes that fail after the bend and have no counterpart before it.
        facts: (edit, fact kind, what the reader saw) -> count over both, most frequent first.
        lag: median number of requests between the edit and the need; NaN without such a fact.
    """

    bend: Bend
    flipped: int
    unmatched: int
    facts: tuple[tuple[tuple[str, str, str], int], ...]
    lag: float

    def by_edit(self) -> tuple[tuple[str, int], ...]:
        """Returns (edit, facts that it had removed), most frequent first."""
        counts: Counter[str] = Counter()
        for (op, _, _), count in self.facts:
            counts[op] += count
        return _ranked(counts)


def horizon_curve(
    group: Group, plan: ReportPlan, measure: str = "task_success"
) -> HorizonCurve | None:
    """Returns the curve over horizons at which the reference has at least two clusters.

    None with fewer than two such horizons: recorded sessions, each of its own length, make none.
    """
    clusters: dict[int, set[str]] = {}
    for row in group.of(plan.reference):
        clusters.setdefault(row.horizon, set()).add(row.cluster)
    horizons = tuple(h for h in sorted(clusters) if len(clusters[h]) >= MIN_CLUSTERS)
    if len(horizons) < 2:
        return None
    curves = []
    for policy in plan.policies:
        points = tuple(_points(group, policy, plan, measure, horizons))
        if points:
            curves.append((policy, points))
    return HorizonCurve(group.slice, measure, plan.reference, horizons, tuple(curves))


def _points(
    group: Group, policy: str, plan: ReportPlan, measure: str, horizons: Sequence[int]
) -> Iterable[HorizonPoint]:
    for horizon in horizons:
        here = at_horizon(group, horizon)
        success = here.interval(policy, SUCCESS[measure], plan.seed)
        if success is not None:
            difference = (
                None
                if policy == plan.reference
                else here.difference(policy, plan.reference, SUCCESS[measure], plan.seed)
            )
            yield HorizonPoint(horizon, success, difference)


def at_horizon(group: Group, horizon: int) -> Group:
    """Returns the part of a group that is at one horizon."""
    rows = {
        policy: tuple(row for row in own if row.horizon == horizon)
        for policy, own in group.rows.items()
    }
    return Group(group.slice, rows)


def horizon_table(curve: HorizonCurve, group: Group, differences: bool = False) -> Table:
    """Returns success by horizon, or the paired differences to the reference."""
    columns = tuple(
        Column(f"horizon_{horizon}", f"{horizon} requests", 1, 100) for horizon in curve.horizons
    )
    rows = []
    for policy, points in curve.curves:
        if differences and policy == curve.reference:
            continue
        cells = {p.horizon: p.difference if differences else p.success for p in points}
        own = [row for row in group.of(policy) if row.horizon in curve.horizons]
        values = tuple(cells.get(horizon) for horizon in curve.horizons)
        rows.append(TableRow(policy, values, len(own), len({row.cluster for row in own})))
    name = curve.measure.replace("_", " ")
    if differences:
        title, key = f"{name} minus {curve.reference}'s by horizon, points", "horizon_difference"
    else:
        title, key = f"{name} by horizon, %", "horizon"
    return Table(key, title[0].upper() + title[1:], curve.slice, columns, tuple(rows))


def find_bend(
    rows: Sequence[EvaluationRow],
    horizons: Sequence[int],
    measure: str = "task_success",
    seed: int = 0,
) -> Bend | None:
    """Returns one policy's bend, or None where no drop between neighbours is clear of 0.

    Clusters are resampled over both horizons together, so that a cluster which occurs at both
    (the same generator seed at two lengths) is paired. The largest of several drops is a biased
    choice, so each is tested at a level corrected by Bonferroni.
    """
    pairs = tuple(pairwise(sorted(horizons)))
    bends = []
    for before, after in pairs:
        drop = _drop(rows, before, after, measure, seed, 1 - (1 - LEVEL) / len(pairs))
        if drop is not None and drop.low > 0:
            bends.append(Bend(rows[0].policy, before, after, drop))
    return max(bends, key=lambda bend: bend.drop.mean, default=None)


def _drop(
    rows: Sequence[EvaluationRow], before: int, after: int, measure: str, seed: int, level: float
) -> Interval | None:
    value = SUCCESS[measure]
    both = [row for row in rows if row.horizon in (before, after)]
    table = np.array(
        [[value(row) if row.horizon == h else np.nan for h in (before, after)] for row in both]
    )
    if not both or np.isnan(table).all(axis=0).any():
        return None
    clusters = [row.cluster for row in both]
    draws = resampled_means(table, clusters, seed)
    means = np.nanmean(table, axis=0)
    return interval_of(
        float(means[0] - means[1]), draws[:, 0] - draws[:, 1], len(set(clusters)), level
    )


def explain_bend(rows: Sequence[EvaluationRow], bend: Bend) -> BendExplanation:
    """Returns which facts were removed by which edit on tasks that fail only after the bend.

    `rows` are one policy's. Episodes of the two horizons belong together by cluster and seed; one
    counts as succeeding before the bend where all its counterparts succeeded. Episodes without a
    counterpart cannot be said to have flipped; they are counted apart.
    """
    succeeded: dict[tuple[str, int], bool] = {}
    for row in rows:
        if row.horizon == bend.before:
            key = row.cluster, row.seed
            succeeded[key] = succeeded.get(key, True) and row.task_success
    failing = [row for row in rows if row.horizon == bend.after and not row.task_success]
    flipped = [row for row in failing if succeeded.get((row.cluster, row.seed), False)]
    unmatched = [row for row in failing if (row.cluster, row.seed) not in succeeded]
    facts = [fact for row in (*flipped, *unmatched) for fact in row.removed_facts]
    lags = [fact.request - fact.removed_at for fact in facts if fact.removed_at >= 0]
    return BendExplanation(
        bend,
        len(flipped),
        len(unmatched),
        _ranked(Counter((fact.removed_by, fact.fact_kind, fact.seen) for fact in facts)),
        float(median(lags)) if lags else float("nan"),
    )


def removed_by_edit(facts: Iterable[RemovedFact]) -> tuple[tuple[str, int], ...]:
    """Returns (edit, silently missed facts that it had removed), most frequent first."""
    return _ranked(Counter(fact.removed_by for fact in facts))


def _ranked(counts: Counter[Item]) -> tuple[tuple[Item, int], ...]:
    return tuple(sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0]))))
