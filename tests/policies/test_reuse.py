"""The reuse predictor: its network, its file, its arithmetic, and that it is worth its name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_tasks import FixedSource, chain_task

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.reuse_training import LabelledSegments, auc, fit_reuse
from contextpilot.observations.features import SEGMENT_FEATURES
from contextpilot.observations.observation import Observation
from contextpilot.policies.reuse import ReuseModel, ReusePolicy, reuse_features
from contextpilot_envs.engine import Engine
from contextpilot_envs.labels import last_needed
from contextpilot_envs.reuse_data import labelled_segments
from contextpilot_envs.simulator.config import SimulatorConfig


def constant_model(probability: float) -> ReuseModel:
    """A network that says the same of every segment."""
    width = len(SEGMENT_FEATURES)
    logit = float(np.log(probability / (1 - probability)))
    return ReuseModel(
        np.zeros(width),
        np.ones(width),
        np.zeros((width, 2)),
        np.zeros(2),
        np.zeros(2),
        logit,
        False,
    )


def play(policy: ReusePolicy, **settings: object) -> Engine:
    config = SimulatorConfig(budget_fraction=None, **settings)  # type: ignore[arg-type]
    engine = Engine(1, FixedSource(chain_task(requests=30, result_words=400, needed_at=1)), config)
    engine.begin(0, "chain", 0)
    engine.observe([0])
    while not engine.episodes[0].ended:
        view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
        engine.step([policy(view)], [0])
    return engine


def test_the_network_is_two_matrix_products() -> None:
    rng = np.random.default_rng(0)
    model = ReuseModel(
        rng.normal(size=3), np.array([1.0, 2.0, 0.5]), rng.normal(size=(3, 2)), rng.normal(size=2),
        rng.normal(size=2), 0.3, False,
    )  # fmt: skip
    x = rng.normal(size=(4, 3))
    for line, probability in zip(x, model.probability(x), strict=True):
        hidden = np.tanh(((line - model.mean) / model.scale) @ model.w1 + model.b1)
        assert probability == pytest.approx(1 / (1 + np.exp(-(hidden @ model.w2 + model.b2))))


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    model = constant_model(0.2)
    path = tmp_path / "model.json"
    model.save(path)
    loaded = ReuseModel.load(path)
    x = np.random.default_rng(1).normal(size=(5, len(SEGMENT_FEATURES)))
    assert loaded.probability(x) == pytest.approx(model.probability(x), abs=1e-4)


def test_another_observation_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    constant_model(0.2).save(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "observation_version": 99}))
    with pytest.raises(ConfigurationError, match="observation version 99"):
        ReuseModel.load(path)
    path.write_text("{}")
    with pytest.raises(ConfigurationError, match="is not a reuse model"):
        ReuseModel.load(path)


def test_the_shipped_model_loads_and_has_the_text_part() -> None:
    model = ReuseModel.load()
    assert model.text
    assert model.mean.shape == model.scale.shape == (model.w1.shape[0],)


def test_what_is_never_needed_is_folded_in_batches_that_pay() -> None:
    engine = play(ReusePolicy(constant_model(0.001)))
    folds = [r for r in engine.episodes[0].log if r.op.name == "FOLD"]
    assert folds
    episode = engine.episodes[0]
    assert episode.tally.bill < episode.prepared.raw.total
    # Every fold breaks the prefix: there are fewer requests with a fold than requests.
    assert len({r.request for r in folds}) < 20


def test_what_is_surely_needed_is_kept() -> None:
    engine = play(ReusePolicy(constant_model(0.999), miss_price=10.0))
    assert len(engine.episodes[0].log) == 0


def test_without_a_price_for_breaks_everything_goes_at_once() -> None:
    patient = play(ReusePolicy(constant_model(0.001)))
    eager = play(ReusePolicy(constant_model(0.001)), prices="uncached")
    first = min(r.request for r in patient.episodes[0].log)
    assert min(r.request for r in eager.episodes[0].log) <= first


def test_text_features_count_what_the_goal_shares() -> None:
    engine = Engine(1, FixedSource(chain_task()), SimulatorConfig(budget_fraction=None))
    engine.begin(0, "chain", 0)
    engine.observe([0])
    view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
    slots = np.array([0])
    with_text = reuse_features(view, slots, text=True)
    assert with_text.shape[1] > reuse_features(view, slots, text=False).shape[1]
    assert with_text[0, len(SEGMENT_FEATURES)] > 0  # the goal's own segment shares its words


def test_labels_say_until_when_a_segment_is_needed() -> None:
    engine = Engine(1, FixedSource(chain_task(needed=1, needed_at=4)), SimulatorConfig())
    last = last_needed(engine.prepare("chain"))
    assert last[4] == 4
    assert (np.delete(last, 4) == -1).all()


def test_training_finds_what_decides() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 6))
    needed = x[:, 2] + 0.3 * rng.normal(size=4000) > 0
    data = LabelledSegments(x[:3000], needed[:3000], np.ones(3000))
    model = fit_reuse(data, text=False, alpha=0.01)
    assert auc(model.probability(x[3000:]), needed[3000:]) > 0.95


def test_auc_by_hand() -> None:
    needed = np.array([True, False, True, False])
    assert auc(np.array([0.9, 0.1, 0.8, 0.3]), needed) == 1.0
    assert auc(np.array([0.1, 0.9, 0.3, 0.8]), needed) == 0.0
    assert auc(np.array([0.5, 0.5, 0.5, 0.5]), needed) == 0.5
    assert auc(np.array([0.9, 0.5, 0.2, 0.3]), needed) == 0.5  # 2 of 4 pairs in order


def test_gathered_lines_are_of_what_may_be_folded() -> None:
    engine = Engine(1, FixedSource(chain_task(needed=1, needed_at=4)), SimulatorConfig())
    x, needed, groups = labelled_segments(
        engine, ["chain"], lambda view, slots: reuse_features(view, slots, text=False)
    )
    assert len(x) == len(needed) == len(groups)
    assert 0 < needed.sum() < len(needed)
