"""The report: `evaluation.json`, the plots, and `report.md` with every table and what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.canvas import PlotsUnavailableError
from contextpilot.evaluation.front import front_of
from contextpilot.evaluation.horizon import horizon_curve, horizon_table
from contextpilot.evaluation.plots import draw_front, draw_horizon, draw_sensitivity
from contextpilot.evaluation.reading import (
    overview,
    read_coverage,
    read_edit_quality,
    read_efficiency,
    read_horizon,
    read_sensitivity,
    read_task_effect,
)
from contextpilot.evaluation.render import markdown_grid, to_markdown
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.sensitivity import objective_lines, sensitivity_table
from contextpilot.evaluation.slices import Group, ReportPlan, group_rows
from contextpilot.evaluation.storage import Evaluation, replace_text, save_evaluation
from contextpilot.evaluation.tables import Table, group_tables

_HOW_TO_READ = """\
Cells are means over episodes with 95% intervals: percentiles of a bootstrap that resamples whole
clusters of episodes; differences are paired on the same task and seed. A dash is a number that does
not exist, never a zero. An interval without width means that all episodes gave the same value, and
one from a handful of clusters is too narrow."""


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """What `write_report` wrote, and in `notes` what it could not."""

    evaluation: Path
    report: Path
    figures: tuple[Path, ...]
    notes: tuple[str, ...]


def write_report(
    folder: Path,
    rows: Sequence[EvaluationRow],
    plan: ReportPlan,
    *,
    command: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    created: str | None = None,
) -> ReportPaths:
    """Writes `evaluation.json`, `report.md` and the PNGs into `folder`, and returns their paths.

    The rows are written first: nothing that fails later loses them. Without matplotlib there are
    no PNGs; `notes` and the report say so. `created` defaults to the present time.

    Raises:
        ConfigurationError: when rows are missing, or two are about the same episode.
    """
    if not rows:
        raise ConfigurationError(
            "There is nothing to report. Received no rows. Evaluate at least one policy."
        )
    created = created or datetime.now(UTC).isoformat(timespec="seconds")
    evaluation = Evaluation(created, tuple(command), dict(config or {}), tuple(rows))
    save_evaluation(folder / "evaluation.json", evaluation)
    groups = group_rows(rows)
    writer = _Writer(folder)
    parts = [_head(evaluation, groups, plan)]
    for group, name in zip(groups, _file_names(groups), strict=True):
        parts += _group_parts(group, name, plan, writer)
    if writer.notes:
        parts.insert(1, "\n".join(f"> {note}" for note in writer.notes))
    replace_text(folder / "report.md", "\n\n".join(parts) + "\n")
    return ReportPaths(
        folder / "evaluation.json",
        folder / "report.md",
        tuple(writer.figures),
        tuple(writer.notes),
    )


class _Writer:
    """Draws figures into a folder and remembers which; without matplotlib, why not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.figures: list[Path] = []
        self.notes: list[str] = []

    def figure(self, name: str, caption: str, draw: Callable[[Path], None]) -> list[str]:
        """Returns the Markdown that shows the figure; nothing where it cannot be drawn."""
        path = self.folder / f"{name}.png"
        try:
            draw(path)
        except PlotsUnavailableError as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
            return []
        self.figures.append(path)
        return [f"![{caption}]({path.name})"]


def _head(evaluation: Evaluation, groups: Sequence[Group], plan: ReportPlan) -> str:
    command = shlex.join(evaluation.command) or "(not recorded)"
    grid = overview(groups, plan)
    return "\n\n".join(
        (
            "# Evaluation",
            f"{len(evaluation.rows)} episodes, created {evaluation.created}, by",
            f"```\n{command}\n```",
            _HOW_TO_READ,
            "## What lost, and where",
            f"{plan.success.replace('_', ' ').capitalize()} / objective against "
            f"`{plan.reference}`: worse or better where the paired interval is clear of 0, equal "
            "where it is shown to lie within the margin, same where no shared episode differs, "
            "open where none of these holds.",
            markdown_grid(grid),
        )
    )


def _group_parts(group: Group, name: str, plan: ReportPlan, writer: _Writer) -> list[str]:
    """Returns the Markdown of one slice, in the order of the three layers."""
    task, difference, efficiency, matched, quality, by_op = group_tables(group, plan)
    front = front_of(group, plan)
    parts = [
        f"## {group.slice.title}",
        *_bullets(read_coverage(group, plan)),
        *_table(task),
        *_table(difference),
        *_bullets(read_task_effect(group, plan)),
        *_table(efficiency),
        *_table(matched),
        *writer.figure(
            f"{name}-front", "Cost against success", lambda p: draw_front(p, front, plan)
        ),
        *_bullets(read_efficiency(group, plan, matched)),
        *_table(quality),
        *_table(by_op),
        *_bullets(read_edit_quality(group, plan)),
    ]
    return (
        parts + _horizon_parts(group, name, plan, writer) + _price_parts(group, name, plan, writer)
    )


def _horizon_parts(group: Group, name: str, plan: ReportPlan, writer: _Writer) -> list[str]:
    curve = horizon_curve(group, plan)
    if curve is None:
        return ["There is no curve over horizons: it needs two horizons with two clusters each."]
    return [
        *_table(horizon_table(curve, group)),
        *_table(horizon_table(curve, group, differences=True)),
        *writer.figure(
            f"{name}-horizon", "Success by horizon", lambda path: draw_horizon(path, curve, plan)
        ),
        *_bullets(read_horizon(group, plan, curve)),
    ]


def _price_parts(group: Group, name: str, plan: ReportPlan, writer: _Writer) -> list[str]:
    table = sensitivity_table(group, plan)
    lines = objective_lines(group, plan)
    return [
        *_table(table),
        *writer.figure(
            f"{name}-miss-price",
            "Objective by miss price",
            lambda path: draw_sensitivity(path, group.slice, lines, plan),
        ),
        *_bullets(read_sensitivity(group, plan, table)),
    ]


def _table(table: Table) -> list[str]:
    note = [table.note] if table.note else []
    return [f"### {table.title}", to_markdown(table), *note]


def _bullets(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {sentence}" for sentence in sentences)] if sentences else []


def _file_names(groups: Sequence[Group]) -> list[str]:
    """Returns a file name stem per slice, safe on every system, no two alike."""
    names: list[str] = []
    for group in groups:
        parts = (group.slice.source, group.slice.split, group.slice.notice)
        stem = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-") or "slice"
        taken = sum(name == stem or name.startswith(f"{stem}--") for name in names)
        names.append(f"{stem}--{taken + 1}" if taken else stem)
    return names
