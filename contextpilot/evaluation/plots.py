"""Three plots: cost against success, success by horizon, objective by miss price.

They need matplotlib, the extra `plots`, which is imported when the first one is drawn. Drawing uses
no global state and no display. Colours are those of Okabe and Ito, told apart under every common
colour blindness; markers and line styles say the same once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contextpilot.evaluation.canvas import (
    DARK,
    DPI,
    GREY,
    arms,
    band,
    finish,
    new_figure,
    save,
    styles,
    success_label,
    success_limits,
    wrapped,
)
from contextpilot.evaluation.front import Front
from contextpilot.evaluation.horizon import HorizonCurve
from contextpilot.evaluation.labels import Pixels, place
from contextpilot.evaluation.rows import MISS_PRICE
from contextpilot.evaluation.sensitivity import MISS_PRICES, ObjectiveLine
from contextpilot.evaluation.slices import ReportPlan, Slice
from contextpilot.evaluation.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_front(path: Path, front: Front, plan: ReportPlan) -> None:
    """Draws cost against success: rules' settings in grey with their front, policies by name.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    figure = new_figure()
    axes = figure.add_axes((0.085, 0.17, 0.84, 0.76))
    grid = np.array([(100 * p.cost, 100 * p.success) for p in front.grid]).reshape(-1, 2)
    best = grid[list(front.pareto)]
    axes.plot(*grid.T, ".", color=GREY, markersize=5, label="a rule at one setting")
    axes.plot(*best.T, "-", color=DARK, linewidth=1.2, label="the rules' front")
    known = styles(plan)
    for point in front.points:
        style, cost, success = known[point.policy], point.cost, point.success
        axes.errorbar(
            100 * cost.mean, 100 * success.mean, xerr=arms(cost), yerr=arms(success),
            color=style.colour, marker=style.marker, markersize=11 if style.marker == "*" else 7,
            elinewidth=1.1, markeredgecolor="white", markeredgewidth=0.6, zorder=3,
        )  # fmt: skip
    success_limits(axes)
    axes.set_xlabel("billed tokens, % of raw (mean over episodes)")
    axes.set_ylabel(success_label(front.measure))
    finish(axes, front.slice.title)
    if len(grid):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)
    _label_points(figure, axes, front, grid, best)
    save(figure, path)


def draw_horizon(path: Path, curve: HorizonCurve, plan: ReportPlan) -> None:
    """Draws success by horizon with its intervals, a panel a policy.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    lines = [
        _Line(policy, [p.horizon for p in points], [p.success for p in points], 100)
        for policy, points in curve.curves
    ]
    figure, panels = _panels(lines, plan, curve.slice.title, curve.horizons)
    if curve.horizons[-1] > 4 * curve.horizons[0]:
        panels[0].set_xscale("log")
    panels[0].set_xticks(curve.horizons, labels=[str(horizon) for horizon in curve.horizons])
    panels[0].minorticks_off()
    success_limits(panels[0])
    figure.supxlabel("horizon, requests per task", fontsize=10)
    figure.supylabel(success_label(curve.measure), fontsize=10)
    save(figure, path)


def draw_sensitivity(
    path: Path, where: Slice, lines: Sequence[ObjectiveLine], plan: ReportPlan
) -> None:
    """Draws the objective over the price of a silent miss, the tables' prices marked.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    shown = [_Line(line.policy, line.prices, line.intervals, 1) for line in lines]
    figure, panels = _panels(shown, plan, where.title, MISS_PRICES)
    panels[0].set_xticks((*MISS_PRICES, 10, 15))
    for axes in panels:
        axes.axvline(MISS_PRICE, color=DARK, linewidth=0.8, linestyle=":", zorder=0)
    figure.supxlabel(
        f"price of a silent miss, raw requests (dotted: {MISS_PRICE:g}, the default)", fontsize=10
    )
    figure.supylabel("objective J (0: no bill, no miss)", fontsize=10)
    save(figure, path)


@dataclass(frozen=True, slots=True)
class _Line:
    """A policy's intervals over `x`, and what they are multiplied by for display."""

    policy: str
    x: Sequence[float]
    intervals: Sequence[Interval]
    scale: float


