"""The tables of a training study, as a document for JSON and as markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from contextpilot.core.edit import Op
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.slices import Measure, billed_share, demand_success, task_success
from contextpilot.evaluation.statistics import Interval
from contextpilot.evaluation.training_study import Played, by_slice

FEW_TASKS = 8
"""A table task by task is shown for so many: recorded runs are few, and each is its own story."""

EDITS = tuple(op.name.lower() for op in Op if op != Op.KEEP)


@dataclass(frozen=True)
class Arm:
    """One algorithm's trained policies and their warm starts, by training seed.

    Attributes:
        name: the algorithm.
        trained, warm: policies' names in the rows, one per seed; `warm` may be empty.
    """

    name: str
    trained: tuple[str, ...]
    warm: tuple[str, ...] = ()

    def masked(self, edit: str) -> tuple[str, ...]:
        """Returns the names of the trained policies without an edit."""
        return tuple(f"{name} without {edit}" for name in self.trained)


def objective(row: EvaluationRow) -> float:
    """Returns J."""
    return row.objective


_MEASURES: Mapping[str, Measure] = {
    "objective": objective,
    "demand_success": demand_success,
    "task_success": task_success,
    "billed_share": billed_share,
}


def study_document(
    rows: Sequence[EvaluationRow], arms: Sequence[Arm], rules: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns one entry per source and notice preset.

    Args:
        rows: of baselines, warm starts, trained policies and those with an edit masked.
        arms: what was trained.
        rules: the policies whose cost-against-success front the arms are compared with.
    """
    document = []
    for (source, notice), played in by_slice(rows).items():
        own = {name for arm in arms for name in (*arm.trained, *arm.warm)}
        own |= {name for arm in arms for edit in EDITS for name in arm.masked(edit)}
        baselines = [name for name in played.rows if name not in own and name not in rules]
        document.append(
            {
                "source": source,
                "notice": notice,
                "policies": {name: _measured(played, (name,)) for name in baselines},
                "arms": {arm.name: _arm(played, arm, rules) for arm in arms},
                "by_task": _by_task(
                    played, {n: (n,) for n in (*baselines, *rules) if n in played.rows}, arms
                ),
                "front": [
                    {"rule": name, **_means(played, (name,))}
                    for name in rules
                    if name in played.rows
                ],
            }
        )
    return document


def _by_task(
    played: Played, policies: Mapping[str, Sequence[str]], arms: Sequence[Arm]
) -> dict[str, dict[str, list[float]]]:
    """Returns per task and policy the bill as a share of raw's, and demand success."""
    found: dict[str, dict[str, list[float]]] = {}
    for shown, names in (*policies.items(), *((arm.name, arm.trained) for arm in arms)):
        rows = [row for name in names for row in played.rows[name].values()]
        for task in dict.fromkeys(row.task_id for row in rows):
            own = [row for row in rows if row.task_id == task]
            found.setdefault(task, {})[shown] = [
                round(sum(map(measure, own)) / len(own), 4)
                for measure in (billed_share, demand_success)
            ]
    return found


def _arm(played: Played, arm: Arm, rules: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trained": _measured(played, arm.trained),
        "by_seed": [_means(played, (name,)) for name in arm.trained],
        "edits_per_request": played.edits_per_request(arm.trained),
    }
    if arm.warm:
        found["warm"] = _measured(played, arm.warm)
        found["gain_over_warm"] = _numbers(played.gain(arm.trained, arm.warm, objective))
    rules = [name for name in rules if name in played.rows]
    if rules:
        found["cost_over_front"] = _numbers(played.front_ratio(arm.trained, rules))
        best = max(rules, key=lambda name: played.mean((name,), objective).mean)
        found["gain_over_best_of_front"] = _numbers(played.gain(arm.trained, (best,), objective))
    for other in ("best_rule", "reuse_predictor", "raw"):
        if other in played.rows:
            found[f"gain_over_{other}"] = _numbers(played.gain(arm.trained, (other,), objective))
    masked = {e: arm.masked(e) for e in EDITS if all(n in played.rows for n in arm.masked(e))}
    if masked:
        found["lost_when_masked"] = {
            edit: _numbers(played.gain(arm.trained, names, objective))
            for edit, names in masked.items()
        }
    return found


