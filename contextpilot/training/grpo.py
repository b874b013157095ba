"""Group-relative policy optimisation over edits, readable from top to bottom.

Shao et al. (2024), "DeepSeekMath", with three departures. The advantage is an edit's and not an
episode's: the baseline is the leave-one-out mean of what the group's other members still got from
the same request on, since the stream aligns them. It is not divided by the group's deviation
(Liu et al., 2025, "Understanding R1-Zero-like training"), unless `scale=std` asks for it. And the
KL term, where there is one, holds the policy near its warm start.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.config import GRPOConfig
from contextpilot.training.credit import GROUP_CREDITS, deviation_scaled
from contextpilot.training.evaluate import Judge
from contextpilot.training.losses import clipped_surrogate
from contextpilot.training.metrics import Update, rollout_metrics, speed
from contextpilot.training.rollout import (
    NetworkActor,
    Trajectories,
    VectorEnvironment,
    collect,
    tensors,
)
from contextpilot.training.run_folder import Run
from contextpilot.training.schedule import learning_rate
from contextpilot.training.tasks import TaskDraw, minibatch_generator, sampling_seed


def grpo(
    run: Run,
    algorithm: GRPOConfig,
    env: VectorEnvironment,
    network: PointerNetwork,
    tasks: TaskDraw,
    judge: Judge,
    anchor: PointerNetwork | None = None,
) -> None:
    """Trains a network; each iteration plays groups, pays, updates, logs.

    Args:
        run: where it begins, and where everything is written.
        algorithm: the settings.
        env: in autoreset mode DISABLED, so that a group's members play the same task.
        network: trained in place; its value head is not used.
        tasks: which tasks each iteration plays.
        judge: evaluates on the inner fold and keeps the best checkpoint.
        anchor: the warm-start policy, frozen; None without a warm start.
    """
    config = run.config
    optimizer = torch.optim.Adam(network.parameters(), algorithm.learning_rate, eps=1e-5)
    if run.iteration:
        run.load(network, optimizer)
    environment_steps = run.environment_steps
    for iteration in range(run.iteration, algorithm.iterations):
        started = time.perf_counter()

        # 1. Play: every member of a group from the same start, under the same noise.
        generator = torch.Generator().manual_seed(sampling_seed(config.seed, iteration))
        plan = tasks.grouped(iteration, algorithm.groups, algorithm.group_size)
        actor = NetworkActor(network, generator)
        played = collect(
            env, actor, plan, keep=network.inputs, seed=generator.initial_seed() % 2**31
        )
        environment_steps += len(played)
        # Nothing trains a value here, so what a time limit cut off counts 0.
        played = replace(played, final_values=np.zeros(played.episodes))

        # 2. Pay: what each step got beyond what the others of its group got there.
        advantages = GROUP_CREDITS[config.credit.name](played, config.credit)
        if algorithm.scale == "std":
            advantages = deviation_scaled(played, advantages)

        # 3. Update.
        rate = learning_rate(algorithm, iteration)
        optimizer.param_groups[0]["lr"] = rate
        before = time.perf_counter()
        update = update_grpo(
            network, optimizer, played, advantages, algorithm, anchor,
            minibatch_generator(config.seed, iteration),
        )  # fmt: skip
        update_seconds = time.perf_counter() - before

        # 4. Log, judge, save.
        metrics = rollout_metrics(played, config.reward, judge.op_of_action)
        metrics |= update.metrics()
        metrics["update/learning_rate"] = rate
        metrics |= judge.judge(iteration, network)
        metrics |= speed(played, update.samples, update_seconds, time.perf_counter() - started)
        run.log(iteration, environment_steps, metrics)
        if judge.saves(iteration, algorithm.iterations):
            run.save(iteration, environment_steps, network, optimizer, judge.best)


def update_grpo(
    network: PointerNetwork,
    optimizer: torch.optim.Optimizer,
    played: Trajectories,
    advantages: NDArray[np.float64],
    algorithm: GRPOConfig,
    anchor: PointerNetwork | None,
    rng: np.random.Generator,
) -> Update:
    """Makes an iteration's gradient steps; ends early once the policy has moved `target_kl`."""
    old_log_probs = torch.from_numpy(played.log_probs)
    paid = torch.from_numpy(advantages).float()
    update = Update()
    for _ in range(algorithm.epochs):
        update.epochs += 1
        order = rng.permutation(len(played))
        for chosen in np.array_split(order, -(-len(played) // algorithm.minibatch)):
            observations = {name: array[chosen] for name, array in played.observations.items()}
            batch = tensors(observations, network.inputs)
            distribution = network(batch).distribution
            log_probs = distribution.log_prob(torch.from_numpy(played.actions[chosen]))
            surrogate = clipped_surrogate(
                log_probs, old_log_probs[chosen], paid[chosen], algorithm.clip
            )
            entropy = distribution.entropy().mean()
            loss = surrogate.loss - algorithm.entropy_coefficient * entropy
            anchored = torch.zeros(())
            if anchor is not None and algorithm.anchor_coefficient:
                with torch.no_grad():
                    warm = anchor(batch).distribution
                anchored = distribution.kl(warm).mean()
                loss = loss + algorithm.anchor_coefficient * anchored
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), algorithm.max_grad_norm)
            optimizer.step()
            update.add(
                len(chosen),
                {
                    "loss/policy": surrogate.loss.detach(), "loss/entropy": entropy.detach(),
                    "loss/anchor_kl": anchored.detach(), "update/kl": surrogate.kl,
                    "update/clip_fraction": surrogate.clip_fraction,
                    "update/gradient_norm": norm,
                },
            )  # fmt: skip
            if surrogate.kl > algorithm.target_kl:
                return update
    return update
