"""The rules' front that tuning found: nothing beaten in it, its ends and the best point kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.rule_front import MOST, front_specs
from contextpilot.evaluation.tuning import GridPoint
from contextpilot.policies.catalog import PolicySpec

RESULTS = Path(__file__).resolve().parents[2] / "results" / "tuning_half"


def point(
    number: int, cost: float, success: float, objective: float = -9.0, policy: str = "truncation"
) -> GridPoint:
    """Returns a grid point whose trigger says which one it is."""
    return GridPoint(
        policy, {"trigger": number}, objective, success, 0.0, cost, cost, 0.0, 0.0, 12
    )  # fmt: skip


def numbers(specs: list[PolicySpec]) -> list[int]:
    return [dict(spec.params)["trigger"] for spec in specs]


def test_by_hand() -> None:
    grid = [
        point(0, 0.7, 0.9),
        point(1, 0.4, 0.6),
        point(2, 0.5, 0.5),  # point 1 is cheaper and better
        point(3, 0.5, 0.8),
        point(4, 0.8, 0.9),  # point 0 is as good and cheaper
    ]
    assert numbers(front_specs(grid)) == [1, 3, 0]


def test_the_best_objective_is_there_although_others_beat_it() -> None:
    grid = [point(0, 0.4, 0.6, -2.0), point(1, 0.5, 0.6, -1.0), point(2, 0.7, 0.9, -3.0)]
    assert numbers(front_specs(grid)) == [0, 1, 2]


def test_only_rules_are_in_it() -> None:
    beats_all = point(0, 0.1, 1.0, 0.0, "reuse_predictor")
    (spec,) = front_specs([beats_all, point(1, 0.5, 0.5)])
    assert spec == PolicySpec("truncation", (("trigger", 1),))
    with pytest.raises(ConfigurationError, match=r"Received \['reuse_predictor'\]"):
        front_specs([beats_all])


def test_a_long_front_is_thinned_to_what_is_far_apart() -> None:
    crowd = [point(k, 0.5 + k / 1000, 0.5 + k / 1000) for k in range(20)]
    alone = [point(100 + k, 0.6 + k / 10, 0.6 + k / 10) for k in range(3)]
    found = numbers(front_specs([*crowd, *alone]))
    assert len(found) == MOST
    assert found[0] == 0
    assert found[-3:] == [100, 101, 102]


def test_parameters_keep_their_values_and_come_by_name() -> None:
    grid = [GridPoint("goal_selection", {"trigger": 0.8, "target": 0.5}, -1, 1, 1, 1, 1, 0, 0, 12)]
    assert front_specs(grid) == [PolicySpec("goal_selection", (("target", 0.5), ("trigger", 0.8)))]


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(-50, 0)),
        min_size=1,
        max_size=40,
    )
)
def test_the_ends_and_the_best_point_are_always_there(points: list[tuple[int, int, int]]) -> None:
    grid = [point(k, *each) for k, each in enumerate(points)]
    found = [grid[k] for k in numbers(front_specs(grid))]
    best = max(p.objective for p in grid)
    assert 1 <= len(found) <= MOST
    assert len({p.params["trigger"] for p in found}) == len(found)
    assert min(p.billed_share for p in found) == min(p.billed_share for p in grid)
    assert max(p.demand_success for p in found) == max(p.demand_success for p in grid)
    assert max(p.objective for p in found) == best
    for each in found:
        beaten = any(
            p.billed_share <= each.billed_share
            and p.demand_success >= each.demand_success
            and (p.billed_share, p.demand_success) != (each.billed_share, each.demand_success)
            for p in grid
        )
        assert not beaten or each.objective == best


@pytest.mark.parametrize("source", ["docqa", "tools", "chat", "logs", "restock"])
def test_the_recorded_grids_have_a_front(source: str) -> None:
    lines = json.loads((RESULTS / f"grid_{source}.json").read_text(encoding="utf-8"))
    specs = front_specs([GridPoint(**line) for line in lines])
    assert 2 <= len(specs) <= MOST
    assert len({spec.label for spec in specs}) == len(specs)
    for spec in specs:
        spec()  # every parameter is one that the rule has
