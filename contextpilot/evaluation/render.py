"""Tables as text for the terminal, as Markdown and as JSON rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from contextpilot.evaluation.statistics import Interval
from contextpilot.evaluation.tables import Cell, Column, Table

DASH = "–"


def to_text(table: Table) -> str:
    """Returns the table as aligned plain text, names to the left, numbers to the right."""
    grid = _grid(table)
    widths = [max(len(line[index]) for line in grid) for index in range(len(grid[0]))]
    lines = [
        "  ".join(
            text.ljust(width) if index == 0 else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    head = f"{table.title} | {table.slice.title}"
    return "\n".join([head, *lines, *([table.note] if table.note else [])])


def to_markdown(table: Table) -> str:
    """Returns the table in GitHub's Markdown, without its title."""
    return markdown_grid(_grid(table))


def to_json_rows(table: Table) -> list[dict[str, object]]:
    """Returns one JSON object per table row; values unscaled, null for what is missing."""
    return [
        {
            "table": table.key,
            "source": table.slice.source,
            "split": table.slice.split,
            "notice": table.slice.notice,
            "policy": row.policy,
            "episodes": row.episodes,
            "clusters": row.clusters,
            **{
                column.key: _json_cell(cell)
                for column, cell in zip(table.columns, row.cells, strict=True)
            },
        }
        for row in table.rows
    ]


def markdown_grid(grid: Sequence[Sequence[str]]) -> str:
    """Returns a heading line and body lines as a Markdown table, numbers right-aligned."""
    escaped = [[text.replace("|", "\\|") for text in line] for line in grid]
    rule = [":--", *["--:"] * (len(grid[0]) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (escaped[0], rule, *escaped[1:]))


def format_interval(cell: Cell, column: Column) -> str:
    """Returns "mean [low, high]" in the column's scale; a dash for each part that is missing."""
    if cell is None or math.isnan(cell.mean):
        return DASH
    mean = _number(cell.mean, column)
    if not column.interval or math.isnan(cell.low):
        return mean
    return f"{mean} [{_number(cell.low, column)}, {_number(cell.high, column)}]"


def _grid(table: Table) -> list[list[str]]:
    body = [
        [
            row.policy,
            *(format_interval(*pair) for pair in zip(row.cells, table.columns, strict=True)),
            f"{row.episodes} ({row.clusters})" if row.episodes else DASH,
        ]
        for row in table.rows
    ]
    return [["policy", *(column.label for column in table.columns), "episodes (clusters)"], *body]


def _number(value: float, column: Column) -> str:
    if not math.isfinite(value):
        return DASH
    text = f"{value * column.scale:,.{column.decimals}f}"
    # Rounding must not leave a negative zero behind.
    return text.lstrip("-") if not text.strip("-0.,") else text


def _json_cell(cell: Cell) -> dict[str, float | None] | None:
    if cell is None or math.isnan(cell.mean):
        return None
    return {"mean": cell.mean, "low": _finite(cell.low), "high": _finite(cell.high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def points(interval: Interval) -> str:
    """Returns a difference of shares in percentage points, signed, for a sentence."""
    values = (interval.mean, interval.low, interval.high)
    mean, low, high = (f"{100 * value:+.1f}" for value in values)
    return f"{mean} points [{low}, {high}]" if math.isfinite(interval.low) else f"{mean} points"
