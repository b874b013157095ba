"""The comparison in three layers: task effect, context efficiency, edit quality.

Each slice of the rows (source, split, notice preset) has its own tables. A cell is a mean over
episodes with its interval, or None where there is nothing to show: never an invented number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from contextpilot.evaluation.front import family_ratio, matched_ratio
from contextpilot.evaluation.rows import OPS, EvaluationRow
from contextpilot.evaluation.slices import (
    Group,
    Measure,
    ReportPlan,
    Slice,
    billed_share,
    demand_success,
    group_rows,
    task_success,
)
from contextpilot.evaluation.statistics import Interval, iqm_interval

Cell = Interval | None


@dataclass(frozen=True, slots=True)
class Column:
    """How a column is named and shown.

    Attributes:
        key: its name in JSON, where values are unscaled.
        label: its heading, with the unit.
        decimals: digits after the point, after scaling.
        scale: what values are multiplied by for display; 100 makes percent of shares.
        interval: False shows the mean alone.
    """

    key: str
    label: str
    decimals: int
    scale: float = 1.0
    interval: bool = True


@dataclass(frozen=True, slots=True)
class TableRow:
    """One policy's cells, and how many episodes and clusters they rest on."""

    policy: str
    cells: tuple[Cell, ...]
    episodes: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `key` names its kind in JSON, `title` heads it, `note` says how to read it."""

    key: str
    title: str
    slice: Slice
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    note: str = ""


Measured = tuple[Column, Measure]


def _per_request(row: EvaluationRow, count: float) -> float:
    return count / row.requests


def _op_rate(op: str) -> Measure:
    return lambda row: _per_request(row, row.edits_by_op.get(op, 0))


TASK_EFFECT: tuple[Measured, ...] = (
    (Column("demand_success", "demand success, %", 1, 100), demand_success),
    (Column("task_success", "task success, %", 1, 100), task_success),
    (Column("objective", "objective J", 3), lambda row: row.objective),
)
EFFICIENCY: tuple[Measured, ...] = (
    (
        Column("mean_request_tokens", "input tokens / request", 0),
        lambda row: row.mean_request_tokens,
    ),
    (Column("billed_share", "billed, % of raw", 1, 100), billed_share),
    (
        Column("billed_share_without_prefix", "without prefix, % of raw", 1, 100),
        lambda row: row.billed_without_prefix_tokens / row.raw_without_prefix_tokens,
    ),
    (Column("peak_tokens", "peak tokens", 0), lambda row: row.peak_tokens),
    (Column("overflow_rate", "overflows, % of episodes", 1, 100), lambda row: row.overflows > 0),
)
EDIT_QUALITY: tuple[Measured, ...] = (
    (Column("edits_per_request", "edits / request", 2), lambda row: _per_request(row, row.edits)),
    (Column("silent_misses", "silent misses / episode", 2), lambda row: row.silent_misses),
    (Column("forced_reloads", "forced reloads / episode", 2), lambda row: row.forced_reloads),
    (Column("revisits", "revisits / episode", 2), lambda row: row.revisits),
    (Column("key_facts_kept", "key facts kept, %", 1, 100), lambda row: row.key_facts_kept),
)
EDITS_BY_OP: tuple[Measured, ...] = tuple(
    (Column(f"{op}_per_request", op, 3, interval=False), _op_rate(op)) for op in OPS if op != "keep"
)


def comparison_tables(rows: Sequence[EvaluationRow], plan: ReportPlan) -> tuple[Table, ...]:
    """Returns the tables of every slice, in the order in which slices appear in the rows."""
    return tuple(table for group in group_rows(rows) for table in group_tables(group, plan))


def group_tables(group: Group, plan: ReportPlan) -> tuple[Table, ...]:
    """Returns one slice's tables: the three layers, then the differences to the reference."""
    return (
        task_effect_table(group, plan),
        difference_table(group, plan),
        layer_table(group, plan, "context_efficiency", "Context efficiency", EFFICIENCY),
        matched_table(group, plan),
        layer_table(
            group, plan, "edit_quality", "Edit quality", EDIT_QUALITY,
            "A revisit is any reload of an original, forced or not.",
        ),
        layer_table(group, plan, "edits_by_op", "Edits per request, by edit", EDITS_BY_OP),
    )  # fmt: skip


