"""Baselines by name: parameters, tuned files, guards, and policies with an edit masked."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_tasks import FixedSource, chain_task, mixed_task

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.tuning import GridPoint, reuse_grid, rule_grid
from contextpilot.evaluation.tuning_config import tuned_document
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.catalog import (
    RULES,
    TUNED_FILES,
    PolicySpec,
    best_rule,
    policy_spec,
    tuned_parameters,
)
from contextpilot.policies.scripted import SCRIPTED, Masked, ScriptedSpec
from contextpilot.policies.simple import RandomPolicy
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig

NAMES = ("raw", "random", "reuse_predictor", *RULES)


def play(policy: Policy, engine: Engine, task_id: str, seed: int = 0) -> list[int]:
    engine.begin(0, task_id, seed)
    engine.observe([0])
    policy.reset(seed)
    actions = []
    while not engine.episodes[0].ended:
        view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
        action = policy(view)
        assert engine.encoder.action_mask[0, action], engine.codec.decode(action)
        actions.append(action)
        engine.step([action], [0])
    return actions


@pytest.mark.parametrize("name", NAMES)
def test_every_baseline_only_plays_legal_actions(name: str) -> None:
    source = FixedSource(*[mixed_task(seed) for seed in range(3)])
    engine = Engine(1, source, SimulatorConfig(budget_fraction=0.6))
    for task_id in source.ids("train"):
        play(policy_spec(name)(), engine, task_id)


@pytest.mark.parametrize("op", [op for op in Op if op != Op.KEEP])
def test_a_masked_policy_never_uses_its_edit(op: Op) -> None:
    source = FixedSource(mixed_task(4))
    engine = Engine(1, source, SimulatorConfig(budget_fraction=0.6))
    actions = play(Masked(RandomPolicy(), op), engine, "mixed/4")
    played = {engine.codec.decode(action).op for action in actions}
    assert op not in played  # though what was marked may be folded without it
    assert len(played) >= 4
    assert ScriptedSpec(op, masked=False)().name == SCRIPTED[op]().name


def test_the_guard_makes_every_request_fit() -> None:
    engine = Engine(1, FixedSource(chain_task(requests=12)), SimulatorConfig(budget_fraction=0.4))
    play(PolicySpec("clear_old_results", (("older_than", 50),))(), engine, "chain")
    assert engine.episodes[0].tally.overflows == 0
    assert engine.episodes[0].edits_by_op()["fold"] > 0


def test_specs_survive_pickling_and_label_themselves() -> None:
    spec = PolicySpec("truncation", (("trigger", 0.9),))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert spec.label == "truncation,trigger=0.9"


def test_unknown_names_are_named() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'truncation'"):
        policy_spec("truncaton")


def test_the_shipped_tuning_is_readable_and_names_known_parameters() -> None:
    tuned = tuned_parameters()
    assert {"any", "tools", "docqa", "chat", "logs", "restock", "sample"} <= set(tuned)
    for source in tuned:
        assert best_rule(source).kind in RULES
        for name in NAMES:
            policy_spec(name, source)()


def test_the_parameters_for_half_the_peak_are_those_of_their_file() -> None:
    half = tuned_parameters(TUNED_FILES["tuned_half"])
    assert set(half) == {"any", "tools", "docqa", "chat", "logs", "restock"}
    assert half != tuned_parameters(TUNED_FILES["tuned"])
    for source, policies in half.items():
        assert set(policies) == {*RULES, "reuse_predictor", "best_rule"}
        best = best_rule(source, "tuned_half")
        assert best.kind == policies["best_rule"]["kind"]
        assert dict(best.params) == policies[best.kind]
        for name in (*RULES, "reuse_predictor"):
            spec = policy_spec(name, source, tuned="tuned_half")
            assert dict(spec.params) == policies[name]
            spec()
    assert best_rule("codex", "tuned_half") == best_rule("any", "tuned_half")


def test_without_a_file_the_parameters_are_the_first_ones() -> None:
    for source in tuned_parameters():
        assert best_rule(source) == best_rule(source, "tuned")
        for name in NAMES:
            assert policy_spec(name, source) == policy_spec(name, source, "tuned")
    assert any(
        policy_spec(name, "tools") != policy_spec(name, "tools", "tuned_half") for name in RULES
    )


@pytest.mark.parametrize(
    "ask", [lambda t: policy_spec("raw", tuned=t), lambda t: best_rule("tools", t)]
)
def test_an_unknown_file_is_named(ask: Callable[[str], PolicySpec]) -> None:
    with pytest.raises(ConfigurationError, match=r"'tuned_hal'\. Did you mean 'tuned_half'"):
        ask("tuned_hal")


def test_a_tuned_file_with_an_unknown_parameter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps({"tools": {"truncation": {"triger": 1}}}))
    with pytest.raises(ConfigurationError, match="Did you mean 'trigger'"):
        tuned_parameters(path)


def test_the_grid_has_the_settings_that_it_must() -> None:
    grid = rule_grid()
    clear = [dict(spec.params) for spec in grid["clear_old_results"]]
    assert {p["older_than"] for p in clear} == {0, 1, 2, 3, 5, 8}
    assert {p["batch_tokens"] for p in clear} >= {0, 1000, 2000, 4000, 8000, 16000, 32000}
    assert {p["floor_tokens"] for p in clear} >= {40, 200, 1000}
    assert {p.get("trigger", 0.0) for p in clear} >= {0.0, 0.5, 0.8}
    assert {p.get("keep_last", 0) for p in clear} >= {0, 1, 3, 5, 8}
    labels = [spec.label for specs in grid.values() for spec in specs]
    assert len(labels) == len(set(labels))
    for specs in (*grid.values(), reuse_grid()):
        for spec in specs:
            assert spec().name in (spec.kind, "reuse_predictor")


def test_the_tuned_document_takes_the_best_point_and_a_median_for_the_rest() -> None:
    def point(policy: str, objective: float, **params: object) -> GridPoint:
        return GridPoint(policy, params, objective, 1, 1, 1, 1, 0, 0, 5)

    points = {
        "a": [point("truncation", -1.0, trigger=0.9), point("truncation", -2.0, trigger=0.7)],
        "b": [point("truncation", -1.5, trigger=0.5), point("goal_selection", -1.2, target=0.5)],
    }
    document = tuned_document({"c": {"truncation": {"trigger": 0.7}}}, points)
    assert document["a"]["truncation"] == {"trigger": 0.9}
    assert document["a"]["best_rule"] == {"kind": "truncation"}
    assert document["b"]["best_rule"] == {"kind": "goal_selection"}
    assert document["any"]["truncation"] == {"trigger": 0.7}
    assert np.isclose(document["any"]["goal_selection"]["target"], 0.5)
