"""Proximal policy optimisation over whole episodes, readable from top to bottom.

Schulman et al. (2017), with masked actions whose mask at the update is the mask at collection.
Departures from common practice: an iteration is a number of whole episodes, not of steps, so that
nothing is left to resume in the middle of one; lambda counts requests, not edits; an optional KL
anchor holds the policy near its warm start, which has been shown to work, and not near the raw
initialisation, which has not.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray

from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.advantages import explained_variance
from contextpilot.training.config import PPOConfig
from contextpilot.training.credit import VALUE_CREDITS
from contextpilot.training.evaluate import Judge
from contextpilot.training.losses import clipped_surrogate, value_loss
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


def ppo(
    run: Run,
    algorithm: PPOConfig,
    env: VectorEnvironment,
    network: PointerNetwork,
    tasks: TaskDraw,
    judge: Judge,
    anchor: PointerNetwork | None = None,
) -> None:
    """Trains a network; each iteration plays, pays, updates, logs.

    Args:
        run: where it begins, and where everything is written.
        algorithm: the settings.
        env: in autoreset mode DISABLED where `tasks` are to be played.
        network: trained in place.
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

        # 1. Play: whole episodes, sampled from the policy as it stands.
        generator = torch.Generator().manual_seed(sampling_seed(config.seed, iteration))
        plan = tasks.independent(iteration, algorithm.episodes)
        actor = NetworkActor(network, generator)
        played = collect(
            env, actor, plan, keep=network.inputs, seed=generator.initial_seed() % 2**31
        )
        environment_steps += len(played)

        # 2. Pay: what each step gets, and what the value function should have said.
        advantages, targets = VALUE_CREDITS[config.credit.name](played, config.credit)

        # 3. Update.
        rate = learning_rate(algorithm, iteration)
        optimizer.param_groups[0]["lr"] = rate
        before = time.perf_counter()
        update = update_ppo(
            network, optimizer, played, advantages, targets, algorithm, anchor,
            minibatch_generator(config.seed, iteration),
            values_only=anchor is not None and iteration < algorithm.value_warmup,
        )  # fmt: skip
        update_seconds = time.perf_counter() - before

        # 4. Log, judge, save.
        metrics = rollout_metrics(played, config.reward, judge.op_of_action)
        metrics |= update.metrics()
        metrics["update/learning_rate"] = rate
        metrics["update/explained_variance"] = explained_variance(
            played.values.astype(np.float64), targets
        )
        metrics |= judge.judge(iteration, network)
        metrics |= speed(played, update.samples, update_seconds, time.perf_counter() - started)
        run.log(iteration, environment_steps, metrics)
        if judge.saves(iteration, algorithm.iterations):
            run.save(iteration, environment_steps, network, optimizer, judge.best)


def update_ppo(
    network: PointerNetwork,
    optimizer: torch.optim.Optimizer,
    played: Trajectories,
    advantages: NDArray[np.float64],
    targets: NDArray[np.float64],
    algorithm: PPOConfig,
    anchor: PointerNetwork | None,
    rng: np.random.Generator,
    *,
    values_only: bool = False,
) -> Update:
    """Makes an iteration's gradient steps; ends early once the policy has moved `target_kl`."""
    if algorithm.normalize_advantages:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    old_log_probs = torch.from_numpy(played.log_probs)
    paid = torch.from_numpy(advantages).float()
    wanted = torch.from_numpy(targets).float()
    update = Update()
    for _ in range(algorithm.epochs):
        update.epochs += 1
        order = rng.permutation(len(played))
        for chosen in np.array_split(order, -(-len(played) // algorithm.minibatch)):
            observations = {name: array[chosen] for name, array in played.observations.items()}
            batch = tensors(observations, network.inputs)
            output = network(batch)
            distribution = output.distribution
            log_probs = distribution.log_prob(torch.from_numpy(played.actions[chosen]))
            surrogate = clipped_surrogate(
                log_probs, old_log_probs[chosen], paid[chosen], algorithm.clip
            )
            entropy = distribution.entropy().mean()
            values = value_loss(output.value, wanted[chosen])
            loss = algorithm.value_coefficient * values
            if not values_only:
                loss = loss + surrogate.loss - algorithm.entropy_coefficient * entropy
            anchored = torch.zeros(())
            if anchor is not None and algorithm.anchor_coefficient:
                with torch.no_grad():
                    warm = anchor(batch).distribution
                anchored = distribution.kl(warm).mean()
                loss = loss + algorithm.anchor_coefficient * anchored
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), algorithm.max_grad_norm)
            optimizer.step()
            update.add(
                len(chosen),
                {
                    "loss/policy": surrogate.loss.detach(), "loss/value": values.detach(),
                    "loss/entropy": entropy.detach(), "loss/anchor_kl": anchored.detach(),
                    "update/kl": surrogate.kl, "update/clip_fraction": surrogate.clip_fraction,
                    "update/gradient_norm": norm,
                },
            )  # fmt: skip
            if surrogate.kl > algorithm.target_kl:
                return update
    return update
