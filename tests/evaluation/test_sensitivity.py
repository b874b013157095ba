from __future__ import annotations

import pytest
from evaluation.synthetic import make_row, make_rows

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.sensitivity import (
    best_by_price,
    objective_at,
    objective_lines,
    sensitivity_table,
)
from contextpilot.evaluation.slices import ReportPlan, group_rows

PLAN = ReportPlan(("raw", "cheap", "absent"), "raw")
(GROUP,) = group_rows(
    [make_row(task_id=f"t{k}", cluster=f"t{k}") for k in range(2)]
    + [
        make_row(
            policy="cheap", task_id=f"t{k}", cluster=f"t{k}", billed_tokens=400.0,
            billed_without_prefix_tokens=300.0, silent_misses=1, miss_cost_tokens=60.0,
        )
        for k in range(2)
    ]
)  # fmt: skip


def test_by_hand() -> None:
    row = GROUP.of("cheap")[0]
    # (400 + price * 60) / 1000
    assert [objective_at(row, price) for price in (1, 5, 20)] == pytest.approx([-0.46, -0.7, -1.6])


def test_default_price_gives_the_stored_objective() -> None:
    for row in make_rows(tasks=3):
        assert objective_at(row, 5.0) == pytest.approx(row.objective)


def test_table_and_best() -> None:
    table = sensitivity_table(GROUP, PLAN)
    means = [[cell.mean if cell else None for cell in row.cells] for row in table.rows]
    assert means == [[-1, -1, -1], pytest.approx([-0.46, -0.7, -1.6]), [None] * 3]
    assert best_by_price(table) == ("cheap", "cheap", "raw")
    assert best_by_price(table, without="cheap") == ("raw", "raw", "raw")
    assert [column.label for column in table.columns] == [
        f"J at miss price {price}" for price in (1, 5, 20)
    ]


def test_without_any_rows_nothing_is_best() -> None:
    table = sensitivity_table(GROUP, ReportPlan(("absent",), "absent"))
    assert best_by_price(table) == (None, None, None)


def test_lines_are_straight() -> None:
    raw, cheap = objective_lines(GROUP, PLAN)
    assert (raw.policy, cheap.policy) == ("raw", "cheap")
    assert (cheap.prices[0], cheap.prices[-1]) == (0.0, 20.0)
    assert {1.0, 5.0, 20.0} <= set(cheap.prices)
    for price, interval in zip(cheap.prices, cheap.intervals, strict=True):
        assert interval.mean == pytest.approx(-0.4 - 0.06 * price)


def test_refuses_a_line_without_length() -> None:
    with pytest.raises(ConfigurationError, match=r"Received 1 and \(1.0, 5.0, 20.0\)"):
        objective_lines(GROUP, PLAN, samples=1)
    with pytest.raises(ConfigurationError, match=r"Received 21 and \(\)"):
        objective_lines(GROUP, PLAN, ())
