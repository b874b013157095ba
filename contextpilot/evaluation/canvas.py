"""What the plots share: the empty figure, colours and markers, axes, bands and error bars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contextpilot.errors import ContextPilotError
from contextpilot.evaluation.slices import ReportPlan
from contextpilot.evaluation.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#7F5539")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
_LINES = ("-", "--", "-.", ":")
GREY, DARK = "#B8B8B8", "#555555"
DPI = 150


class PlotsUnavailableError(ContextPilotError, ImportError):
    """A plot was asked for, and matplotlib is not installed."""


@dataclass(frozen=True, slots=True)
class Style:
    """How one policy is drawn, the same in every plot of a report."""

    colour: str
    marker: str
    line: str


def styles(plan: ReportPlan) -> dict[str, Style]:
    """Returns a style per policy: black for the reference, a green star for the oracle."""
    chosen: dict[str, Style] = {}
    for policy in plan.policies:
        index = len(chosen.keys() - {plan.reference, plan.oracle})
        if policy == plan.reference:
            chosen[policy] = Style("#000000", "s", "-")
        elif policy == plan.oracle:
            chosen[policy] = Style("#009E73", "*", "-")
        else:
            line = _LINES[index // len(_COLOURS) % len(_LINES)]
            marker = _MARKERS[index % len(_MARKERS)]
            chosen[policy] = Style(_COLOURS[index % len(_COLOURS)], marker, line)
    return chosen


def new_figure(width: float = 8.4, height: float = 5.2) -> Figure:
    """Returns an empty figure (inches) on an Agg canvas: no display, no global state.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotsUnavailableError(
            f"Plots need matplotlib. Received: {error}. "
            'Install the extra: pip install "contextpilot-rl[plots]".'
        ) from error
    figure = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def finish(axes: Axes, title: str) -> None:
    """Writes the title, and thins out what is not data."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Writes a PNG; equal rows give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The metadata would hold the drawing software's version.
    figure.savefig(path, dpi=DPI, metadata={"Software": None})


def success_label(measure: str) -> str:
    """Returns the axis label of a measure of success, with its unit."""
    unit = "% of demands" if measure == "demand_success" else "% of tasks"
    return f"{measure.replace('_', ' ')}, {unit}"


def arms(interval: Interval) -> list[list[float]] | None:
    """Returns the lengths of an error bar in percent, or None without an interval."""
    if np.isnan(interval.low):
        return None
    low, high = interval.mean - interval.low, interval.high - interval.mean
    return [[100 * max(low, 0.0)], [100 * max(high, 0.0)]]


def success_limits(axes: Axes) -> None:
    """Ends a success axis where success can end, with room for the markers at 0 and 100."""
    low, high = axes.get_ylim()
    pad = 0.05 * (min(high, 100.0) - max(low, 0.0))
    axes.set_ylim(max(low, -pad), min(high, 100 + pad))


def wrapped(name: str, width: int) -> str:
    """Returns a name in lines of at most `width` characters, broken after `_`, `,` and the like."""
    lines = [""]
    for piece in re.findall(r"[^_,/:\[ -]*[_,/:\[ -]?", name):
        for part in (piece[at : at + width] for at in range(0, len(piece), width)):
            if len(lines[-1]) + len(part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def band(
    axes: Axes,
    x: Sequence[float],
    intervals: Sequence[Interval],
    style: Style,
    scale: float,
    marked: Sequence[float],
) -> None:
    """Draws means over `x` as a line with its intervals as a band; markers at `marked`."""
    mean, low, high = scale * np.array([(i.mean, i.low, i.high) for i in intervals]).T
    axes.plot(
        x, mean, style.line, color=style.colour, linewidth=1.6, marker=style.marker,
        markersize=9 if style.marker == "*" else 6, markeredgecolor="white", markeredgewidth=0.6,
        markevery=[index for index, value in enumerate(x) if value in marked],
    )  # fmt: skip
    axes.fill_between(x, low, high, color=style.colour, alpha=0.13, linewidth=0)
