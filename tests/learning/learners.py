"""Training from scratch on a tiny environment, in memory, until it is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from learning.tiny_environments import ARCHIVE_SLOTS, CONTEXT_SLOTS, TinyEnvironment
from numpy.typing import NDArray

from contextpilot.edits.codec import ActionCodec
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.rewards.weights import reward_preset
from contextpilot.training.config import CreditConfig, GRPOConfig, PPOConfig, TrainConfig
from contextpilot.training.evaluate import Judge, play_greedily
from contextpilot.training.grpo import grpo
from contextpilot.training.ppo import ppo
from contextpilot.training.rollout import Assignment
from contextpilot.training.run_folder import Run
from contextpilot.training.tasks import TaskDraw

ENOUGH = 0.96
"""Training ends once the greedy policy earns this share of the optimum, over all tasks."""

REWARD = reward_preset("balanced")
CREDIT = {
    ("ppo", "delayed_miss"): CreditConfig(gae_lambda=0.95, within_lambda=0.95),
    ("ppo", "marking"): CreditConfig(gae_lambda=0.95, within_lambda=0.95),
    ("ppo", "reload_required"): CreditConfig(gae_lambda=0.95, within_lambda=0.95),
    ("grpo", "delayed_miss"): CreditConfig(gae_lambda=0.7, within_lambda=0.7),
    ("grpo", "marking"): CreditConfig(gae_lambda=0.95),
    ("grpo", "reload_required"): CreditConfig(gae_lambda=0.95, within_lambda=0.95),
}
"""What an edit is paid, by algorithm and environment. GRPO has no value function, so its lambdas
depend on whether the potentials pay an edit at once (a miss), or only a flush much later does.
"""

PPO = PPOConfig(
    iterations=120, episodes=24, epochs=8, minibatch=128, learning_rate=2e-3, anneal=False,
    entropy_coefficient=0.01, target_kl=0.1,
)  # fmt: skip
GRPO = GRPOConfig(
    iterations=250, groups=4, group_size=6, epochs=8, minibatch=128, learning_rate=2e-3,
    anneal=False, entropy_coefficient=0.003, target_kl=0.1,
)  # fmt: skip


class MemoryRun(Run):
    """A run that writes nothing."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.iteration = self.environment_steps = 0
        self.best: dict[str, float] = {}
        self.rows: list[Mapping[str, float]] = []

    def log(self, iteration: int, environment_steps: int, metrics: Mapping[str, float]) -> None:
        self.environment_steps = environment_steps
        self.rows.append(metrics)

    def save(self, *args: Any) -> None:
        """Keeps nothing."""

    def save_named(self, *args: Any) -> None:
        """Keeps nothing."""

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keeps nothing."""


class Solved(Exception):  # noqa: N818 - good news
    """The greedy policy is good enough."""


class UntilSolved(Judge):
    """Plays all tasks greedily now and then, and ends training once it does well on each."""

    shares: NDArray[np.float64]

    def __init__(
        self, run: Run, env: Any, environment: TinyEnvironment, codec: ActionCodec
    ) -> None:
        plan = [Assignment(task.id, k, k) for k, task in enumerate(environment.tasks)]
        super().__init__(run, env, plan, codec)
        self.optima = np.array(environment.optima)

    def judge(self, iteration: int, network: PointerNetwork) -> dict[str, float]:
        last = iteration == self.run.config.algorithm.iterations - 1
        if (iteration + 1) % self.run.config.evaluate_every and not last:
            return {}
        played = play_greedily(self.env, network, self.plan)
        self.shares = np.array([m["objective"] + 1.0 for m in played.metrics]) / self.optima
        if self.shares.mean() >= ENOUGH:
            raise Solved
        return {}


def learn(
    environment: TinyEnvironment, algorithm: PPOConfig | GRPOConfig, seed: int
) -> tuple[NDArray[np.float64], MemoryRun]:
    """Trains a small untrained network.

    Returns:
        The greedy policy's return on each task as a share of the optimum, and the run.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    run = MemoryRun(
        TrainConfig(
            seed=seed,
            algorithm=algorithm,
            reward=REWARD,
            credit=CREDIT[algorithm.name, environment.name],
            evaluate_every=1,
        )
    )
    env = environment.make(24, REWARD)
    tasks = TaskDraw(env.task_ids, seed, run.config.task.inner_fold)
    judge = UntilSolved(run, env, environment, ActionCodec(CONTEXT_SLOTS, ARCHIVE_SLOTS))
    network = PointerNetwork(
        PointerConfig(
            width=32, layers=1, heads=4, context_slots=CONTEXT_SLOTS, archive_slots=ARCHIVE_SLOTS
        )
    )
    try:
        if isinstance(algorithm, PPOConfig):
            ppo(run, algorithm, env, network, tasks, judge)
        else:
            grpo(run, algorithm, env, network, tasks, judge)
    except Solved:
        pass
    return judge.shares, run
