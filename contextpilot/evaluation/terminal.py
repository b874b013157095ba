"""What an evaluation prints: one comparison per source, and where the rest is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from contextpilot.evaluation.horizon import horizon_curve, horizon_table
from contextpilot.evaluation.render import to_text
from contextpilot.evaluation.report import ReportPaths
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.slices import (
    Group,
    ReportPlan,
    billed_share,
    demand_success,
    group_rows,
    task_success,
)
from contextpilot.evaluation.tables import Column, Measured, Table, layer_table

SUMMARY: tuple[Measured, ...] = (
    # task effect
    (Column("demand_success", "demands %", 1, 100, interval=False), demand_success),
    (Column("task_success", "tasks %", 1, 100, interval=False), task_success),
    (Column("objective", "J", 3), lambda row: row.objective),
    # context efficiency
    (
        Column("mean_request_tokens", "tokens/request", 0, interval=False),
        lambda row: row.mean_request_tokens,
    ),
    (Column("billed_share", "billed %", 1, 100, interval=False), billed_share),
    (
        Column("billed_share_without_prefix", "no prefix %", 1, 100, interval=False),
        lambda row: row.billed_without_prefix_tokens / row.raw_without_prefix_tokens,
    ),
    (Column("overflow_rate", "overflow %", 1, 100, interval=False), lambda row: row.overflows > 0),
    # edit quality
    (Column("edits_per_request", "edits", 2, interval=False), lambda row: row.edits / row.requests),
    (Column("forced_reloads", "reloads", 2, interval=False), lambda row: row.forced_reloads),
    (Column("silent_misses", "misses", 2, interval=False), lambda row: row.silent_misses),
    (Column("key_facts_kept", "kept %", 1, 100, interval=False), lambda row: row.key_facts_kept),
    (Column("revisits", "revisits", 2, interval=False), lambda row: row.revisits),
)
NOTE = (
    "Task effect, context efficiency (billed tokens as a share of raw's), edit quality (edits per "
    "request; forced reloads, silent misses and revisits per episode; key facts readable when "
    "needed). J with its 95% interval."
)


def summary_table(group: Group, plan: ReportPlan) -> Table:
    """Returns the three layers of one slice side by side, means over all its episodes."""
    return layer_table(group, plan, "summary", "Comparison", SUMMARY)


def print_report(
    rows: Sequence[EvaluationRow],
    plan: ReportPlan,
    paths: ReportPaths,
    out: TextIO = sys.stdout,
) -> None:
    """Writes each slice's comparison and horizon curve, and the report's paths, to `out`."""
    for group in group_rows(rows):
        out.write("\n" + to_text(summary_table(group, plan)) + "\n")
        curve = horizon_curve(group, plan)
        if curve is not None:
            out.write("\n" + to_text(horizon_table(curve, group)) + "\n")
    out.write(f"\n{NOTE}\n")
    for note in paths.notes:
        out.write(f"note: {note}\n")
    out.write(f"rows:   {paths.evaluation}\nreport: {paths.report}\n")
    if paths.figures:
        out.write(f"plots:  {len(paths.figures)} in {paths.figures[0].parent}\n")
