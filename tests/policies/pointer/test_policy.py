"""A pointer network as a policy: it plays every generated family without an illegal action."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pointer_cases import network, padded, random_observation

from contextpilot.edits.codec import ActionCodec
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.pointer.policy import PointerPolicy
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.catalog import load_source
from contextpilot_envs.tasks.synthetic import FAMILIES


def play(policy: Policy, family: str, slots: int, archived: int) -> list[str]:
    """Plays the family's first training task; returns the operations, each of them legal."""
    source = load_source(family, horizon=8)
    engine = Engine(
        1, source, SimulatorConfig(budget_fraction=0.5), context_slots=slots,
        archive_slots=archived,
    )  # fmt: skip
    engine.begin(0, source.ids("train")[0], 0)
    engine.observe([0])
    policy.reset(0)
    played = []
    while not engine.episodes[0].ended:
        view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
        action = policy(view)
        assert view.arrays["action_mask"][action], engine.codec.decode(action)
        played.append(engine.codec.decode(action).op.name)
        engine.step([action], [0])
    return played


@pytest.mark.parametrize(("slots", "archived"), [(32, 8), (6, 0), (128, 32)])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_is_played_to_the_end(family: str, slots: int, archived: int) -> None:
    net = network(sharp=200)  # of an opinion, and trained for 32 and 8 slots
    played = play(PointerPolicy(net), family, slots, archived)
    assert len(played) >= 8
    assert set(played) != {"KEEP"}


def test_it_decides_as_the_batch_does() -> None:
    observation, net = padded(random_observation(rows=5), 12, 4), network(sharp=100)
    policy: Policy = PointerPolicy(net, "mine")
    assert policy.name == "mine"
    chosen = [
        policy(Observation({k: a[row].numpy() for k, a in observation.items()}, ActionCodec(12, 4)))
        for row in range(5)
    ]
    assert chosen == net(observation).distribution.mode().tolist()
    assert len(set(chosen)) > 1


def test_it_changes_neither_arrays_nor_random_state() -> None:
    arrays = {k: a[1].numpy() for k, a in random_observation().items()}
    before = {k: a.copy() for k, a in arrays.items()}
    for array in arrays.values():
        array.setflags(write=False)
    policy = PointerPolicy(network(sharp=100))
    state = torch.get_rng_state()
    policy(Observation(arrays, ActionCodec(8, 3)))
    assert torch.equal(state, torch.get_rng_state())
    assert all(np.array_equal(before[k], a) for k, a in arrays.items())
