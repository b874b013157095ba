"""Trained policies by path, here and in worker processes."""

from __future__ import annotations

import pickle
from multiprocessing import get_context
from pathlib import Path

import pytest
from pointer_cases import network, random_observation

from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.observations.observation import Observation
from contextpilot.policies.checkpoint import save_checkpoint
from contextpilot.policies.guard import FitGuard
from contextpilot.policies.learned import PointerSpec
from contextpilot.policies.pointer.policy import PointerPolicy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "run", network(sharp=100), training={}, card="")
    return tmp_path / "run"


def decide(spec: PointerSpec) -> list[int]:
    policy = spec(None, 0)
    observation = random_observation()
    return [
        policy(Observation({k: a[row].numpy() for k, a in observation.items()}, ActionCodec(8, 3)))
        for row in range(6)
    ]


def test_it_survives_pickling_and_shares_one_network(folder: Path) -> None:
    spec = PointerSpec(folder, "mine")
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    one, two = spec(), again(object(), 1)
    assert isinstance(one, PointerPolicy)
    assert isinstance(two, PointerPolicy)
    assert one.network is two.network
    assert one.name == "mine"


def test_it_is_guarded_only_if_asked(folder: Path) -> None:
    assert isinstance(PointerSpec(folder, guarded=True)(), FitGuard)
    assert PointerSpec(folder, "mine", guarded=True)().name == "mine"


def test_worker_processes_decide_the_same(folder: Path) -> None:
    spec = PointerSpec(folder)
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(decide, [spec]) == decide(spec)


def test_a_missing_checkpoint_is_named_when_it_is_called(tmp_path: Path) -> None:
    spec = PointerSpec(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="Check the path"):
        spec()
