"""The objective under other prices of a silent miss: does the order of the policies depend on it?

What a wrong action costs is an assumption, 5 raw requests by default. Rows keep the misses' cost at
a price of one, so the objective at any price follows without another evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.rows import MISS_PRICE, EvaluationRow, objective_value
from contextpilot.evaluation.slices import Group, Measure, ReportPlan
from contextpilot.evaluation.statistics import Interval
from contextpilot.evaluation.tables import Cell, Column, Table, build_table

MISS_PRICES = (1.0, MISS_PRICE, 20.0)


def objective_at(row: EvaluationRow, miss_price: float) -> float:
    """Returns the row's objective at a miss price, in raw requests a miss."""
    return objective_value(
        row.billed_tokens, row.raw_billed_tokens, row.miss_cost_tokens, row.failed, miss_price
    )


def sensitivity_table(
    group: Group, plan: ReportPlan, miss_prices: Sequence[float] = MISS_PRICES
) -> Table:
    """Returns the objective of each policy at each miss price."""

    def cells(policy: str) -> tuple[Cell, ...]:
        return tuple(
            group.interval(policy, price_measure(price), plan.seed) for price in miss_prices
        )

    columns = tuple(
        Column(f"objective_at_{price:g}", f"J at miss price {price:g}", 3) for price in miss_prices
    )
    note = "Miss prices are in raw requests a miss."
    title = "Objective by miss price"
    return build_table("sensitivity", title, group, columns, plan.policies, cells, note)


@dataclass(frozen=True, slots=True)
class ObjectiveLine:
    """A policy's objective over `prices` (raw requests a miss), one interval a price."""

    policy: str
    prices: tuple[float, ...]
    intervals: tuple[Interval, ...]


def objective_lines(
    group: Group, plan: ReportPlan, miss_prices: Sequence[float] = MISS_PRICES, samples: int = 21
) -> tuple[ObjectiveLine, ...]:
    """Returns each policy's objective from a price of 0 to the largest one, for a plot.

    Raises:
        ConfigurationError: when `samples` is below 2 or no price is above 0.
    """
    if samples < 2 or not max(miss_prices, default=0) > 0:
        raise ConfigurationError(
            "A line needs 2 samples and a miss price above 0. "
            f"Received {samples} and {tuple(miss_prices)}. Leave both at their defaults."
        )
    prices = tuple(float(price) for price in np.linspace(0, max(miss_prices), samples))
    lines = []
    for policy in plan.policies:
        intervals = [group.interval(policy, price_measure(price), plan.seed) for price in prices]
        shown = tuple(interval for interval in intervals if interval is not None)
        if shown:
            lines.append(ObjectiveLine(policy, prices, shown))
    return tuple(lines)


def best_by_price(table: Table, without: str = "") -> tuple[str | None, ...]:
    """Returns, for each price column of a sensitivity table, the policy with the best mean.

    `without` leaves one policy out, such as the oracle.
    """
    best: list[str | None] = []
    for index in range(len(table.columns)):
        cells = [(row.cells[index], row.policy) for row in table.rows if row.policy != without]
        known = [(cell.mean, policy) for cell, policy in cells if cell is not None]
        best.append(max(known)[1] if known else None)
    return tuple(best)


def price_measure(price: float) -> Measure:
    """Returns the measure that reads a row's objective at a miss price."""
    return lambda row: objective_at(row, price)