def _measured(played: Played, policies: Sequence[str]) -> dict[str, list[float | None]]:
    return {key: _numbers(played.mean(policies, m)) for key, m in _MEASURES.items()}


def _means(played: Played, policies: Sequence[str]) -> dict[str, float]:
    return {key: round(played.mean(policies, m).mean, 4) for key, m in _MEASURES.items()}


def _numbers(interval: Interval) -> list[float | None]:
    """Returns mean and ends; None where an interval has none, which JSON cannot say otherwise."""
    numbers = (interval.mean, interval.low, interval.high)
    return [round(x, 4) if isfinite(x) else None for x in numbers]


def study_markdown(document: Sequence[Mapping[str, Any]]) -> str:
    """Returns the document as tables: outcomes, gains, and the use of each edit."""
    parts = []
    for entry in document:
        parts += [
            f"## {entry['source']}, notice {entry['notice']}",
            _table(
                ("policy", "J", "demands met, %", "tasks solved, %", "billed, % of raw"),
                [
                    (f"`{name}`", *_outcome(cells))
                    for name, cells in (
                        *entry["policies"].items(),
                        *(
                            (f"{arm} {which}", cells[which])
                            for arm, cells in entry["arms"].items()
                            for which in ("warm", "trained")
                            if which in cells
                        ),
                    )
                ],
            ),
            _gains(entry["arms"]),
            _edits(entry["arms"]),
            _tasks(entry["by_task"]) if len(entry["by_task"]) <= FEW_TASKS else "",
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


_GAINS = {
    "gain_over_warm": "J over warm start",
    "gain_over_best_rule": "J over the tuned rule",
    "gain_over_best_of_front": "J over the front's best",
    "gain_over_reuse_predictor": "J over the predictor",
    "gain_over_raw": "J over raw",
    "cost_over_front": "bill / the front's at equal demand success",
}


def _gains(arms: Mapping[str, Mapping[str, Any]]) -> str:
    keys = [key for key in _GAINS if any(key in cells for cells in arms.values())]
    return _table(
        ("trained by", *(_GAINS[key] for key in keys)),
        [(name, *(_gain(key, cells) for key in keys)) for name, cells in arms.items()],
    )


def _gain(key: str, cells: Mapping[str, Any]) -> str:
    if key not in cells:
        return "–"
    if key == "cost_over_front" and not cells[key][0]:
        return "no rule succeeds as often"
    return _interval(cells[key], 1, 2)


def _edits(arms: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for name, cells in arms.items():
        rates = cells["edits_per_request"]
        lines.append((f"{name}: edits per request", *(f"{rates[edit]:.3f}" for edit in EDITS)))
        if "lost_when_masked" in cells:
            lost = cells["lost_when_masked"]
            lines.append(
                (f"{name}: J lost when masked", *(_interval(lost[e], 1, 3) for e in EDITS))
            )
    return _table(("", *EDITS), lines)


def _tasks(by_task: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    names = list(next(iter(by_task.values())))
    return _table(
        ("bill, % of raw (demands met, %)", *names),
        [
            (task, *(f"{100 * c[0]:.0f} ({100 * c[1]:.1f})" for c in (cells[n] for n in names)))
            for task, cells in by_task.items()
        ],
    )


def _outcome(cells: Mapping[str, Sequence[float | None]]) -> tuple[str, ...]:
    return (
        _interval(cells["objective"], 1, 2), _interval(cells["demand_success"], 100, 1),
        _interval(cells["task_success"], 100, 0), _interval(cells["billed_share"], 100, 0),
    )  # fmt: skip


def _interval(numbers: Sequence[float | None], scale: float, digits: int) -> str:
    shown = ["–" if n is None else f"{scale * n:.{digits}f}" for n in numbers]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if None not in numbers else shown[0]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = "|".join([":--", *["--:"] * (len(head) - 1)])
    rows = [f"| {' | '.join(line)} |" for line in (head, *lines)]
    return "\n".join([rows[0], f"|{rule}|", *rows[1:]])
