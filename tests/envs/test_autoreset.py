"""The vector environment without autoreset: ended copies idle until a mask names them."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from tiny_tasks import FixedSource, chain_task, mixed_task

from contextpilot.errors import ConfigurationError
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import PRESETS, RewardWeights
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig

SOURCE = FixedSource(chain_task(2, task_id="short"), *[mixed_task(n, 6) for n in range(4)])
SETTINGS = {
    "simulator": SimulatorConfig(budget_fraction=0.7, notice="poor"),
    "context_slots": 20,
    "archive_slots": 4,
}


def disabled(rows: int, **more) -> ContextEditVectorEnv:
    return ContextEditVectorEnv(
        rows, SOURCE, autoreset_mode=AutoresetMode.DISABLED, **SETTINGS, **more
    )


def legal(rng: np.random.Generator, mask: np.ndarray) -> int:
    if rng.random() < 0.05:
        return int(rng.integers(len(mask)))
    return 0 if rng.random() < 0.2 else int(rng.choice(np.flatnonzero(mask)))


def test_the_mode_is_declared_and_the_class_keeps_its_default():
    env = disabled(1)
    assert env.metadata["autoreset_mode"] == env.autoreset_mode == AutoresetMode.DISABLED
    assert ContextEditVectorEnv.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    made = gym.make_vec(
        "contextpilot_envs:ContextPilot/ContextEdit-v0", num_envs=2, source="sample",
        vectorization_mode="vector_entry_point", context_slots=8,
        autoreset_mode=AutoresetMode.DISABLED,
    )  # fmt: skip
    assert made.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    with pytest.raises(ConfigurationError, match=r"Received AutoresetMode\.SAME_STEP"):
        ContextEditVectorEnv(1, SOURCE, autoreset_mode=AutoresetMode.SAME_STEP)


def test_ended_copies_idle_whatever_their_actions():
    env = disabled(2)
    env.reset(seed=0, options={"task_id": ["short", "mixed/1"]})
    env.step(np.array([0, 0]))
    last, _, terminated, _, infos = env.step(np.array([0, 0]))
    assert terminated.tolist() == [True, False]
    assert infos["_episode_metrics"].tolist() == [True, False]
    episode, rng = env.engine.episodes[0], np.random.default_rng(0)
    before = episode.snapshot()
    for _ in range(8):
        actions = np.array([int(rng.integers(env.single_action_space.n)), 0])
        observations, rewards, terminated, _, infos = env.step(actions)
        assert terminated[0]
        assert rewards[0] == 0.0
        assert not infos["reward_terms"][0].any()
        assert infos["request"][0] == 2
        assert "episode_metrics" not in infos or not infos["_episode_metrics"][0]
        for name, array in observations.items():
            np.testing.assert_array_equal(array[0], last[name][0])
    assert env.engine.episodes[0] is episode
    assert episode.snapshot().context == before.context
    assert len(episode.log) == len(before.log)
    assert env.engine.states[0].invalid == 0
    assert terminated.tolist() == [True, True]


def test_a_mask_begins_only_what_it_names():
    env = disabled(3)
    env.reset(seed=4, options={"task_id": ["short", "mixed/1", "short"]})
    for _ in range(2):
        seen = env.step(np.zeros(3, int))[0]
    others = [env.engine.episodes[row] for row in (1, 2)]
    observations, infos = env.reset(
        options={
            "reset_mask": np.array([True, False, False]),
            "task_id": ["mixed/2", "no such task", None],
            "noise_seed": np.array([11, -1, -1]),
        }
    )
    assert [env.engine.episodes[row] for row in (1, 2)] == others
    episode = env.engine.episodes[0]
    assert (episode.prepared.task.id, episode.noise_seed) == ("mixed/2", 11)
    assert infos["request"].tolist() == [0, 2, 2]
    assert not infos["reward_terms"].any()
    for name, array in observations.items():
        np.testing.assert_array_equal(array[1:], seen[name][1:])
    *_, terminated, _, infos = env.step(np.zeros(3, int))
    assert terminated.tolist() == [False, False, True]
    assert infos["request"].tolist() == [1, 3, 2]


@pytest.mark.parametrize("weights", [RewardWeights(), PRESETS["balanced"], PRESETS["naive"]])
def test_each_copy_plays_as_a_single_environment_does(weights):
    """Copies wait for each other, and begin named tasks under named noise when all have ended."""
    rows, rng = 3, np.random.default_rng(1)
    env = disabled(rows, reward=weights)
    singles = [ContextEditEnv(SOURCE, reward=weights, **SETTINGS) for _ in range(rows)]
    ids, ends = list(env.task_ids), 0
    assert ids == ["short", "mixed/0", "mixed/1", "mixed/2", "mixed/3"]
    for round_number in range(3):
        tasks = [str(rng.choice(ids)) for _ in range(rows)]
        noise = [round_number, 7, round_number]
        mask = np.ones(rows, bool)
        observations, infos = env.reset(
            options={"reset_mask": mask, "task_id": tasks, "noise_seed": noise}
        )
        for row, single in enumerate(singles):
            options = {"task_id": tasks[row], "noise_seed": noise[row]}
            observation, info = single.reset(options=options)
            assert_same(row, observations, observation, infos, info)
        ended = np.zeros(rows, bool)
        while not ended.all():
            actions = np.array([legal(rng, mask) for mask in infos["action_mask"]])
            observations, rewards, terminated, truncated, infos = env.step(actions)
            assert not truncated.any()
            for row, single in enumerate(singles):
                if ended[row]:
                    assert (rewards[row], terminated[row]) == (0.0, True)
                    continue
                observation, reward, over, _, info = single.step(actions[row])
                assert (rewards[row], terminated[row]) == (reward, over)
                assert_same(row, observations, observation, infos, info)
                if over:
                    ends += 1
                    assert infos["episode_metrics"][row] == info["episode_metrics"]
            ended = terminated
    assert ends == 9


def assert_same(row, observations, observation, infos, info) -> None:
    for name, array in observation.items():
        np.testing.assert_array_equal(observations[name][row], array, err_msg=name)
    for name in ("action_mask", "request", "reward_terms"):
        np.testing.assert_array_equal(infos[name][row], info[name], err_msg=name)
    assert info["reward_terms"].shape == (len(TERMS),)


def test_a_seed_with_a_mask_seeds_only_what_it_names():
    def tasks_after(seed, mask) -> list[str]:
        env = disabled(2)
        env.reset(seed=3)
        env.reset(seed=seed, options={"reset_mask": np.array(mask)})
        env.reset()
        return [(e.prepared.task.id, e.noise_seed) for e in env.engine.episodes]

    first, second = tasks_after(9, [True, False]), tasks_after(9, [True, True])
    unseeded = tasks_after(None, [True, False])
    assert first[0] == second[0] != unseeded[0]
    assert first[1] == unseeded[1] != second[1]


def test_what_no_reset_could_mean_is_an_error():
    env = disabled(2)
    with pytest.raises(gym.error.ResetNeeded, match="first `reset`"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    for mask in (np.array([True]), np.array([1, 0]), [[True, False]]):
        with pytest.raises(ConfigurationError, match=r"bool of shape \(2,\). Received"):
            env.reset(options={"reset_mask": mask})


def test_next_step_ignores_no_mask_either():
    env = ContextEditVectorEnv(2, SOURCE, **SETTINGS)
    env.reset(seed=0, options={"task_id": "mixed/0"})
    env.step(np.zeros(2, int))
    _, infos = env.reset(options={"reset_mask": np.array([False, True])})
    assert infos["request"].tolist() == [1, 0]
