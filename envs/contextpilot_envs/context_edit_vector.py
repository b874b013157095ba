"""The native vector form of `ContextPilot/ContextEdit-v0`: all copies on one set of arrays."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.context_edit import draw_episode
from contextpilot_envs.engine import Engine, RowSnapshot
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.spaces import action_space, observation_space
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.catalog import load_source

Observations = dict[str, NDArray[Any]]


class ContextEditVectorEnv(VectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """B copies of the environment, stepped together; each behaves as the single one does.

    Autoreset is NEXT_STEP: the step after an episode's end ignores that copy's action, begins its
    next task and gives reward 0; learners leave that step out.

    Args:
        num_envs: B.
        source, split, simulator, context_slots, archive_slots, tokenizer, summarizer: as in
            `ContextEditEnv`.
        copy: False hands out the arrays themselves, which the next step overwrites.
        render_mode: None; the vector form draws nothing.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        source: TaskSource | str = "mixed",
        split: str = "train",
        simulator: SimulatorConfig | None = None,
        *,
        context_slots: int = 128,
        archive_slots: int = 32,
        tokenizer: Tokenizer | None = None,
        summarizer: Summarizer | None = None,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs, self.copy, self.render_mode = num_envs, copy, render_mode
        self.source = load_source(source) if isinstance(source, str) else source
        self.split = split
        self.engine = Engine(
            num_envs, self.source, simulator or SimulatorConfig(), context_slots=context_slots,
            archive_slots=archive_slots, tokenizer=tokenizer, summarizer=summarizer,
        )  # fmt: skip
        self.single_observation_space = observation_space(self.engine.codec)
        self.single_action_space = action_space(self.engine.codec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] = []
        self._ended = np.zeros(num_envs, bool)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begins a task in every copy.

        Args:
            seed: one for all (copy b gets seed + b), or one each.
            options: "task_id" and "noise_seed", each one value or a list of B.
        """
        self._seed(seed)
        for row in range(self.num_envs):
            self._begin(row, _of_row(options, row))
        self._ended[:] = False
        self.engine.observe(range(self.num_envs))
        observations = self._observations()
        return observations, self._infos(observations)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[
        Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Plays one action in every copy; copies that had ended begin their next task."""
        if not self.engine.episodes:
            raise gym.error.ResetNeeded("call `reset` before `step`.")
        for row in np.nonzero(self._ended)[0].tolist():
            self._begin(row, None)
            self.engine.encoder.refresh(row, self.engine.episodes[row].context)
        active = np.nonzero(~self._ended)[0].tolist()
        rewards = self.engine.step(actions.tolist(), active)
        terminated = np.array([episode.ended for episode in self.engine.episodes])
        self._ended = terminated
        truncated = np.zeros(self.num_envs, bool)
        observations = self._observations()
        return observations, rewards, terminated.copy(), truncated, self._infos(observations)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the masks of legal actions, (B, A) bool, True = allowed."""
        return self.engine.encoder.action_mask.astype(bool)

    def snapshot(self, row: int) -> RowSnapshot:
        """Returns the state of one copy."""
        return self.engine.snapshot(row)

    def restore(self, row: int, snapshot: RowSnapshot) -> tuple[Observations, dict[str, Any]]:
        """Returns one copy to a snapshot; gives back all observations and infos."""
        self.engine.restore(row, snapshot)
        self._ended[row] = snapshot.episode.ended
        self.engine.observe()
        observations = self._observations()
        return observations, self._infos(observations)

    def _seed(self, seed: int | list[int | None] | None) -> None:
        if seed is None and self._generators:
            return
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + row for row in range(self.num_envs)]
        else:
            seeds = list(seed)
        self._generators = [gym.utils.seeding.np_random(s)[0] for s in seeds]

    def _begin(self, row: int, options: dict[str, Any] | None) -> None:
        self.engine.begin(
            row, *draw_episode(self.source, self.split, self._generators[row], options)
        )

    def _observations(self) -> Observations:
        arrays = self.engine.arrays()
        return {name: array.copy() for name, array in arrays.items()} if self.copy else arrays

    def _infos(self, observations: Observations) -> dict[str, Any]:
        infos: dict[str, Any] = {
            "action_mask": observations["action_mask"],
            "_action_mask": np.ones(self.num_envs, bool),
        }
        if self._ended.any():
            metrics = np.full(self.num_envs, None, dtype=object)
            for row in np.nonzero(self._ended)[0]:
                metrics[row] = episode_metrics(
                    self.engine.episodes[row], self.engine.states[row].invalid
                )
            infos["episode_metrics"] = metrics
            infos["_episode_metrics"] = self._ended.copy()
        return infos


def _of_row(options: dict[str, Any] | None, row: int) -> dict[str, Any] | None:
    if not options:
        return None
    return {k: v[row] if isinstance(v, list | tuple) else v for k, v in options.items()}
