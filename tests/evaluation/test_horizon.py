from __future__ import annotations

import math
from dataclasses import replace

import pytest
from evaluation.synthetic import Profile, episode, make_row, make_rows

from contextpilot.evaluation.horizon import (
    Bend,
    explain_bend,
    find_bend,
    horizon_curve,
    horizon_table,
    removed_by_edit,
)
from contextpilot.evaluation.rows import EvaluationRow, RemovedFact
from contextpilot.evaluation.slices import Group, ReportPlan, group_rows
from contextpilot.evaluation.statistics import Interval

HORIZONS = (10, 20, 40, 80)
PLAN = ReportPlan(("raw", "drop_oldest", "absent"), "raw")


def grouped(rows: list[EvaluationRow]) -> Group:
    (group,) = group_rows(rows)
    return group


def outcome(horizon: int, cluster: int, success: bool, *facts: RemovedFact) -> EvaluationRow:
    return make_row(
        policy="p", horizon=horizon, task_id=f"h{horizon}/{cluster}", cluster=str(cluster),
        task_success=success, failed=not success, silent_misses=len(facts), removed_facts=facts,
        demand_success=1.0 if success else 0.5,
    )  # fmt: skip


def fact(op: str, kind: str = "number", seen: str = "stub", at: int = 3) -> RemovedFact:
    return RemovedFact(10, kind, op, at, seen)


class TestCurve:
    def test_success_and_paired_difference(self) -> None:
        group = grouped(make_rows(["raw", "drop_oldest"]))
        curve = horizon_curve(group, PLAN)
        assert curve is not None
        assert curve.horizons == HORIZONS
        (raw, raw_points), (policy, points) = curve.curves
        assert (raw, policy) == ("raw", "drop_oldest")
        assert [point.success.mean for point in raw_points] == [1.0] * 4
        assert all(point.difference is None for point in raw_points)
        for point in points:
            own = [r.task_success for r in group.of(policy) if r.horizon == point.horizon]
            assert point.success.mean == pytest.approx(sum(own) / len(own))
            assert point.difference is not None
            assert point.difference.mean == pytest.approx(point.success.mean - 1)

    def test_other_measure(self) -> None:
        group = grouped(make_rows(["raw", "drop_oldest"]))
        by_task = horizon_curve(group, PLAN)
        by_demand = horizon_curve(group, PLAN, "demand_success")
        assert by_task is not None
        assert by_demand is not None
        for task, demand in zip(by_task.curves[1][1], by_demand.curves[1][1], strict=True):
            assert demand.success.mean > task.success.mean

    def test_recorded_sessions_make_no_curve(self) -> None:
        rows = [outcome(30 + index, index, True) for index in range(6)]
        plan = ReportPlan(("p",), "p")
        assert horizon_curve(grouped(rows), plan) is None
        assert (
            horizon_curve(grouped([outcome(30, index, True) for index in range(6)]), plan) is None
        )

    def test_missing_horizons_are_missing(self) -> None:
        rows = make_rows(["raw"]) + make_rows(["drop_oldest"], horizons=(10, 80))
        group = grouped(rows)
        curve = horizon_curve(group, PLAN)
        assert curve is not None
        for differences in (False, True):
            table = horizon_table(curve, group, differences)
            assert [cell is None for cell in table.rows[-1].cells] == [False, True, True, False]

    def test_difference_table_leaves_the_reference_out(self) -> None:
        group = grouped(make_rows(["raw", "drop_oldest"]))
        curve = horizon_curve(group, PLAN)
        assert curve is not None
        assert [row.policy for row in horizon_table(curve, group).rows] == ["raw", "drop_oldest"]
        table = horizon_table(curve, group, differences=True)
        assert [row.policy for row in table.rows] == ["drop_oldest"]
        assert table.title == "Task success minus raw's by horizon, points"


