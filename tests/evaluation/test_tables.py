from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from evaluation.synthetic import PROFILES, family_rows, make_row, make_rows

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.render import (
    DASH,
    format_interval,
    markdown_grid,
    to_json_rows,
    to_markdown,
    to_text,
)
from contextpilot.evaluation.slices import Group, ReportPlan, group_rows
from contextpilot.evaluation.statistics import Interval
from contextpilot.evaluation.tables import Column, Table, comparison_tables, group_tables

PLAN = ReportPlan(("raw", "a", "absent"), "raw")
KEYS = [
    "task_effect", "difference", "context_efficiency", "matched_ratio", "edit_quality",
    "edits_by_op",
]  # fmt: skip


def two_policies() -> Group:
    """Two tasks of two clusters; `a` saves half of each bill and fails the second task."""
    rows = [
        make_row(task_id=f"t{index}", cluster=f"t{index}", raw_billed_tokens=bill,
                 billed_tokens=bill, billed_without_prefix_tokens=bill - 100.0,
                 raw_without_prefix_tokens=bill - 100.0)
        for index, bill in enumerate((1000.0, 3000.0))
    ]  # fmt: skip
    rows += [
        make_row(policy="a", task_id="t0", cluster="t0", billed_tokens=500.0, edits=3,
                 edits_by_op={"fold": 2, "drop": 1, "keep": 4}, peak_tokens=600,
                 billed_without_prefix_tokens=400.0, raw_without_prefix_tokens=900.0),
        make_row(policy="a", task_id="t1", cluster="t1", billed_tokens=1500.0, edits=1,
                 raw_billed_tokens=3000.0, edits_by_op={"fold": 1}, peak_tokens=800,
                 billed_without_prefix_tokens=1400.0, raw_without_prefix_tokens=2900.0,
                 demand_success=0.5, task_success=False, failed=True, silent_misses=2,
                 miss_cost_tokens=30.0, forced_reloads=1, revisits=3, overflows=1,
                 key_facts_kept=0.5),
    ]  # fmt: skip
    (group,) = group_rows(rows)
    return group


def cell(tables: tuple[Table, ...], key: str, policy: str, column: str) -> Any:
    (table,) = [table for table in tables if table.key == key]
    index = [c.key for c in table.columns].index(column)
    (row,) = [row for row in table.rows if row.policy == policy]
    return row.cells[index]


class TestCells:
    tables = group_tables(two_policies(), PLAN)

    @pytest.mark.parametrize(
        ("key", "column", "expected"),
        [
            ("task_effect", "demand_success", 0.75),
            ("task_effect", "task_success", 0.5),
            # -0.5, and -(1500 + 5 * 30) / 3000 - 2.
            ("task_effect", "objective", (-0.5 - 2.55) / 2),
            ("difference", "demand_success_difference", -0.25),
            ("difference", "task_success_difference", -0.5),
            ("difference", "objective_difference", (0.5 - 1.55) / 2),
            ("context_efficiency", "billed_share", 0.5),
            ("context_efficiency", "billed_share_without_prefix", (4 / 9 + 14 / 29) / 2),
            ("context_efficiency", "peak_tokens", 700),
            ("context_efficiency", "overflow_rate", 0.5),
            ("edit_quality", "edits_per_request", 0.2),
            ("edit_quality", "silent_misses", 1.0),
            ("edit_quality", "forced_reloads", 0.5),
            ("edit_quality", "revisits", 1.5),
            ("edit_quality", "key_facts_kept", 0.75),
            ("edits_by_op", "fold_per_request", 0.15),
            ("edits_by_op", "drop_per_request", 0.05),
            ("edits_by_op", "reload_per_request", 0.0),
        ],
    )
    def test_by_hand(self, key: str, column: str, expected: float) -> None:
        assert cell(self.tables, key, "a", column).mean == pytest.approx(expected)

    def test_interval_of_two_clusters(self) -> None:
        assert cell(self.tables, "task_effect", "a", "demand_success") == Interval(0.75, 0.5, 1, 2)

    def test_all_tables_in_order_for_each_slice(self) -> None:
        rows = make_rows(["raw"], tasks=2) + make_rows(["raw"], tasks=2, notice="poor")
        tables = comparison_tables(rows, ReportPlan(("raw",), "raw"))
        assert [table.key for table in tables] == KEYS * 2
        assert [table.slice.notice for table in tables[::6]] == ["good", "poor"]

    def test_policies_in_the_given_order_and_absent_ones_without_numbers(self) -> None:
        for table in self.tables:
            expected = ["a", "absent"] if table.key == "difference" else ["raw", "a", "absent"]
            assert [row.policy for row in table.rows] == expected
            assert set(table.rows[-1].cells) == {None}
            assert table.rows[-1].episodes == 0

    def test_policies_outside_the_plan_are_left_out(self) -> None:
        tables = group_tables(two_policies(), ReportPlan(("raw",), "raw"))
        assert {row.policy for table in tables for row in table.rows} == {"raw"}

    def test_a_policy_far_below_has_no_ratio(self) -> None:
        assert cell(self.tables, "matched_ratio", "a", "ratio_to_raw") is None
        assert cell(self.tables, "matched_ratio", "raw", "ratio_to_raw").mean == 1

    def test_differences_count_the_shared_episodes(self) -> None:
        rows = make_rows(["raw"], tasks=3) + make_rows(["learned"], tasks=5)
        tables = comparison_tables(rows, ReportPlan(("raw", "learned"), "raw"))
        episodes = {table.key: table.rows[-1].episodes for table in tables}
        assert episodes["difference"] == 12
        assert episodes["task_effect"] == 20

    def test_families_follow_the_policies(self) -> None:
        rows = make_rows(["raw", "rolling_summary"]) + family_rows(range(8))
        plan = ReportPlan(
            ("raw", "rolling_summary"),
            "raw",
            matched=("raw", "rolling_summary"),
            families={"keep_last": tuple(f"keep_last[{k}]" for k in range(8)), "none": ("x",)},
        )
        table = next(t for t in comparison_tables(rows, plan) if t.key == "matched_ratio")
        names = [row.policy for row in table.rows[2:]]
        assert names == ["keep_last (front of 8)", "none (front of 0)"]
        front, none = table.rows[2:]
        assert front.cells[0] is None
        assert front.cells[1] is not None
        assert 0.8 < front.cells[1].mean < 1.2
        assert none.cells == (None, None)


