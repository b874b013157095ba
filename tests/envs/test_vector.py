"""The native vector environment plays as the single one does."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from tiny_tasks import FixedSource, chain_task, mixed_task

from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig

TASKS = [mixed_task(n, 6) for n in range(5)]
SETTINGS = {
    "simulator": SimulatorConfig(budget_fraction=0.7),
    "context_slots": 20,
    "archive_slots": 4,
}


def vector(rows: int, **more) -> ContextEditVectorEnv:
    return ContextEditVectorEnv(rows, FixedSource(*TASKS), **SETTINGS, **more)


def legal(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    return np.array([int(rng.choice(np.flatnonzero(mask))) for mask in masks])


def test_it_is_the_registered_vector_entry_point():
    env = gym.make_vec(
        "contextpilot_envs:ContextPilot/ContextEdit-v0", num_envs=3,
        vectorization_mode="vector_entry_point", context_slots=16,
    )  # fmt: skip
    assert isinstance(env, ContextEditVectorEnv)
    observations, infos = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert infos["action_mask"].shape == (3, env.single_action_space.n)
    assert infos["_action_mask"].all()
    env.close()


def test_autoreset_is_declared():
    assert ContextEditVectorEnv.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert vector(1).metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


def test_each_row_plays_as_a_single_environment_does():
    """Through several episodes a row, masked actions among them, and their automatic resets."""
    rows, rng = 3, np.random.default_rng(0)
    env = vector(rows)
    singles = [ContextEditEnv(FixedSource(*TASKS), **SETTINGS) for _ in range(rows)]
    observations, _ = env.reset(seed=7)
    firsts = [single.reset(seed=7 + row)[0] for row, single in enumerate(singles)]
    ended, finished = np.zeros(rows, bool), 0
    for _ in range(140):
        for name, array in observations.items():
            np.testing.assert_array_equal(array, np.stack([o[name] for o in firsts]), name)
        actions = legal(rng, env.action_masks())
        if rng.random() < 0.1:
            actions[0] = int(rng.integers(env.single_action_space.n))
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert not truncated.any()
        for row, single in enumerate(singles):
            if ended[row]:
                firsts[row], _ = single.reset()
                expected = (0.0, False)
            else:
                firsts[row], reward, over, _, info = single.step(actions[row])
                expected = (reward, over)
                if over:
                    finished += 1
                    assert infos["_episode_metrics"][row]
                    assert infos["episode_metrics"][row] == info["episode_metrics"]
            assert (rewards[row], terminated[row]) == expected
        assert np.array_equal(infos["action_mask"], env.action_masks())
        ended = terminated
    assert finished >= 4


def test_rows_do_not_depend_on_how_many_there_are():
    runs = []
    for rows in (1, 4):
        env, rng = vector(rows), np.random.default_rng(2)
        observations, _ = env.reset(seed=3)
        seen = [observations["state"][0]]
        for _ in range(60):
            first = legal(rng, env.action_masks()[:1])
            actions = np.concatenate([first, np.zeros(rows - 1, int)])
            observations, rewards, *_ = env.step(actions)
            seen += [observations["state"][0], rewards[0]]
        runs.append(seen)
    for left, right in zip(*runs, strict=True):
        np.testing.assert_array_equal(left, right)


def test_an_ended_row_begins_its_next_task_and_pays_nothing():
    env = ContextEditVectorEnv(2, FixedSource(chain_task(2)), **SETTINGS)
    env.reset(seed=0)
    env.step(np.zeros(2, int))
    _, _, terminated, _, infos = env.step(np.zeros(2, int))
    assert terminated.all()
    assert infos["episode_metrics"][1]["objective"] == pytest.approx(-1.0)
    forbidden = np.flatnonzero(env.action_masks()[0] == 0)[:1].repeat(2)
    _, rewards, terminated, _, infos = env.step(forbidden)
    assert rewards.tolist() == [0.0, 0.0]
    assert not terminated.any()
    assert "episode_metrics" not in infos
    assert [episode.context.request for episode in env.engine.episodes] == [0, 0]


def test_masked_actions_are_priced_a_row():
    env = vector(2)
    env.reset(seed=0)
    masks = env.action_masks()
    rewards = env.step(np.array([int(np.flatnonzero(~masks[0])[0]), 0]))[1]
    assert rewards.tolist() == [-RewardWeights().invalid, 0.0]


def test_without_copies_the_arrays_are_handed_out_themselves():
    env = vector(2, copy=False)
    observations, _ = env.reset(seed=0)
    again, *_ = env.step(np.zeros(2, int))
    assert all(again[name] is observations[name] for name in again)
    copied, _ = vector(2).reset(seed=0)
    assert copied["state"].base is None


def test_options_name_a_task_for_all_or_for_each():
    env = vector(2)
    env.reset(seed=0, options={"task_id": "mixed/2", "noise_seed": [5, 6]})
    assert [e.prepared.task.id for e in env.engine.episodes] == ["mixed/2", "mixed/2"]
    assert [e.noise_seed for e in env.engine.episodes] == [5, 6]
    env.reset(options={"task_id": ["mixed/0", "mixed/1"]})
    assert [e.prepared.task.id for e in env.engine.episodes] == ["mixed/0", "mixed/1"]


def test_a_row_can_be_restored_while_the_others_go_on():
    env, rng = vector(3), np.random.default_rng(1)
    env.reset(seed=5)
    for _ in range(9):
        observations = env.step(legal(rng, env.action_masks()))[0]
    snapshot = env.snapshot(1)
    kept = {name: array[1].copy() for name, array in observations.items()}
    for _ in range(30):
        before = env.step(legal(rng, env.action_masks()))[0]
    after, infos = env.restore(1, snapshot)
    for name, array in after.items():
        np.testing.assert_array_equal(array[1], kept[name])
        np.testing.assert_array_equal(array[[0, 2]], before[name][[0, 2]])
    assert np.array_equal(infos["action_mask"][1], kept["action_mask"])


def test_a_step_before_the_first_reset_is_an_error():
    with pytest.raises(gym.error.ResetNeeded):
        vector(1).step(np.zeros(1, int))