class TestBend:
    def test_finds_the_largest_clear_drop(self) -> None:
        rows = [
            outcome(h, c, c < kept) for h, kept in ((10, 20), (20, 17), (40, 5)) for c in range(20)
        ]
        bend = find_bend(rows, (10, 20, 40))
        assert bend is not None
        assert (bend.policy, bend.before, bend.after) == ("p", 20, 40)
        assert bend.drop.mean == pytest.approx(12 / 20)
        assert bend.drop.low > 0

    def test_a_small_drop_is_none(self) -> None:
        rows = [outcome(h, c, c < kept) for h, kept in ((10, 20), (20, 18)) for c in range(20)]
        assert find_bend(rows, (10, 20)) is None

    def test_a_rise_is_none(self) -> None:
        rows = [outcome(h, c, c < kept) for h, kept in ((10, 2), (20, 18)) for c in range(20)]
        assert find_bend(rows, (10, 20)) is None

    def test_shared_clusters_are_paired(self) -> None:
        # The same 8 of 60 clusters fail only at the longer horizon, half of all fail at both.
        def rows(shift: int) -> list[EvaluationRow]:
            before = [outcome(10, c, c >= 30) for c in range(60)]
            return before + [outcome(20, c + shift, c >= 38) for c in range(60)]

        paired, apart = find_bend(rows(0), (10, 20)), find_bend(rows(1000), (10, 20))
        assert paired is not None
        assert paired.drop.low > 0
        assert apart is None

    def test_level_is_corrected_for_the_number_of_pairs(self) -> None:
        rows = [outcome(h, c, c < kept) for h, kept in ((10, 20), (20, 10)) for c in range(20)]
        more = [outcome(h, c, c < 10) for h in (40, 80, 160, 320) for c in range(20)]
        one, five = find_bend(rows, (10, 20)), find_bend(rows + more, (10, 20, 40, 80, 160, 320))
        assert one is not None
        assert five is not None
        assert one.drop.mean == five.drop.mean
        assert five.drop.low < one.drop.low

    def test_flat_noise_seldom_bends(self) -> None:
        flat, found = Profile(0.5, 0.1), 0
        for trial in range(60):
            rows = [
                episode("p", flat, "s", "good", h, task, trial)
                for h in HORIZONS
                for task in range(30)
            ]
            found += find_bend(rows, HORIZONS) is not None
        # The corrected level is one-sided here: 2.5% at most, plus the bootstrap's narrowness.
        assert found <= 5

    def test_without_rows_on_one_side(self) -> None:
        assert find_bend([outcome(10, 1, True)], (10, 20)) is None
        assert find_bend([outcome(10, 1, True)], (10,)) is None


class TestExplanation:
    bend = Bend("p", 20, 40, Interval(0.5, 0.2, 0.8, 9))

    def test_counts_only_tasks_that_fail_after_and_not_before(self) -> None:
        rows = [
            outcome(20, 1, True),
            outcome(40, 1, False, fact("fold", at=4), fact("drop", "name", "nothing", at=8)),
            outcome(20, 2, True),
            outcome(40, 2, False, fact("fold", at=2)),
            # Failed before already; succeeded after; another horizon: none of them counts.
            outcome(20, 3, False, fact("reorder")),
            outcome(40, 3, False, fact("summarize")),
            outcome(20, 4, True),
            outcome(40, 4, True),
            outcome(80, 1, False, fact("expire")),
        ]
        why = explain_bend(rows, self.bend)
        assert (why.flipped, why.unmatched) == (2, 0)
        assert why.facts == (
            (("fold", "number", "stub"), 2),
            (("drop", "name", "nothing"), 1),
        )
        assert why.by_edit() == (("fold", 2), ("drop", 1))
        assert why.lag == 6.0

    def test_seeds_are_kept_apart(self) -> None:
        rows = [
            outcome(20, 1, True),
            replace(outcome(20, 1, False), seed=1),
            replace(outcome(40, 1, False, fact("fold")), seed=1),
        ]
        assert explain_bend(rows, self.bend).flipped == 0

    def test_tasks_without_counterpart_are_counted_apart(self) -> None:
        why = explain_bend([outcome(20, 1, True), outcome(40, 9, False, fact("fold"))], self.bend)
        assert (why.flipped, why.unmatched) == (0, 1)
        assert why.by_edit() == (("fold", 1),)

    def test_facts_that_no_edit_removed_have_no_lag(self) -> None:
        rows = [outcome(20, 1, True), outcome(40, 1, False, fact("none", seen="stale", at=-1))]
        why = explain_bend(rows, self.bend)
        assert why.by_edit() == (("none", 1),)
        assert math.isnan(why.lag)


def test_removed_by_edit_breaks_ties_by_name() -> None:
    facts = [fact("fold"), fact("drop"), fact("summarize"), fact("summarize")]
    assert removed_by_edit(facts) == (("summarize", 2), ("drop", 1), ("fold", 1))
