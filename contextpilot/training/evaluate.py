"""Evaluation during training: on the inner fold of the training split, greedily.

Without the guard that keeps all policies inside the window where they are compared: a policy that
leans on it is not the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.edits.codec import ActionCodec
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.metrics import operations, outcome_metrics
from contextpilot.training.rollout import (
    Assignment,
    NetworkActor,
    Trajectories,
    VectorEnvironment,
    collect,
)
from contextpilot.training.run_folder import Run


class Judge:
    """Decides when to evaluate and to save, and keeps the best checkpoint.

    Attributes:
        best: "objective" and "iteration" of the best evaluation so far; empty before the first.
        op_of_action: the operation of each action, (A,).
    """

    def __init__(
        self, run: Run, env: VectorEnvironment, plan: Sequence[Assignment], codec: ActionCodec
    ) -> None:
        self.run, self.env, self.plan, self.codec = run, env, tuple(plan), codec
        self.best: dict[str, float] = dict(run.best)
        self.op_of_action: NDArray[np.int64] = operations(codec)

    def judge(self, iteration: int, network: PointerNetwork) -> dict[str, float]:
        """Returns the inner fold's measures where an evaluation is due, and keeps what is best."""
        config = self.run.config
        last = iteration == config.algorithm.iterations - 1
        if (iteration + 1) % config.evaluate_every and not last:
            return {}
        played = play_greedily(self.env, network, self.plan)
        found = {
            "evaluation/return": float(played.returns.mean()),
            **outcome_metrics(played, "evaluation"),
        }
        score = found.get("evaluation/objective", found["evaluation/return"])
        if not self.best or score > self.best["objective"]:
            self.best = {"objective": score, "iteration": float(iteration)}
            card = f"Iteration {iteration}: objective {score:.3f} on the inner fold."
            self.run.save_named("best", network, card)
        self.run.log_episodes(self._sampled(iteration, played))
        return found

    def saves(self, iteration: int, iterations: int) -> bool:
        """True where a checkpoint to resume from is due."""
        return (iteration + 1) % self.run.config.checkpoint_every == 0 or (
            iteration == iterations - 1
        )

    def _sampled(self, iteration: int, played: Trajectories) -> list[Mapping[str, Any]]:
        rows: list[Mapping[str, Any]] = []
        for k, span in enumerate(played.spans()):
            if k >= self.run.config.logger.sampled_episodes:
                break
            metrics = played.metrics[k]
            billed = metrics.get("billed_tokens", 0.0) / metrics.get("raw_billed_tokens", 1.0)
            rows.append(
                {
                    "iteration": iteration,
                    "task": played.assignments[k].task_id,
                    "return": float(played.returns[k]),
                    "success": float(metrics.get("task_success", 0.0)),
                    "billed_share": float(billed),
                    "edits": self._edit_log(played, span),
                }
            )
        return rows

    def _edit_log(self, played: Trajectories, span: slice) -> str:
        words = []
        for t in range(span.start, span.stop):
            action = self.codec.decode(int(played.actions[t]))
            if action.slot >= 0:
                place = "archive" if action.archived else "slot"
                words.append(
                    f"{played.requests[t]}: {action.op.name.lower()} {action.preset} "
                    f"{place} {action.slot}"
                )
        return "; ".join(words) or "keep throughout"


def play_greedily(
    env: VectorEnvironment, network: PointerNetwork, plan: Sequence[Assignment]
) -> Trajectories:
    """Plays a plan with the network's mode; records no observations."""
    return collect(env, NetworkActor(network, None), plan, keep=())
