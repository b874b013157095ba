"""What an iteration's episodes came to, under the keys of the glossary."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from contextpilot.core.edit import Op
from contextpilot.edits.codec import ActionCodec
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import RewardWeights
from contextpilot.training.rollout import Trajectories


def operations(codec: ActionCodec) -> NDArray[np.int64]:
    """Returns the operation of each action of the layout, (A,)."""
    return np.array([int(codec.decode(action).op) for action in range(codec.size)], np.int64)


def rollout_metrics(
    played: Trajectories, weights: RewardWeights, op_of_action: NDArray[np.int64]
) -> dict[str, float]:
    """Returns rewards by term and edit, action shares, and the episodes' outcomes."""
    episodes = played.episodes
    found = {
        "episode/return": float(played.returns.mean()),
        "episode/length": len(played) / episodes,
        **outcome_metrics(played, "episode"),
    }
    ops = op_of_action[played.actions]
    for op in Op:
        found[f"actions/{op.name.lower()}"] = float((ops == int(op)).mean())
    if played.terms.shape[1] == len(TERMS):
        weighted = played.terms * weights.vector()
        for k, term in enumerate(TERMS):
            found[f"reward/{term}/raw"] = float(played.terms[:, k].sum()) / episodes
            found[f"reward/{term}/weighted"] = float(weighted[:, k].sum()) / episodes
            if not weighted[:, k].any():
                continue
            for op in Op:
                share = float(weighted[ops == int(op), k].sum()) / episodes
                found[f"reward/{term}/{op.name.lower()}"] = share
    return found


def outcome_metrics(played: Trajectories, prefix: str) -> dict[str, float]:
    """Returns the environment's own measures, averaged over episodes; empty where it has none."""
    rows = [m for m in played.metrics if m]
    if not rows:
        return {}

    def mean(name: str) -> float:
        return float(np.mean([float(row[name]) for row in rows]))

    billed = np.mean([row["billed_tokens"] / row["raw_billed_tokens"] for row in rows])
    return {
        f"{prefix}/objective": mean("objective"),
        f"{prefix}/demand_success": mean("demand_success"),
        f"{prefix}/task_success": mean("task_success"),
        f"{prefix}/billed_share": float(billed),
        f"{prefix}/peak_tokens": mean("peak_tokens"),
        f"{prefix}/silent_misses": mean("silent_misses"),
        f"{prefix}/forced_reloads": mean("forced_reloads"),
        f"{prefix}/edits": mean("edits"),
    }


@dataclass
class Update:
    """Means over an iteration's gradient steps.

    Attributes:
        sums: by metric, summed over gradient steps.
        steps: how many gradient steps were made.
        epochs: how many passes over the data were begun.
        samples: how many steps of episodes were seen, epochs counted.
    """

    sums: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    epochs: int = 0
    samples: int = 0

    def add(self, samples: int, values: dict[str, Tensor | float]) -> None:
        """Counts one gradient step in."""
        self.steps, self.samples = self.steps + 1, self.samples + samples
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)

    def metrics(self) -> dict[str, float]:
        """Returns the means."""
        means = {name: total / max(1, self.steps) for name, total in self.sums.items()}
        return {**means, "update/epochs": float(self.epochs)}


def speed(
    played: Trajectories, samples: int, update_seconds: float, seconds: float
) -> dict[str, float]:
    """Returns steps per second, and where the time went."""
    steps = len(played)
    return {
        "speed/steps_per_second": steps / seconds,
        "speed/env_steps_per_second": steps / max(played.env_seconds, 1e-9),
        "speed/policy_steps_per_second": steps / max(played.policy_seconds, 1e-9),
        "speed/update_steps_per_second": samples / max(update_seconds, 1e-9),
        "speed/seconds": seconds,
    }
