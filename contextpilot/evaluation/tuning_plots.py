"""The fronts of the rules on training tasks, as tuning found them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contextpilot.evaluation.canvas import PlotsUnavailableError, finish, new_figure
from contextpilot.evaluation.front import pareto
from contextpilot.evaluation.tuning import GridPoint


def draw_grid(path: Path, source: str, points: Sequence[GridPoint]) -> None:
    """Draws bill against demand success of every grid point that played all tasks.

    Without matplotlib (extra `plots`) nothing is drawn; the figures are in the JSON beside it.
    """
    try:
        figure = new_figure()
    except PlotsUnavailableError:
        return
    axes = figure.add_subplot()
    for kind in dict.fromkeys(p.policy for p in points):
        own = [p for p in points if p.policy == kind]
        x = [100 * p.billed_share for p in own]
        y = [100 * p.demand_success for p in own]
        (line,) = axes.plot(x, y, "o", markersize=4, alpha=0.6, label=kind.replace("_", " "))
        best = [own[k] for k in pareto(x, y)]
        axes.plot(
            [100 * p.billed_share for p in best], [100 * p.demand_success for p in best],
            "-", linewidth=1.2, color=line.get_color(),
        )  # fmt: skip
    axes.axvline(100, color="0.6", linewidth=0.8, linestyle=":")
    axes.set_xlabel("billed tokens, % of raw (left is cheaper)")
    axes.set_ylabel("demand success, %")
    finish(axes, f"{source}: rules on training tasks; lines: each rule's front")
    figure.subplots_adjust(right=0.8)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path)
