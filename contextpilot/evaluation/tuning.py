"""Tuning rules on training tasks: every rule over its grid, the whole front kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from contextpilot.evaluation.front import pareto
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.runner import EngineFactory, Setting, evaluate
from contextpilot.policies.catalog import PolicySpec

OLDER_THAN = (0, 1, 2, 3, 5, 8)
BATCH_TOKENS = (0, 1000, 2000, 4000, 8000, 16000, 32000)
FLOORS = (40, 200, 1000)
TRIGGERS = (0.0, 0.5, 0.8)
KEEP_LAST = (0, 1, 3, 5, 8)


@dataclass(frozen=True, slots=True)
class GridPoint:
    """What one setting of a rule came to, averaged over tasks.

    Attributes:
        policy, params: which rule with which parameters.
        objective, demand_success, task_success: means.
        billed_share, billed_share_without_prefix: mean bill as a share of raw's.
        forced_reloads, silent_misses: means per episode.
        episodes: how many.
    """

    policy: str
    params: Mapping[str, Any]
    objective: float
    demand_success: float
    task_success: float
    billed_share: float
    billed_share_without_prefix: float
    forced_reloads: float
    silent_misses: float
    episodes: int


def _points(kind: str, **axes: Sequence[Any]) -> list[PolicySpec]:
    """Returns one policy per point of a grid."""
    names = sorted(axes)
    return [
        PolicySpec(kind, tuple(zip(names, values, strict=True)))
        for values in product(*(axes[name] for name in names))
    ]


def rule_grid() -> dict[str, list[PolicySpec]]:
    """Returns every rule's settings, N = 0, trigger = 0 and size floors included."""
    clear = [
        *_points(
            "clear_old_results", older_than=OLDER_THAN, batch_tokens=BATCH_TOKENS,
            floor_tokens=FLOORS, everything=(False, True),
        ),
        *_points(
            "clear_old_results", older_than=OLDER_THAN, batch_tokens=BATCH_TOKENS,
            floor_tokens=(40, 200), everything=(True,), calls=(True,),
        ),
        *_points(
            "clear_old_results", older_than=(0,), batch_tokens=BATCH_TOKENS,
            floor_tokens=(40, 200), keep_last=KEEP_LAST[1:],
        ),
        *_points(
            "clear_old_results", older_than=OLDER_THAN, batch_tokens=(0, 2000, 8000),
            floor_tokens=(40, 200), trigger=TRIGGERS[1:],
        ),
    ]  # fmt: skip
    shares = {"trigger": (0.5, 0.6, 0.8, 0.9, 1.0), "target": (0.3, 0.5, 0.7)}
    return {
        "truncation": _points("truncation", trigger=(1.0, 0.9, 0.8, 0.7, 0.5)),
        "fixed_summary": _points(
            "fixed_summary", trigger=(0.0, 0.5, 0.6, 0.8, 0.9), keep_requests=(1, 2, 3, 5, 8)
        ),
        "rolling_summary": _points(
            "rolling_summary", every_tokens=(500, 1000, 2000, 4000, 8000, 16000, 32000),
            keep_requests=(1, 2, 3, 5, 8),
        ),
        "clear_old_results": clear,
        "threshold_fold": _points("threshold_fold", floor_tokens=(40, 200), **shares),
        "goal_selection": _points("goal_selection", **shares),
    }  # fmt: skip


def reuse_grid() -> list[PolicySpec]:
    """Returns the reuse predictor's settings: its horizon, its fear of misses, its patience."""
    return _points(
        "reuse_predictor", remaining_factor=(0.3, 0.7, 1.5, 3.0),
        miss_price=(0.0, 0.3, 1.0, 3.0, 10.0), margin=(1.0, 1.5, 3.0),
    )  # fmt: skip


def measure(
    make_engine: EngineFactory,
    task_ids: Sequence[str],
    specs: Sequence[PolicySpec],
    *,
    seeds: Sequence[int] = (0,),
    workers: int = 1,
    on_rows: Callable[[int], None] = lambda _count: None,
) -> list[GridPoint]:
    """Plays grid points on training tasks; returns them in the given order."""
    settings = [
        Setting(
            "tuning", "train", "tuning", 0, make_engine, tuple(task_ids), tuple(seeds),
            {spec.label: spec for spec in specs[start : start + 24]},
        )
        for start in range(0, len(specs), 24)
    ]  # fmt: skip
    rows: dict[str, list[EvaluationRow]] = defaultdict(list)
    for row in evaluate(settings, workers=workers, on_rows=on_rows):
        rows[row.policy].append(row)
    return [_point(spec, rows[spec.label]) for spec in specs]


def _point(spec: PolicySpec, rows: Sequence[EvaluationRow]) -> GridPoint:
    def mean(value: Callable[[EvaluationRow], float]) -> float:
        return float(np.mean([value(row) for row in rows]))

    return GridPoint(
        spec.kind,
        dict(spec.params),
        mean(lambda r: r.objective),
        mean(lambda r: r.demand_success),
        mean(lambda r: float(r.task_success)),
        mean(lambda r: r.billed_tokens / r.raw_billed_tokens),
        mean(lambda r: r.billed_without_prefix_tokens / max(1.0, r.raw_without_prefix_tokens)),
        mean(lambda r: float(r.forced_reloads)),
        mean(lambda r: float(r.silent_misses)),
        len(rows),
    )


def halving(
    make_engine: EngineFactory,
    task_ids: Sequence[str],
    specs: Sequence[PolicySpec],
    *,
    workers: int = 1,
    on_rows: Callable[[int], None] = lambda _count: None,
    first_tasks: int = 4,
    keep: int = 24,
) -> list[GridPoint]:
    """Plays all points on a few tasks and the best of them on all; returns the latter, best first.

    Successive halving with one cut (Jamieson and Talwalkar, 2016), since the grids are large and
    most points are far from the best. What lies on the front of cost against success survives the
    cut too, so that the whole front is there and not only its best point.
    """
    few = list(task_ids)[:first_tasks]
    coarse = measure(make_engine, few, specs, workers=workers, on_rows=on_rows)
    ranked = sorted(range(len(specs)), key=lambda k: -coarse[k].objective)
    front = pareto([p.billed_share for p in coarse], [p.demand_success for p in coarse])
    kept = [specs[k] for k in dict.fromkeys([*ranked[:keep], *front])]
    fine = measure(make_engine, task_ids, kept, workers=workers, on_rows=on_rows)
    return sorted(fine, key=lambda point: -point.objective)
