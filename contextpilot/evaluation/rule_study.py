"""Clearing rules under an allowance of reloads: the least they cost, chosen without the session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.runner import EngineFactory, Setting
from contextpilot.evaluation.tuning import rule_grid
from contextpilot.policies.catalog import PolicySpec

ALLOWANCES = (2.0, 4.0, 12.0, 20.0, float("inf"))
"""Forced reloads a session, at most, on average over sessions."""

SESSIONS, SHORT_RUNS = "sessions", "short runs"


def study_settings(
    sessions_engine: EngineFactory,
    sessions: Sequence[str],
    short_engine: EngineFactory,
    short_runs: Sequence[str],
) -> list[Setting]:
    """Returns what to play: the whole clearing grid on sessions, keep-last-N on short runs."""
    grid = {spec.label: spec for spec in rule_grid()["clear_old_results"] if _untriggered(spec)}
    keep = {f"keep last {n}": _keep_last(n) for n in (0, 1, 3, 5, 8)}
    return [
        Setting(
            SESSIONS, "train", "perfect", 0, sessions_engine, tuple(sessions), (0,),
            {"raw": PolicySpec("raw"), **grid, **keep},
        ),
        Setting(
            SHORT_RUNS, "train", "perfect", 0, short_engine, tuple(short_runs), (0,),
            {"raw": PolicySpec("raw"), **keep},
        ),
    ]  # fmt: skip


def _untriggered(spec: PolicySpec) -> bool:
    return bool(dict(spec.params).get("trigger", 0.0) == 0.0)


def _keep_last(n: int) -> PolicySpec:
    """Every older result is cleared on every request, whatever its size."""
    return PolicySpec(
        "clear_old_results",
        (("batch_tokens", 0), ("floor_tokens", 0), ("keep_last", n), ("older_than", 0)),
    )


def allowance_table(
    rows: Sequence[EvaluationRow], bounds: Mapping[str, Mapping[str, float]]
) -> list[dict[str, object]]:
    """Returns per allowance the mean bill share of the rule chosen on the other sessions.

    A session's share is its bill over its raw bill, compactions' parts added up. The oracle's and
    the bound's lines follow; they reload nothing that costs output.
    """
    share, reloads, raw = _by_session(rows)
    sessions = sorted(raw)
    table: list[dict[str, object]] = []
    for scope, rules in (
        ("results only", sorted(rule for rule in share if not _goes_further(rule))),
        ("everything", sorted(share)),
    ):
        table += _front(scope, rules, sessions, share, reloads)
    for line in (
        "oracle, folds of results only", "lower bound, folds of results only", "oracle",
        "lower bound",
    ):  # fmt: skip
        values = [bounds[s][line] for s in sessions]
        table.append(
            {
                "line": line,
                "share_of_raw": round(float(np.mean(values)), 3),
                "reloads": 0.0,
                "per_session": {s: round(v, 3) for s, v in zip(sessions, values, strict=True)},
            }
        )
    return table


def _goes_further(rule: str) -> bool:
    return "calls=True" in rule or "everything=True" in rule


def _front(
    scope: str,
    rules: Sequence[str],
    sessions: Sequence[str],
    share: Mapping[str, Mapping[str, float]],
    reloads: Mapping[str, Mapping[str, float]],
) -> list[dict[str, object]]:
    """Returns the best rule under each allowance; keeping everything is always allowed."""
    costs = np.array([[share[rule][s] for s in sessions] for rule in rules])
    counts = np.array([[reloads[rule][s] for s in sessions] for rule in rules])
    table: list[dict[str, object]] = []
    for allowance in ALLOWANCES:
        chosen, paid, asked = [], [], []
        for k in range(len(sessions)):
            others = np.arange(len(sessions)) != k
            allowed = counts[:, others].mean(axis=1) <= allowance
            best = np.where(allowed, costs[:, others].mean(axis=1), np.inf).argmin()
            chosen.append(rules[int(best)])
            paid.append(costs[best, k])
            asked.append(counts[best, k])
        everywhere = np.where(counts.mean(axis=1) <= allowance, costs.mean(axis=1), np.inf)
        table.append(
            {
                "line": f"best rule ({scope}), at most {allowance:g} reloads",
                "share_of_raw": round(float(np.mean(paid)), 3),
                "reloads": round(float(np.mean(asked)), 1),
                "in_sample": round(float(everywhere.min()), 3),
                "rule": rules[int(everywhere.argmin())],
                "per_session": {s: round(float(v), 3) for s, v in zip(sessions, paid, strict=True)},
            }
        )
    return table


def _by_session(
    rows: Sequence[EvaluationRow],
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]], dict[str, float]]:
    bill: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    reloads: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    raw: dict[str, float] = defaultdict(float)
    counted: set[str] = set()
    for row in rows:
        if row.source != SESSIONS:
            continue
        bill[row.policy][row.cluster] += row.billed_tokens
        reloads[row.policy][row.cluster] += row.forced_reloads
        if row.task_id not in counted:
            counted.add(row.task_id)
            raw[row.cluster] += row.raw_billed_tokens
    share = {
        policy: {session: value / raw[session] for session, value in own.items()}
        for policy, own in bill.items()
    }
    return share, reloads, raw


def keep_last_table(rows: Sequence[EvaluationRow]) -> list[dict[str, object]]:
    """Returns keep-last-N's bill as a share of raw's, on sessions and on short runs."""
    table = []
    for where in (SHORT_RUNS, SESSIONS):
        names = sorted(
            {r.policy for r in rows if r.source == where and r.policy.startswith("keep")}
        )
        for name in names:
            own = [r for r in rows if r.source == where and r.policy == name]
            shares = [r.billed_tokens / r.raw_billed_tokens for r in own]
            table.append(
                {
                    "where": where,
                    "rule": name,
                    "share_of_raw": round(float(np.mean(shares)), 3),
                    "reloads": round(float(np.mean([r.forced_reloads for r in own])), 1),
                    "episodes": len(own),
                }
            )
    return table
