"""What the oracle and its lower bound cost, per session of a replay source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.oracle.bound import lower_bound
from contextpilot_envs.oracle.plan import PlanModel
from contextpilot_envs.oracle.player import play
from contextpilot_envs.oracle.search import best_plans


def session_bounds(spec: EngineSpec, task_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """Returns session -> line -> share of the session's raw bill, parts of a session added up."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    engine = spec(1)
    for task_id in task_ids:
        prepared = engine.prepare(task_id)
        own = sums[prepared.task.cluster]
        own["raw"] += prepared.raw.total
        own["lower bound"] += lower_bound(prepared)
        own["lower bound, folds of results only"] += lower_bound(prepared, results_only=True)
        for line, results_only in (("oracle, folds of results only", True), ("oracle", False)):
            plan = best_plans(PlanModel(prepared, results_only=results_only))[0]
            episode = play(prepared, plan, 0)
            own[line] += episode.tally.bill
            own[f"{line}: misses"] += episode.tally.silent_misses + episode.tally.forced_reloads
    return {
        session: {line: value / own["raw"] for line, value in own.items() if line != "raw"}
        for session, own in sums.items()
    }
