"""Two questions to the game itself: has each edit a use, and is folding everything too good?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.runner import EngineFactory, PolicyFactory, Setting
from contextpilot.evaluation.slices import Group, Measure, demand_success, group_rows, task_success
from contextpilot.evaluation.statistics import Interval
from contextpilot.policies.catalog import PolicySpec

WITH, WITHOUT = "with the edit", "with it masked"
FIRST_FRESH = 100_001
"""Number of the first task that edits are tested on; validation tasks have odd numbers.

Sources list the lowest numbers, so every choice and every earlier test was made on those: whatever
is tested more than once on the same tasks passes sooner or later. The tasks from here on are
looked at once, after family, preset and policy are fixed on training tasks.
"""

FOLD_AS_READ = PolicySpec(
    "clear_old_results",
    (("batch_tokens", 0), ("everything", True), ("floor_tokens", 0), ("older_than", 0)),
)
"""Everything that may be folded is folded as soon as it was read."""


def fresh_ids(listed: str, count: int) -> tuple[str, ...]:
    """Returns the ids of the first `count` fresh validation tasks of a generated source.

    Args:
        listed: any id of the source, for its name.
        count: how many.
    """
    name = listed.rpartition("/")[0]
    return tuple(f"{name}/{FIRST_FRESH + 2 * index:06d}" for index in range(count))


def use_setting(
    name: str,
    make_engine: EngineFactory,
    split: str,
    task_ids: Sequence[str],
    policies: tuple[PolicyFactory, PolicyFactory],
    notice: str,
    horizon: int,
) -> Setting:
    """Returns one comparison of a scripted policy with the same policy, its edit masked."""
    return Setting(
        name, split, notice, horizon, make_engine, tuple(task_ids), (0,),
        {WITH: policies[0], WITHOUT: policies[1]},
    )  # fmt: skip


def use_lines(rows: Sequence[EvaluationRow]) -> list[dict[str, Any]]:
    """Returns one line per comparison: the difference in J, paired by task, with its interval."""
    lines = []
    for group in group_rows(rows):
        gain = group.difference(WITH, WITHOUT, lambda row: row.objective)
        lines.append(
            {
                "edit and family": group.slice.source,
                "notice": group.slice.notice,
                "tasks": len(group.of(WITH)),
                "J with": _mean(group, WITH, lambda row: row.objective),
                "J masked": _mean(group, WITHOUT, lambda row: row.objective),
                "gain": _shown(gain),
                "clear of 0": gain is not None and gain.low > 0,
            }
        )
    return lines


def fold_lines(rows: Sequence[EvaluationRow]) -> list[dict[str, Any]]:
    """Returns per source what folding everything as it was read loses against the oracle."""
    lines = []
    for group in group_rows(rows):
        policies = [policy for policy in group.rows if policy != "oracle"]
        best = max(policies, key=lambda p: _mean(group, p, lambda row: row.objective))
        lines.append(
            {
                "source": group.slice.source,
                "notice": group.slice.notice,
                "tasks": len(group.of("oracle")),
                "demands lost, points": _points(group, demand_success),
                "tasks lost, points": _points(group, task_success),
                "J oracle": _mean(group, "oracle", lambda row: row.objective),
                "J of the best other": _mean(group, best, lambda row: row.objective),
                "best other": best,
            }
        )
    return lines


def _points(group: Group, measure: Measure) -> str:
    return _shown(group.difference("oracle", "fold as read", measure), 100, 1)


def _mean(group: Group, policy: str, measure: Measure) -> float:
    interval = group.interval(policy, measure)
    return float("nan") if interval is None else round(interval.mean, 3)


def _shown(interval: Interval | None, factor: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return "-"
    mean, low, high = (factor * v for v in (interval.mean, interval.low, interval.high))
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def aligned(lines: Sequence[Mapping[str, Any]]) -> str:
    """Returns lines with the same keys as an aligned table."""
    heads = list(lines[0])
    grid = [heads, *[[str(line[head]) for head in heads] for line in lines]]
    widths = [max(len(row[k]) for row in grid) for k in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in grid
    )