class TestPlan:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"reference": "rax"}, "`reference` .*Received 'rax'. Did you mean 'raw'"),
            ({"matched": ("b",)}, "`matched` .*Received 'b'"),
            ({"policies": ("raw", "raw")}, "names one twice"),
            ({"success": "task_succes"}, "`success` .*Did you mean 'task_success'"),
            ({"margin": 0.0}, "`margin` must be above 0. Received 0.0"),
        ],
    )
    def test_refuses(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            ReportPlan(**{"policies": ("raw", "a"), "reference": "raw", **change})


COLUMN = Column("x", "x, %", 1, 100)


class TestFormat:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, DASH),
            (Interval(math.nan, math.nan, math.nan, 0), DASH),
            (Interval(0.5, 0.25, 0.75, 9), "50.0 [25.0, 75.0]"),
            (Interval(0.5, math.nan, math.nan, 1), "50.0"),
            (Interval(0.5, 0.25, math.inf, 9), f"50.0 [25.0, {DASH}]"),
            (Interval(-0.0001, -0.0002, 0.0, 9), "0.0 [0.0, 0.0]"),
            (Interval(-0.01, -12.345, 0.0, 9), "-1.0 [-1,234.5, 0.0]"),
        ],
    )
    def test_by_hand(self, value: Interval | None, expected: str) -> None:
        assert format_interval(value, COLUMN) == expected

    def test_without_interval(self) -> None:
        assert format_interval(Interval(0.5, 0.1, 0.9, 9), Column("x", "x", 2, interval=False)) == (
            "0.50"
        )


class TestRendering:
    tables = group_tables(two_policies(), PLAN)

    def test_text_is_aligned(self) -> None:
        for table in self.tables:
            lines = to_text(table).splitlines()
            note = 1 if table.note else 0
            assert lines[0].startswith(table.title)
            assert len(lines) == 3 + len(table.rows) + note
            rule = lines[2]
            ends = [match.end() for match in re.finditer("-+", rule)]
            for line in (lines[1], *lines[3 : 3 + len(table.rows)]):
                assert len(line) == len(rule)
                for end in ends[1:]:
                    assert line[end - 1] != " "

    def test_markdown_has_a_cell_per_column(self) -> None:
        for table in self.tables:
            lines = to_markdown(table).splitlines()
            assert len(lines) == 2 + len(table.rows)
            assert {line.count("|") for line in lines} == {len(table.columns) + 3}

    def test_markdown_escapes(self) -> None:
        assert markdown_grid([["a|b", "c"], ["d", "e"]]).splitlines() == [
            "| a\\|b | c |", "| :-- | --: |", "| d | e |",
        ]  # fmt: skip

    def test_json_rows_are_json_with_null_for_missing(self) -> None:
        for table in self.tables:
            rows = json.loads(json.dumps(to_json_rows(table), allow_nan=False))
            assert [row["policy"] for row in rows] == [row.policy for row in table.rows]
            for column in table.columns:
                assert rows[-1][column.key] is None
        effect = to_json_rows(self.tables[0])[1]
        assert effect["demand_success"] == {"mean": 0.75, "low": 0.5, "high": 1.0}
        assert (effect["episodes"], effect["clusters"]) == (2, 2)

    def test_one_cluster_shows_no_interval(self) -> None:
        tables = comparison_tables(make_rows(["raw"], (10,), 1), ReportPlan(("raw",), "raw"))
        assert "[" not in to_text(tables[0])
        assert to_json_rows(tables[0])[0]["demand_success"] == {
            "mean": 1.0, "low": None, "high": None,
        }  # fmt: skip


def test_same_rows_same_tables() -> None:
    rows = make_rows(tasks=5)
    plan = ReportPlan(tuple(PROFILES), "raw")
    assert comparison_tables(rows, plan) == comparison_tables(list(rows), plan)
