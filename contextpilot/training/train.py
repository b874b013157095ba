"""One training run from its folder: network, warm start, algorithm."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from contextpilot.edits.codec import ActionCodec
from contextpilot.policies.checkpoint import load_network
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.config import PPOConfig, TrainConfig
from contextpilot.training.evaluate import Judge, play_greedily
from contextpilot.training.grpo import grpo
from contextpilot.training.imitation import warm_start
from contextpilot.training.metrics import outcome_metrics
from contextpilot.training.ppo import ppo
from contextpilot.training.rollout import VectorEnvironment
from contextpilot.training.run_folder import Run
from contextpilot.training.tasks import TaskDraw


class TrainingEnvironment(VectorEnvironment, Protocol):
    """A vector environment that can name the tasks of its split."""

    @property
    def task_ids(self) -> Sequence[str]:
        """The ids of the tasks that it may be asked to play."""
        ...


MakeEnvironment = Callable[[int, str], TrainingEnvironment]
"""Makes an environment of so many rows on a split."""


def train(run: Run, make_env: MakeEnvironment) -> None:
    """Trains as the run's settings say, from where it stands.

    Args:
        run: new, or resumed: then weights, optimiser and counters are those of its last checkpoint.
        make_env: environments come in as a factory.
    """
    config = run.config
    torch.set_num_threads(config.threads)
    env = make_env(config.env.num_envs, "train")
    codec = ActionCodec(config.env.context_slots, config.env.archive_slots)
    tasks = TaskDraw(env.task_ids, config.seed, config.task.inner_fold)
    judge = Judge(run, env, tasks.evaluated(config.evaluation_tasks), codec)
    network = new_network(config)
    anchor = _warmed(run, env, network, tasks, judge, codec)
    if isinstance(config.algorithm, PPOConfig):
        ppo(run, config.algorithm, env, network, tasks, judge, anchor)
    else:
        grpo(run, config.algorithm, env, network, tasks, judge, anchor)
    run.finish()


def new_network(config: TrainConfig) -> PointerNetwork:
    """Returns an untrained network; its weights depend on the seed alone."""
    torch.manual_seed(config.seed)
    return PointerNetwork(
        PointerConfig(
            width=config.policy.width, layers=config.policy.layers, heads=config.policy.heads,
            backbone=config.policy.backbone, context_slots=config.env.context_slots,
            archive_slots=config.env.archive_slots,
        )
    )  # fmt: skip


def _warmed(
    run: Run,
    env: VectorEnvironment,
    network: PointerNetwork,
    tasks: TaskDraw,
    judge: Judge,
    codec: ActionCodec,
) -> PointerNetwork | None:
    """Warm-starts the network, once per run; returns the policy that it then has, frozen."""
    config, folder = run.config, run.folder / "checkpoints" / "warm"
    if config.warm_start.tasks == 0:
        return None
    if folder.exists():
        anchor = load_network(folder)
        network.load_state_dict(anchor.state_dict())
    else:
        plan = tasks.demonstrated(config.warm_start.tasks)
        rng = np.random.default_rng([config.seed, 0])
        metrics: dict[str, float] = {}
        for epoch in warm_start(
            env, network, plan, config.warm_start, codec, rng, tuned=config.tuned
        ):
            metrics = dict(epoch)
        played = play_greedily(env, network, judge.plan)
        metrics |= outcome_metrics(played, "evaluation")
        run.log(-1, 0, metrics)
        run.save_named("warm", network, "Imitation of baselines, before reinforcement learning.")
        anchor = copy.deepcopy(network)
    for parameter in anchor.parameters():
        parameter.requires_grad_(False)
    return anchor
