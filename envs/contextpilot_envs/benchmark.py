"""How fast the environment is, as ratios taken in one run on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.tasks.base import Task, TaskSource
from contextpilot_envs.tasks.replay_source import ReplaySource
from contextpilot_envs.tasks.synthetic import SyntheticConfig, SyntheticSource

COPIES = 64
ROUNDS = 7
WARM_UP_STEPS = 1500
"""Until every task of the pool is prepared, as it is after the first minutes of training."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One measurement: `ours` and `theirs` were taken in turn, `ratio` is the median of rounds.

    Attributes:
        name: what is compared.
        ours, theirs: steps per second of process time, medians (for a time ratio: seconds).
        ratio: median over rounds of ours / theirs.
        least, largest: over the rounds.
        target: what it must reach, in words.
    """

    name: str
    ours: float
    theirs: float
    ratio: float
    least: float
    largest: float
    target: str

    def to_json(self) -> dict[str, object]:
        """Returns the fields as JSON knows them."""
        return asdict(self)


def legal_actions(rng: np.random.Generator, mask: NDArray[np.int8]) -> NDArray[np.int64]:
    """Returns one legal action per row, each equally likely."""
    return np.asarray((rng.random(mask.shape, np.float32) * mask).argmax(axis=1), np.int64)


def vector_against_cartpole(seed: int = 0) -> Ratio:
    """Steps per second of 64 copies, uniformly random legal actions, against CartPole-v1 x 64.

    The registered default: mixed families at horizon 20, text tokens and archive slots included,
    observations copied. CartPole runs under SyncVectorEnv, as `gym.make_vec` gives it. Drawing
    the actions is left out of both.
    """
    rng = np.random.default_rng(seed)
    env = ContextEditVectorEnv(COPIES)
    _, infos = env.reset(seed=seed)
    masks = [infos["action_mask"]]
    cartpole = gym.make_vec("CartPole-v1", num_envs=COPIES, vectorization_mode="sync")
    cartpole.reset(seed=seed)
    pushes = [cartpole.action_space.sample() for _ in range(64)]

    def ours(steps: int) -> float:
        spent = 0.0
        for _ in range(steps):
            actions = legal_actions(rng, masks[0])
            started = time.process_time()
            infos = env.step(actions)[4]
            spent += time.process_time() - started
            masks[0] = infos["action_mask"]
        return COPIES * steps / spent

    def theirs(steps: int) -> float:
        started = time.process_time()
        for k in range(steps):
            cartpole.step(pushes[k % len(pushes)])
        return COPIES * steps / (time.process_time() - started)

    ours(WARM_UP_STEPS)
    return _in_turn(
        "native vector env x64 / CartPole-v1 SyncVectorEnv x64", lambda: ours(150),
        lambda: theirs(300), "at least 0.25",
    )  # fmt: skip


def step_growth(seed: int = 0) -> list[Ratio]:
    """Time of a step at 64 and 256 segments against 16, with random legal actions.

    Linear growth would give 4 and 16; a ratio below that grows more slowly than the segments.
    """
    seconds = {n: _step_seconds(n, seed) for n in (16, 64, 256)}
    return [
        Ratio(
            f"step at {n} segments / at 16", seconds[n], seconds[16], seconds[n] / seconds[16],
            seconds[n] / seconds[16], seconds[n] / seconds[16], f"at most {n // 16}",
        )
        for n in (64, 256)
    ]  # fmt: skip


def load_against_play(messages: int = 400, seed: int = 0) -> Ratio:
    """Loading a transcript (read, parse, count, derive demands) against playing it.

    Played by the tuned rule's form of policy: keep on most requests, edits in batches, one
    observation a step, on the single environment.
    """
    source = ReplaySource("sample")
    task_id = source.ids("train")[seed]
    raise NotImplementedError((messages, task_id))


def _step_seconds(segments: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    env = ContextEditEnv(_FixedLength(segments), simulator=SimulatorConfig(budget_fraction=None))
    _, info = env.reset(seed=seed)
    times = []
    for _ in range(400):
        action = int(legal_actions(rng, info["action_mask"][None])[0]) if rng.random() < 0.9 else 0
        started = time.process_time()
        _, _, ended, _, info = env.step(action)
        times.append(time.process_time() - started)
        if ended:
            _, info = env.reset()
    return float(np.median(times))


class _FixedLength:
    """Tasks of a family whose first request already has a given number of segments."""

    def __init__(self, segments: int) -> None:
        horizon = max(8, segments // 2)
        self._inner = SyntheticSource(SyntheticConfig("tools", horizon=horizon), 4)
        self.name = self._inner.name

    def ids(self, split: str) -> list[str]:
        """Returns the inner source's ids."""
        return list(self._inner.ids(split))

    def load(self, task_id: str) -> Task:
        """Returns the task with everything there from the last eight requests on."""
        return self._inner.load(task_id)


def _in_turn(
    name: str, ours: Callable[[], float], theirs: Callable[[], float], target: str
) -> Ratio:
    pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
    ratios = sorted(a / b for a, b in pairs)
    middle = len(pairs) // 2
    return Ratio(
        name, sorted(a for a, _ in pairs)[middle], sorted(b for _, b in pairs)[middle],
        ratios[middle], ratios[0], ratios[-1], target,
    )  # fmt: skip


__all__ = ["PreparedTask", "Ratio", "TaskSource", "load_against_play", "step_growth", "vector_against_cartpole"]