def _panels(
    lines: Sequence[_Line], plan: ReportPlan, title: str, marked: Sequence[float]
) -> tuple[Figure, list[Axes]]:
    """Returns a figure with a panel a policy: its band in colour, the reference's, others grey.

    One panel for all would be a stack of bands in which none can be told apart. Axes are shared.
    """
    names = [line.policy for line in lines]
    shown = [name for name in names if name != plan.reference] or names
    columns = max(min(len(shown), 4), 1)
    rows = max(-(-len(shown) // columns), 1)
    width = max(1.0 + 2.5 * columns, 6.0)
    figure = new_figure(width, max(0.9 + 2.1 * rows, 4.0))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, name in zip(grid.flat, shown, strict=False):
        _fill_panel(axes, lines, name, plan, marked)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    # Above an empty place, a panel keeps its tick labels.
    for axes in grid.flat[max(len(shown) - columns, 0) : len(shown)]:
        axes.tick_params(labelbottom=True)
    key = f"{title} (black: {plan.reference}; grey: the others; bands: 95% intervals)"
    figure.suptitle(wrapped(key, int(11 * width)), fontsize=11)
    return figure, list(grid.flat[: max(len(shown), 1)])


def _fill_panel(
    axes: Axes, lines: Sequence[_Line], policy: str, plan: ReportPlan, marked: Sequence[float]
) -> None:
    for line in lines:
        if line.policy in (policy, plan.reference):
            style = styles(plan)[line.policy]
            band(axes, line.x, line.intervals, style, line.scale, marked)
        else:
            means = [line.scale * interval.mean for interval in line.intervals]
            axes.plot(line.x, means, color=GREY, linewidth=0.8, zorder=1)
    finish(axes, wrapped(policy, 30))


def _label_points(figure: Figure, axes: Axes, front: Front, grid: Pixels, best: Pixels) -> None:
    """Names each point beside it, clear of the other names, points, bars and the front."""
    axes.set_xlim(axes.get_xlim())
    centres = np.array([(100 * p.cost.mean, 100 * p.success.mean) for p in front.points])
    texts = [
        axes.text(
            0, 0, wrapped(p.policy, 24), fontsize=9, ha="center", va="center", zorder=4,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5},
        )
        for p in front.points
    ]  # fmt: skip
    if not texts:
        return
    figure.canvas.draw()
    sizes = np.array([(t.get_window_extent().width, t.get_window_extent().height) for t in texts])
    anchors = axes.transData.transform(centres)
    obstacles, weights = _obstacles(axes, front, grid, best)
    frame = np.array([*axes.get_window_extent().extents])
    frame[2] = figure.bbox.x1 - 8
    placed = place(anchors, sizes + 4, frame, obstacles, weights)
    for text, anchor, spot, size in zip(texts, anchors, placed, sizes, strict=True):
        x, y = axes.transData.inverted().transform(spot)
        text.set_position((x, y))
        nearest = np.clip(anchor, spot - size / 2, spot + size / 2)
        if np.linalg.norm(nearest - anchor) > 0.12 * DPI:
            line = axes.transData.inverted().transform([anchor, nearest])
            axes.plot(*line.T, color=DARK, linewidth=0.6, zorder=1, clip_on=False)


def _obstacles(axes: Axes, front: Front, grid: Pixels, best: Pixels) -> tuple[Pixels, Pixels]:
    """Returns boxes in pixels that labels should not cover, and how bad it is."""
    boxes: list[tuple[Pixels, float, float]] = []
    to_pixels = axes.transData.transform
    for point in front.points:
        x, y = 100 * point.cost.mean, 100 * point.success.mean
        boxes.append((to_pixels([(x, y), (x, y)]), 9, 20))
        for ends in (
            [(100 * point.cost.low, y), (100 * point.cost.high, y)],
            [(x, 100 * point.success.low), (x, 100 * point.success.high)],
        ):
            if np.isfinite(ends).all():
                boxes.append((to_pixels(ends), 2, 3))
    boxes.extend((to_pixels([spot, spot]), 4, 0.5) for spot in grid)
    for start, end in pairwise(best):
        steps = np.linspace(start, end, 40)
        boxes.extend((to_pixels([step, step]), 2, 2) for step in steps)
    corners = [(*(ends.min(axis=0) - pad), *(ends.max(axis=0) + pad)) for ends, pad, _ in boxes]
    return np.array(corners), np.array([weight for _, _, weight in boxes])
