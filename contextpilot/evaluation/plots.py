"""Three plots: cost against success, success by horizon, objective by miss price.

They need matplotlib, the extra `plots`, which is imported when the first one is drawn. Drawing uses
no global state and no display. Colours are those of Okabe and Ito, told apart under every common
colour blindness; markers and line styles say the same once more.
"""

from __future__ import annotations

from collections.abc import Sequence
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
)
from contextpilot.evaluation.front import Front
from contextpilot.evaluation.horizon import HorizonCurve
from contextpilot.evaluation.labels import Pixels, place, spread
from contextpilot.evaluation.rows import MISS_PRICE
from contextpilot.evaluation.sensitivity import MISS_PRICES, ObjectiveLine
from contextpilot.evaluation.slices import ReportPlan, Slice

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
    """Draws success by horizon, a panel a policy: its interval as a band, all others in grey.

    The reference is in every panel. One panel for all would be a stack of bands.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    shown = [policy for policy, _ in curve.curves if policy != curve.reference] or [curve.reference]
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    figure = new_figure(1.0 + 2.5 * columns, 0.9 + 2.1 * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, policy in zip(grid.flat, shown, strict=False):
        _horizon_panel(axes, curve, policy, plan)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    success_limits(grid[0, 0])
    # A column whose last panel is empty keeps its tick labels on the one above.
    for index in range(len(shown) - columns, len(shown)):
        grid.flat[index].tick_params(labelbottom=True)
    figure.suptitle(
        f"{curve.slice.title} (black: {curve.reference}, grey: the others)", fontsize=11
    )
    figure.supxlabel("horizon, requests per task", fontsize=10)
    figure.supylabel(success_label(curve.measure), fontsize=10)
    figure.set_layout_engine("constrained")
    save(figure, path)


def _horizon_panel(axes: Axes, curve: HorizonCurve, policy: str, plan: ReportPlan) -> None:
    for other, points in curve.curves:
        horizons = [point.horizon for point in points]
        intervals = [point.success for point in points]
        if other in (policy, curve.reference):
            band(axes, horizons, intervals, styles(plan)[other], 100, horizons)
        else:
            means = [100 * interval.mean for interval in intervals]
            axes.plot(horizons, means, color=GREY, linewidth=0.8, zorder=1)
    if curve.horizons[-1] > 4 * curve.horizons[0]:
        axes.set_xscale("log")
    axes.set_xticks(curve.horizons, labels=[str(horizon) for horizon in curve.horizons])
    axes.minorticks_off()
    finish(axes, policy)


def draw_sensitivity(
    path: Path, where: Slice, lines: Sequence[ObjectiveLine], plan: ReportPlan
) -> None:
    """Draws the objective over the price of a silent miss, the tables' prices marked.

    Raises:
        PlotsUnavailableError: when matplotlib is not installed.
    """
    figure = new_figure()
    axes = figure.add_axes((0.085, 0.11, 0.7, 0.82))
    ends = []
    for line in lines:
        marked = [price for price in MISS_PRICES if price in line.prices]
        band(axes, line.prices, line.intervals, styles(plan)[line.policy], 1, marked)
        ends.append((line.policy, line.prices[-1], line.intervals[-1].mean))
    axes.axvline(MISS_PRICE, color=DARK, linewidth=0.8, linestyle=":", zorder=0)
    axes.annotate(
        "default", (MISS_PRICE, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -11),
        textcoords="offset points", color=DARK, fontsize=9,
    )  # fmt: skip
    axes.set_xticks((0, *MISS_PRICES, 10, 15))
    axes.set_xlabel("price of a silent miss, raw requests")
    axes.set_ylabel("objective J (0: no bill, no miss)")
    finish(axes, where.title)
    _label_ends(figure, axes, ends, plan)
    save(figure, path)


def _label_ends(
    figure: Figure, axes: Axes, ends: Sequence[tuple[str, float, float]], plan: ReportPlan
) -> None:
    """Names each line in the right margin, with a thin leader where the name had to move."""
    figure.canvas.draw()
    frame = axes.get_window_extent()
    pixels = axes.transData.transform([(x, y) for _, x, y in ends])
    heights = spread([float(y) for y in pixels[:, 1]], 0.105 * DPI * 1.25, frame.y0, frame.y1)
    for (policy, x, y), height in zip(ends, heights, strict=True):
        fraction = (height - frame.y0) / frame.height
        axes.annotate(
            policy, (x, y), xytext=(1.045, fraction), textcoords="axes fraction", fontsize=9,
            va="center", color="black", annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": styles(plan)[policy].colour, "linewidth": 0.9,
                "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5),
            },
        )  # fmt: skip


def _label_points(figure: Figure, axes: Axes, front: Front, grid: Pixels, best: Pixels) -> None:
    """Names each point beside it, clear of the other names, points, bars and the front."""
    axes.set_xlim(axes.get_xlim())
    centres = np.array([(100 * p.cost.mean, 100 * p.success.mean) for p in front.points])
    texts = [axes.text(0, 0, p.policy, fontsize=9, ha="center", va="center") for p in front.points]
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