def build_table(
    key: str,
    title: str,
    group: Group,
    columns: Iterable[Column],
    policies: Iterable[str],
    cells: Callable[[str], tuple[Cell, ...]],
    note: str = "",
    paired_with: str | None = None,
) -> Table:
    """Returns a table with one row per policy; a policy without rows has None in each cell.

    `paired_with` names the policy that cells are compared with: only common episodes count then.
    """
    shown = tuple(columns)
    rows = []
    for policy in policies:
        own = group.of(policy) if paired_with is None else group.shared(policy, paired_with)
        values = cells(policy) if own else (None,) * len(shown)
        rows.append(TableRow(policy, values, len(own), len({row.cluster for row in own})))
    return Table(key, title, group.slice, shown, tuple(rows), note)


def layer_table(
    group: Group,
    plan: ReportPlan,
    key: str,
    title: str,
    measured: Sequence[Measured],
    note: str = "",
) -> Table:
    """Returns a table of means over episodes."""

    def cells(policy: str) -> tuple[Cell, ...]:
        return tuple(group.interval(policy, measure, plan.seed) for _, measure in measured)

    columns = (column for column, _ in measured)
    return build_table(key, title, group, columns, plan.policies, cells, note)


def task_effect_table(group: Group, plan: ReportPlan) -> Table:
    """Returns the first layer; the objective also as interquartile mean, which outliers spare."""

    def cells(policy: str) -> tuple[Cell, ...]:
        rows = group.of(policy)
        means = tuple(group.interval(policy, measure, plan.seed) for _, measure in TASK_EFFECT)
        objectives = [row.objective for row in rows]
        return *means, iqm_interval(objectives, [row.cluster for row in rows], plan.seed)

    columns = (*(column for column, _ in TASK_EFFECT), Column("objective_iqm", "J, IQM", 3))
    note = (
        "J is minus the bill and the misses' price, over the raw bill, minus 2 for a failed task."
    )
    return build_table("task_effect", "Task effect", group, columns, plan.policies, cells, note)


def difference_table(group: Group, plan: ReportPlan) -> Table:
    """Returns each policy minus the reference, paired by task, horizon and seed."""

    def cells(policy: str) -> tuple[Cell, ...]:
        return tuple(
            group.difference(policy, plan.reference, measure, plan.seed)
            for _, measure in TASK_EFFECT
        )

    columns = (
        Column("demand_success_difference", "demand success, points", 1, 100),
        Column("task_success_difference", "task success, points", 1, 100),
        Column("objective_difference", "objective J", 3),
    )
    title = f"Difference to {plan.reference} on the same episodes"
    others = tuple(policy for policy in plan.policies if policy != plan.reference)
    return build_table(
        "difference", title, group, columns, others, cells, paired_with=plan.reference
    )


def matched_table(group: Group, plan: ReportPlan) -> Table:
    """Returns the token ratios at matched success: policies first, then the families' fronts."""
    title = f"Token ratio at matched {plan.success.replace('_', ' ')}"
    note = (
        f"A policy whose success is lower by more than {100 * plan.margin:g} points has no ratio. "
        "A family's cost is read off its front; an open end means that in some resamples of the "
        "tasks the whole family falls short of that success."
    )
    columns = [Column(f"ratio_to_{level}", f"billed / {level}'s", 3) for level in plan.levels]
    table = build_table(
        "matched_ratio", title, group, columns, plan.policies,
        lambda policy: tuple(matched_ratio(group, policy, at, plan) for at in plan.levels), note,
    )  # fmt: skip
    fronts = tuple(_family_row(group, family, plan) for family in plan.families)
    return replace(table, rows=(*table.rows, *fronts))


def _family_row(group: Group, family: str, plan: ReportPlan) -> TableRow:
    members = [policy for policy in plan.families[family] if group.of(policy)]
    rows = [row for policy in members for row in group.of(policy)]
    return TableRow(
        f"{family} (front of {len(members)})",
        tuple(family_ratio(group, family, level, plan) for level in plan.levels),
        len(rows),
        len({row.cluster for row in rows}),
    )
