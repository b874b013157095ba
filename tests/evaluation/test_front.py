from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation.synthetic import family_rows, make_row, make_rows
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.evaluation.front import cost_at, family_ratio, front_of, matched_ratio, pareto
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.slices import Group, ReportPlan, group_rows

POINTS = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=15
)  # fmt: skip


def one_group(rows: list[EvaluationRow]) -> Group:
    (group,) = group_rows(rows)
    return group


def policy_rows(policy: str, cost: float, success: list[float]) -> list[EvaluationRow]:
    """Returns one row per task at a fixed share of the raw bill."""
    return [
        make_row(
            policy=policy,
            task_id=f"t{index}",
            cluster=f"t{index}",
            billed_tokens=1000 * cost,
            billed_without_prefix_tokens=900 * cost,
            demand_success=share,
        )
        for index, share in enumerate(success)
    ]


class TestPareto:
    def test_by_hand(self) -> None:
        costs, successes = [0.5, 0.4, 0.6, 0.4, 0.7], [0.8, 0.7, 0.8, 0.6, 0.9]
        assert pareto(costs, successes) == (1, 0, 4)

    @given(POINTS)
    def test_keeps_what_nothing_beats(self, points: list[tuple[int, int]]) -> None:
        costs, successes = zip(*points, strict=True)
        kept = {points[index] for index in pareto(costs, successes)}
        for cost, success in points:
            beaten = any(
                c <= cost and s >= success and (c, s) != (cost, success) for c, s in points
            )
            assert ((cost, success) in kept) is not beaten


class TestCostAt:
    costs, successes = (0.4, 0.6, 0.5, 0.9), (0.7, 0.9, 0.6, 0.9)

    @pytest.mark.parametrize(
        ("level", "expected"), [(0.8, 0.5), (0.7, 0.4), (0.9, 0.6), (0.2, 0.4), (0.91, math.inf)]
    )
    def test_by_hand(self, level: float, expected: float) -> None:
        # (0.5, 0.6) and (0.9, 0.9) are beaten; 0.8 lies half-way between the other two.
        assert cost_at(self.costs, self.successes, level) == pytest.approx(expected)

    def test_margin(self) -> None:
        assert cost_at(self.costs, self.successes, 0.904, 0.005) == 0.6
        assert cost_at(self.costs, self.successes, 0.906, 0.005) == math.inf

    @given(POINTS, st.integers(0, 20), st.integers(0, 20))
    def test_more_success_never_costs_less(
        self, points: list[tuple[int, int]], a: int, b: int
    ) -> None:
        costs, successes = zip(*points, strict=True)
        low, high = sorted((a, b))
        assert cost_at(costs, successes, low) <= cost_at(costs, successes, high)


class TestMatchedRatio:
    plan = ReportPlan(("ref", "other"), "ref")

    def ratio(self, success: list[float], cost: float = 0.3) -> float | None:
        rows = policy_rows("ref", 0.6, [1.0, 0.8]) + policy_rows("other", cost, success)
        interval = matched_ratio(one_group(rows), "other", "ref", self.plan)
        return None if interval is None else interval.mean

    def test_ratio_of_bills(self) -> None:
        assert self.ratio([1.0, 0.8]) == pytest.approx(0.5)
        assert self.ratio([1.0, 1.0]) == pytest.approx(0.5)

    def test_half_a_point_is_the_limit(self) -> None:
        assert self.ratio([1.0, 0.79]) == pytest.approx(0.5)
        assert self.ratio([1.0, 0.789]) is None

    def test_only_shared_tasks_count(self) -> None:
        rows = policy_rows("ref", 0.6, [1.0, 0.8]) + policy_rows("other", 0.3, [1.0, 0.8, 0.0])
        ratio = matched_ratio(one_group(rows), "other", "ref", self.plan)
        assert ratio is not None
        assert ratio.clusters == 2

    def test_nothing_shared(self) -> None:
        rows = policy_rows("ref", 0.6, [1.0])
        group = one_group(rows)
        assert matched_ratio(group, "other", "ref", self.plan) is None
        assert matched_ratio(group, "ref", "other", self.plan) is None

    def test_interval_covers_the_bills_spread(self) -> None:
        group = one_group(make_rows(["raw", "oracle"]))
        ratio = matched_ratio(group, "oracle", "raw", ReportPlan(("raw", "oracle"), "raw"))
        assert ratio is not None
        assert 0.37 < ratio.low < ratio.mean < ratio.high < 0.43


