"""Evaluation rows from a made-up world whose truth is known: each policy's cost and miss rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextpilot.evaluation.rows import EvaluationRow, RemovedFact, objective_value


@dataclass(frozen=True)
class Profile:
    """A policy's mean share of the raw bill, and how its misses grow with the horizon."""

    share: float
    miss: float = 0.0
    slope: float = 0.0
    op: str = "fold"
    seen: str = "stub"
    edits: float = 0.2


PROFILES = {
    "raw": Profile(1.0, edits=0.0),
    "drop_oldest": Profile(0.62, 0.18, 0.06, "drop", "nothing"),
    "fixed_summary": Profile(0.55, 0.10, 0.05, "summarize", "summary", 0.05),
    "clear_results": Profile(0.58, 0.05, 0.02, "fold", "stub", 0.4),
    "rolling_summary": Profile(0.50, 0.09, 0.04, "summarize", "summary", 0.1),
    "threshold_fold": Profile(0.56, 0.04, 0.01),
    "bm25_selection": Profile(0.60, 0.07, 0.01, "drop", "nothing", 0.5),
    "random": Profile(0.97, 0.15, 0.02, "drop", "nothing", 0.9),
    "reuse_predictor": Profile(0.52, 0.035, 0.005),
    "learned": Profile(0.47, 0.02, 0.002),
    "oracle": Profile(0.40),
}


def make_row(**changes: Any) -> EvaluationRow:
    """Returns one valid row; the objective follows from the changes unless it is given."""
    values: dict[str, Any] = {
        "policy": "raw", "source": "tools", "split": "validation", "notice": "good",
        "horizon": 10, "task_id": "tools/en/h10/000001", "seed": 0, "demand_success": 1.0,
        "task_success": True, "silent_misses": 0, "forced_reloads": 0, "billed_tokens": 1000.0,
        "raw_billed_tokens": 1000.0, "mean_request_tokens": 500.0, "peak_tokens": 900, "edits": 0,
        "overflows": 0, "key_facts_kept": 1.0, "seconds": 0.1, "cluster": "000001",
        "language": "en", "requests": 10, "demands": 4, "miss_cost_tokens": 0.0, "failed": False,
        "edits_by_op": {}, "revisits": 0, "billed_without_prefix_tokens": 900.0,
        "raw_without_prefix_tokens": 900.0, "removed_facts": (),
    }  # fmt: skip
    values.update(changes)
    values.setdefault(
        "objective",
        objective_value(
            values["billed_tokens"],
            values["raw_billed_tokens"],
            values["miss_cost_tokens"],
            values["failed"],
        ),
    )
    return EvaluationRow(**values)


def make_rows(
    policies: Sequence[str] = tuple(PROFILES),
    horizons: Sequence[int] = (10, 20, 40, 80),
    tasks: int = 25,
    source: str = "tools",
    notice: str = "good",
    seeds: Sequence[int] = (0,),
) -> list[EvaluationRow]:
    """Returns one row per policy, horizon, task and seed; noise is shared across policies."""
    return [
        episode(policy, PROFILES[policy], source, notice, horizon, task, seed)
        for policy in policies
        for horizon in horizons
        for task in range(tasks)
        for seed in seeds
    ]


def family_rows(settings: Sequence[int], **where: Any) -> list[EvaluationRow]:
    """Returns rows of a rule over its grid: the larger the setting, the dearer and the safer."""
    rows = []
    for setting in settings:
        profile = Profile(0.4 + 0.05 * setting, max(0.25 - 0.03 * setting, 0.01), 0.01)
        rows += [
            episode(f"keep_last[{setting}]", profile, where.get("source", "tools"), "good", h, t, 0)
            for h in where.get("horizons", (10, 20, 40, 80))
            for t in range(where.get("tasks", 25))
        ]
    return rows


def episode(
    policy: str, profile: Profile, source: str, notice: str, horizon: int, task: int, seed: int
) -> EvaluationRow:
    """Returns one episode of a policy of this profile."""
    rng = np.random.default_rng([len(source), horizon, task, seed])
    raw = 200.0 * horizon * horizon * float(rng.uniform(0.8, 1.2))
    noise, uniforms = float(rng.normal(0, 0.04)), rng.random(4)
    share = 1.0 if policy == "raw" else max(profile.share + noise, 0.1)
    rate = profile.miss + profile.slope * float(np.log2(horizon / 10)) ** 2
    rate *= 1.0 if notice == "good" else 1.5
    misses = int((uniforms < rate).sum())
    reloads = 0 if policy == "raw" else int((uniforms > 0.8).sum())
    edits = int(profile.edits * horizon)
    removed = tuple(
        RemovedFact(horizon - 1, kind, profile.op, int(horizon * 0.4), profile.seen)
        for kind in ("number", "negation", "name", "code")[:misses]
    )
    return make_row(
        policy=policy, source=source, notice=notice, horizon=horizon, requests=horizon,
        task_id=f"{source}/en/h{horizon}/{task:06d}", cluster=f"{task:06d}", seed=seed,
        demand_success=1 - misses / 4, task_success=misses == 0, failed=misses > 0,
        silent_misses=misses, forced_reloads=reloads, revisits=reloads, removed_facts=removed,
        billed_tokens=raw * share, raw_billed_tokens=raw,
        billed_without_prefix_tokens=raw * (share - 0.1), raw_without_prefix_tokens=raw * 0.9,
        miss_cost_tokens=misses * raw / horizon, mean_request_tokens=raw * share / horizon,
        peak_tokens=int(raw * share / horizon * 2), edits=edits, edits_by_op={profile.op: edits},
        key_facts_kept=max(1 - rate, 0.0),
    )  # fmt: skip
