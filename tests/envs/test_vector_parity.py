"""Each copy of the vector environment is the single environment, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from tiny_tasks import FixedSource, chain_task, mixed_task

from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig

COPIES = 5
SOURCE = FixedSource(
    *[mixed_task(seed, requests=6) for seed in range(4)], chain_task(4, 120, needed=1)
)
CONFIG = SimulatorConfig(budget_fraction=0.8, max_edits=10)


class Twin:
    """The single environment, playing what one copy of the vector environment plays."""

    def __init__(self, source: FixedSource, config: SimulatorConfig) -> None:
        self.env = ContextEditEnv(source, simulator=config)
        self.ended = False

    def begin(self, venv: ContextEditVectorEnv, row: int) -> tuple[Any, dict[str, Any]]:
        episode = venv.engine.episodes[row]
        options = {"task_id": episode.prepared.task.id, "noise_seed": episode.noise_seed}
        self.ended = False
        return self.env.reset(options=options)


def assert_same(row: int, left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, array in right.items():
        assert left[name][row].dtype == array.dtype
        assert left[name][row].tobytes() == array.tobytes(), (row, name)


def choose(mask: np.ndarray[Any, Any], rng: np.random.Generator, keep_share: float) -> int:
    """Mostly legal; now and then what the mask forbids."""
    if rng.random() < 0.03:
        return int(rng.integers(len(mask)))
    return 0 if rng.random() < keep_share else int(rng.choice(np.flatnonzero(mask)))


def play(
    source: FixedSource, config: SimulatorConfig, steps: int, seed: int, keep_share: float = 0.08
) -> tuple[int, ContextEditVectorEnv]:
    """Plays both and compares all that they say; returns how many episodes ended."""
    rng = np.random.default_rng(seed)
    venv = ContextEditVectorEnv(COPIES, source, simulator=config)
    twins = [Twin(source, config) for _ in range(COPIES)]
    observations, infos = venv.reset(seed=seed)
    for row, twin in enumerate(twins):
        observation, info = twin.begin(venv, row)
        assert_same(row, observations, observation)
        assert infos["action_mask"][row].tobytes() == info["action_mask"].tobytes()
    ends = 0
    for _ in range(steps):
        actions = np.array([choose(mask, rng, keep_share) for mask in infos["action_mask"]])
        observations, rewards, terminated, truncated, infos = venv.step(actions)
        assert not truncated.any()
        for row, twin in enumerate(twins):
            if twin.ended:  # this step began the copy's next task, whatever the action
                assert rewards[row] == 0.0
                assert not terminated[row]
                observation, info = twin.begin(venv, row)
            else:
                observation, reward, twin.ended, _, info = twin.env.step(int(actions[row]))
                assert rewards[row] == reward
                assert terminated[row] == twin.ended
            assert_same(row, observations, observation)
            assert infos["action_mask"][row].tobytes() == info["action_mask"].tobytes()
            if twin.ended:
                ends += 1
                assert infos["episode_metrics"][row] == info["episode_metrics"]
    return ends, venv


def test_copies_are_the_single_environment_across_episode_ends() -> None:
    ends, _ = play(SOURCE, CONFIG, 150, 1)
    assert ends > COPIES


def test_growing_arrays_change_nothing() -> None:
    source = FixedSource(*[mixed_task(seed, requests=12) for seed in range(3)])
    config = SimulatorConfig(budget_fraction=None, max_edits=12)
    _, venv = play(source, config, 140, 2, keep_share=0.0)
    assert venv.engine.batch.capacity > 64


def test_the_action_of_a_copy_that_has_ended_is_ignored() -> None:
    outcomes = []
    for ignored in (0, 7):
        venv = ContextEditVectorEnv(2, SOURCE, simulator=CONFIG)
        venv.reset(seed=3, options={"task_id": ["chain", "mixed/0"]})
        terminated = np.zeros(2, bool)
        while not terminated[0]:
            _, _, terminated, _, _ = venv.step(np.array([0, 0]))
        observations, rewards, _, _, _ = venv.step(np.array([ignored, 0]))
        assert rewards[0] == 0.0
        outcomes.append({name: array[0].tobytes() for name, array in observations.items()})
    assert outcomes[0] == outcomes[1]


def test_what_was_handed_out_stays_as_it_was() -> None:
    venv = ContextEditVectorEnv(2, SOURCE, simulator=CONFIG)
    first, _ = venv.reset(seed=4)
    before = {name: array.copy() for name, array in first.items()}
    venv.step(np.array([0, 0]))
    assert all(np.array_equal(first[name], array) for name, array in before.items())