class TestFamilyRatio:
    plan = ReportPlan(("ref",), "ref", families={"rule": ("rule[0]", "rule[1]", "rule[2]")})

    def rows(self, best: float) -> list[EvaluationRow]:
        return [
            *policy_rows("ref", 0.5, [0.8, 0.8]),
            *policy_rows("rule[0]", 0.2, [0.6, 0.6]),
            *policy_rows("rule[1]", 0.4, [best, best]),
        ]

    def test_interpolates(self) -> None:
        ratio = family_ratio(one_group(self.rows(1.0)), "rule", "ref", self.plan)
        assert ratio is not None
        # Success 0.8 lies half-way, so the bill is 0.3, over 0.5.
        assert ratio.mean == pytest.approx(0.6)

    def test_out_of_reach(self) -> None:
        assert family_ratio(one_group(self.rows(0.79)), "rule", "ref", self.plan) is None

    def test_within_the_margin(self) -> None:
        ratio = family_ratio(one_group(self.rows(0.797)), "rule", "ref", self.plan)
        assert ratio is not None
        assert ratio.mean == pytest.approx(0.8)

    def test_end_is_open_where_resamples_fall_short(self) -> None:
        rows = [
            *policy_rows("ref", 0.5, [0.8] * 10),
            *policy_rows("rule[0]", 0.3, [0.7, 0.95] * 5),
        ]
        ratio = family_ratio(one_group(rows), "rule", "ref", self.plan)
        assert ratio is not None
        assert (ratio.mean, ratio.low) == pytest.approx((0.6, 0.6))
        assert ratio.high == math.inf

    def test_without_rows(self) -> None:
        group = one_group(policy_rows("ref", 0.5, [0.8]))
        assert family_ratio(group, "rule", "ref", self.plan) is None

    def test_agrees_with_the_single_policy_when_it_is_alone(self) -> None:
        group = one_group(make_rows(["raw", "oracle", "learned"]))
        plan = ReportPlan(("raw",), "raw", families={"one": ("oracle",)})
        assert family_ratio(group, "one", "learned", plan) == matched_ratio(
            group, "oracle", "learned", plan
        )


class TestFront:
    def test_points_and_grid(self) -> None:
        settings = tuple(f"keep_last[{k}]" for k in range(6))
        rows = make_rows(["raw", "learned"]) + family_rows(range(6))
        plan = ReportPlan(("raw", "learned", "absent"), "raw", families={"keep_last": settings})
        front = front_of(one_group(rows), plan)
        assert [point.policy for point in front.points] == ["raw", "learned"]
        assert [point.policy for point in front.grid] == list(settings)
        assert front.points[0].cost.mean == 1.0
        costs = [front.grid[index].cost for index in front.pareto]
        successes = [front.grid[index].success for index in front.pareto]
        assert costs == sorted(costs)
        assert successes == sorted(successes)
        assert len(front.pareto) > 2

    def test_measure(self) -> None:
        group = one_group(make_rows(["raw", "drop_oldest"]))
        by_task = front_of(
            group, ReportPlan(("drop_oldest",), "drop_oldest", success="task_success")
        )
        expected = np.mean([row.task_success for row in group.of("drop_oldest")])
        assert by_task.points[0].success.mean == pytest.approx(expected)
        assert by_task.measure == "task_success"
