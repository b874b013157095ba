"""What training brought: pairing by task, noise and training seed; fronts; the tables."""

from __future__ import annotations

import pytest
from evaluation.synthetic import make_row

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.training_report import (
    EDITS,
    Arm,
    objective,
    study_document,
    study_markdown,
)
from contextpilot.evaluation.training_study import Played, by_slice


def row(policy: str, task: int, bill: float, success: float = 1.0) -> EvaluationRow:
    """A row without misses of a task whose raw bill is 100: J is -bill / 100."""
    return make_row(
        policy=policy, source="tools", notice="good", task_id=f"t{task}", cluster=f"t{task}",
        billed_tokens=bill, raw_billed_tokens=100.0, demand_success=success,
        billed_without_prefix_tokens=0.0, raw_without_prefix_tokens=50.0,
    )  # fmt: skip


def study() -> list[EvaluationRow]:
    """Four tasks: both trained policies save 25 on every task, however dear the task is."""
    rows = []
    for task in range(4):
        dear = 10.0 * task
        rows += [row("warm 0", task, dear + 50), row("trained 0", task, dear + 25)]
        rows += [row("warm 1", task, dear + 60), row("trained 1", task, dear + 35)]
        rows += [row("cheap", task, 20.0, 0.5), row("dear", task, 80.0)]
        rows += [row("best_rule", task, dear + 50)]
    return rows


ARM = Arm("ppo", ("trained 0", "trained 1"), ("warm 0", "warm 1"))


def test_gains_are_paired_so_that_hard_tasks_and_seeds_cancel():
    gain = Played.of(study()).gain(ARM.trained, ARM.warm, objective)
    assert (gain.mean, gain.low, gain.high) == pytest.approx((0.25, 0.25, 0.25))
    assert gain.clusters == 4  # tasks, and not tasks x seeds


def test_one_control_stands_for_all():
    gain = Played.of(study()).gain(ARM.trained, ("best_rule",), objective)
    assert gain.mean == pytest.approx((0.25 + 0.15) / 2)


def test_lists_that_do_not_pair_are_refused():
    with pytest.raises(ConfigurationError, match="Received 2 and 3"):
        Played.of(study()).gain(ARM.trained, ("warm 0", "warm 1", "cheap"), objective)


def test_the_front_is_read_at_the_success_of_the_trained():
    # The front costs 0.2 at success 0.5 and 0.8 at 1.0; the trained cost 0.15 + 0.3 at 1.0.
    ratio = Played.of(study()).front_ratio(ARM.trained, ("cheap", "dear"))
    assert ratio.mean == pytest.approx(0.45 / 0.8)


def test_a_front_that_never_succeeds_as_often_costs_infinitely_more():
    assert Played.of(study()).front_ratio(ARM.trained, ("cheap",)).mean == 0.0


def test_no_number_stands_where_no_rule_succeeds_as_often():
    page = study_markdown(study_document(study(), [ARM], ["cheap"]))
    assert "no rule succeeds as often |" in page


def test_slices_are_apart():
    rows = [*study(), make_row(policy="warm 0", source="chat", notice="poor")]
    assert set(by_slice(rows)) == {("tools", "good"), ("chat", "poor")}


def test_the_document_has_what_the_arms_and_the_rules_came_to():
    rows = study()
    rows += [
        row(f"trained {k} without {e}", t, 500.0) for k in (0, 1) for e in EDITS for t in range(4)
    ]
    (entry,) = study_document(rows, [ARM], ["cheap", "dear"])
    assert list(entry["policies"]) == ["best_rule"]
    cells = entry["arms"]["ppo"]
    assert cells["gain_over_warm"] == [0.25, 0.25, 0.25]
    assert cells["cost_over_front"][0] == 0.5625
    assert len(cells["by_seed"]) == 2
    assert set(cells["lost_when_masked"]) == set(EDITS)
    # Trained: -0.45 on average; masked: -5.
    assert cells["lost_when_masked"]["fold"][0] == pytest.approx(5 - 0.45)
    # On task 1 the trained cost 0.35 and 0.45 of raw.
    assert entry["by_task"]["t1"] == {
        "best_rule": [0.6, 1.0], "cheap": [0.2, 0.5], "dear": [0.8, 1.0], "ppo": [0.4, 1.0],
    }  # fmt: skip
    page = study_markdown([entry])
    assert "| t1 | 60 (100.0) | 20 (50.0) | 80 (100.0) | 40 (100.0) |" in page
    assert "## tools, notice good" in page
    assert "| ppo | 0.25 [0.25, 0.25] |" in page
    assert "reorder" in page


def test_arms_without_a_warm_start_or_masks_leave_these_cells_out():
    (entry,) = study_document(study(), [Arm("grpo", ("trained 0",))], [])
    assert "gain_over_warm" not in entry["arms"]["grpo"]
    assert "lost_when_masked" not in entry["arms"]["grpo"]
    assert "grpo trained" in study_markdown([entry])
