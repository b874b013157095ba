"""Nobody beats the oracle, played action by action as everybody else is."""

from dataclasses import replace

import pytest

from contextpilot.evaluation.runner import Setting, evaluate
from contextpilot.policies.catalog import RULES, PolicySpec
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.synthetic import FAMILIES

POLICIES = {
    "oracle": make_oracle,
    "raw": PolicySpec("raw"),
    **{name: PolicySpec(name) for name in RULES},
    "clear at once": PolicySpec(
        "clear_old_results",
        (("batch_tokens", 0), ("everything", True), ("floor_tokens", 0), ("older_than", 0)),
    ),
    "clear in batches": PolicySpec(
        "clear_old_results", (("batch_tokens", 800), ("everything", True), ("older_than", 1))
    ),
}


@pytest.mark.parametrize(
    ("family", "fraction"), [(name, (None, 0.5)[k % 2]) for k, name in enumerate(FAMILIES)]
)
def test_no_rule_is_better(family, fraction):
    config = SimulatorConfig(budget_fraction=fraction, notice="good")
    spec = EngineSpec(family, config, horizon=8)
    ids = tuple(spec.tasks().ids("validation")[:1])
    setting = Setting(family, "validation", "good", 8, spec, ids, (0,), POLICIES)
    rows = {row.policy: row for row in evaluate([setting])}
    oracle = rows.pop("oracle")
    assert oracle.silent_misses == oracle.overflows == 0
    assert oracle.task_success
    assert oracle.objective >= max(row.objective for row in rows.values()) - 1e-9
    assert fraction or oracle.billed_tokens < oracle.raw_billed_tokens


def test_it_plays_as_planned_where_few_segments_have_slots():
    """What left long ago cannot be reloaded from so few archive slots: the plan knows."""
    spec = EngineSpec("docqa", SimulatorConfig(budget_fraction=None), horizon=12)
    setting = Setting(
        "docqa", "validation", "good", 12, spec, tuple(spec.tasks().ids("validation")[:1]), (0,),
        {"oracle": make_oracle},
    )  # fmt: skip
    (row,) = evaluate([replace(setting, make_engine=_Tight(spec))])
    assert row.silent_misses == row.forced_reloads == 0
    assert row.billed_tokens < 0.95 * row.raw_billed_tokens


class _Tight:
    """The engine of a setting, with two archive slots."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec

    def __call__(self, rows: int):
        from contextpilot_envs.evaluation_engine import EvaluationEngine

        return EvaluationEngine(
            rows, self._spec.tasks(), self._spec.simulator, context_slots=128, archive_slots=2
        )
