"""Warm start: the policy first learns to do what the best baselines do.

Each task is played by every teacher; the episode with the highest objective is imitated. (Imitating
the oracle was measured to be worse than imitating rules: it knows what cannot be known.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from contextpilot.edits.codec import ActionCodec
from contextpilot.policies.base import Policy
from contextpilot.policies.catalog import best_rule, policy_spec
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.advantages import returns_to_go
from contextpilot.training.config import WarmStartConfig
from contextpilot.training.losses import imitation_loss, value_loss
from contextpilot.training.rollout import (
    Assignment,
    PolicyActor,
    Trajectories,
    VectorEnvironment,
    collect,
    tensors,
)

VALUE_WEIGHT = 0.5
"""The value head learns the teachers' returns meanwhile, so that RL does not begin with noise."""


def warm_start(
    env: VectorEnvironment,
    network: PointerNetwork,
    plan: Sequence[Assignment],
    settings: WarmStartConfig,
    codec: ActionCodec,
    rng: np.random.Generator,
    *,
    tuned: str = "tuned",
) -> Iterator[Mapping[str, float]]:
    """Trains the network in place; yields each epoch's loss and accuracy.

    Args:
        env: in autoreset mode DISABLED.
        network: what learns.
        plan: the tasks that the teachers play.
        settings: teachers, epochs, rate.
        codec: the environment's action layout.
        rng: orders the minibatches.
        tuned: which setting the teachers were tuned in.
    """
    taught = [
        collect(env, PolicyActor(_teacher(name, tuned), codec), plan, keep=network.inputs)
        for name in settings.teachers
    ]
    observations, actions, returns = best_demonstrations(taught)
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    for _ in range(settings.epochs):
        loss_sum, right = 0.0, 0.0
        for chosen in np.array_split(
            rng.permutation(len(actions)), -(-len(actions) // settings.minibatch)
        ):
            batch = tensors({n: a[chosen] for n, a in observations.items()}, network.inputs)
            output = network(batch)
            wanted = torch.from_numpy(actions[chosen])
            loss = imitation_loss(output.distribution.log_prob(wanted))
            values = value_loss(output.value, torch.from_numpy(returns[chosen]).float())
            optimizer.zero_grad(set_to_none=True)
            (loss + VALUE_WEIGHT * values).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            loss_sum += float(loss.detach()) * len(chosen)
            right += float((output.distribution.mode() == wanted).sum())
        yield {
            "warm_start/loss": loss_sum / len(actions),
            "warm_start/accuracy": right / len(actions),
        }


def best_demonstrations(
    taught: Sequence[Trajectories],
) -> tuple[dict[str, NDArray[np.generic]], NDArray[np.int64], NDArray[np.float64]]:
    """Returns observations, actions and returns to go of the best teacher's episode per task.

    Args:
        taught: one per teacher, all of the same plan.

    Returns:
        observations (N, ...), actions (N,), returns to go (N,).
    """
    scores = np.array([[float(m["objective"]) for m in played.metrics] for played in taught])
    best = scores.argmax(axis=0)
    spans = [list(played.spans()) for played in taught]
    chosen = [(taught[teacher], spans[teacher][k]) for k, teacher in enumerate(best.tolist())]
    observations = {
        name: np.concatenate([played.observations[name][span] for played, span in chosen])
        for name in taught[0].observations
    }
    actions = np.concatenate([played.actions[span] for played, span in chosen])
    returns = np.concatenate([returns_to_go(played.rewards[span]) for played, span in chosen])
    return observations, actions, returns


def _teacher(name: str, tuned: str) -> Callable[[str], Policy]:
    def make(task_id: str) -> Policy:
        source = task_id.split("/", 1)[0]
        if name == "best_rule":
            return best_rule(source, tuned)()
        return policy_spec(name, source, tuned)()

    return make
