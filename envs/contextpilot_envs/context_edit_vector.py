"""The native vector form of `ContextPilot/ContextEdit-v0`: all copies on one set of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError
from contextpilot.rewards.weights import RewardWeights
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.context_edit import draw_episode
from contextpilot_envs.engine import DEFAULT_REWARD, Engine
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.row import RowSnapshot
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.spaces import action_space, observation_space
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.catalog import load_source

Observations = dict[str, NDArray[Any]]


class ContextEditVectorEnv(VectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """B copies of the environment, stepped together; each behaves as the single one does.

    Autoreset is NEXT_STEP by default: the step after an episode's end ignores that copy's action,
    begins its next task and gives reward 0; learners leave that step out. With DISABLED a copy that
    has ended stays as it is, terminated and with reward 0, until `reset` names it in
    `options["reset_mask"]`: so are whole episodes collected.

    Infos have, for every copy, `action_mask` (B, A) int8, `request` (B,) int64 and `reward_terms`
    (B, N) float64 as in the single environment; for copies whose episode has just ended
    `episode_metrics`, and with `hindsight` what each edit of it was worth
    (`contextpilot_envs.hindsight`): per copy (L,) float64, L being the episode's steps.

    Args:
        num_envs: B.
        source, split, simulator, context_slots, archive_slots, tokenizer, summarizer, reward: as in
            `ContextEditEnv`.
        autoreset_mode: NEXT_STEP or DISABLED.
        hindsight: whether infos say what each edit was worth.
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
        reward: RewardWeights | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        hindsight: bool = False,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if autoreset_mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED):
            raise ConfigurationError(
                f"`autoreset_mode` must be NEXT_STEP or DISABLED. Received {autoreset_mode}."
            )
        self.num_envs, self.copy, self.render_mode = num_envs, copy, render_mode
        self.autoreset_mode, self.hindsight = autoreset_mode, hindsight
        self.metadata = {**type(self).metadata, "autoreset_mode": autoreset_mode}
        self.source = load_source(source) if isinstance(source, str) else source
        self.split = split
        self.engine = Engine(
            num_envs, self.source, simulator or SimulatorConfig(), context_slots=context_slots,
            archive_slots=archive_slots, tokenizer=tokenizer, summarizer=summarizer,
            reward=reward or DEFAULT_REWARD, hindsight=hindsight,
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
        """Begins a task in every copy, or in those that a mask names.

        Args:
            seed: one for all (copy b gets seed + b), or one each.
            options: "task_id" and "noise_seed", each one value or B of them, None: drawn;
                "reset_mask" (B,) bool: only these copies begin a task, the others go on, and what
                is given for them is ignored.

        Raises:
            ConfigurationError: for a mask of another shape or type.
            gymnasium.error.ResetNeeded: when the first reset leaves copies out.
        """
        options = dict(options or {})
        rows = self._masked_rows(options.pop("reset_mask", None))
        self._seed(seed, rows)
        for row in rows:
            self._begin(row, _of_row(options, row))
        self._ended[rows] = False
        self.engine.terms[:] = 0.0
        self.engine.observe(rows)
        observations = self._observations()
        return observations, self._infos(observations, np.zeros(self.num_envs, bool))

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[
        Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Plays one action in every copy that goes on; see the class docstring for the others."""
        if not self.engine.episodes:
            raise gym.error.ResetNeeded("call `reset` before `step`.")
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            for row in np.nonzero(self._ended)[0].tolist():
                self._begin(row, None)
                self.engine.encoder.refresh(row, self.engine.episodes[row].context)
        active = np.nonzero(~self._ended)[0].tolist()
        rewards = self.engine.step(actions.tolist(), active)
        terminated = np.array([episode.ended for episode in self.engine.episodes])
        just_ended, self._ended = terminated & ~self._ended, terminated
        truncated = np.zeros(self.num_envs, bool)
        observations = self._observations()
        infos = self._infos(observations, just_ended)
        return observations, rewards, terminated.copy(), truncated, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the masks of legal actions, (B, A) bool, True = allowed."""
        return self.engine.encoder.action_mask.astype(bool)

    @property
    def task_ids(self) -> Sequence[str]:
        """The ids of the split's tasks, in a fixed order."""
        return self.source.ids(self.split)

    def snapshot(self, row: int) -> RowSnapshot:
        """Returns the state of one copy."""
        return self.engine.snapshot(row)

    def restore(self, row: int, snapshot: RowSnapshot) -> tuple[Observations, dict[str, Any]]:
        """Returns one copy to a snapshot; gives back all observations and infos."""
        self.engine.restore(row, snapshot)
        self._ended[row] = snapshot.episode.ended
        self.engine.observe()
        observations = self._observations()
        return observations, self._infos(observations, np.arange(self.num_envs) == row)

    def _masked_rows(self, mask: NDArray[np.bool_] | None) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ConfigurationError(
                f'options["reset_mask"] must be bool of shape ({self.num_envs},). '
                f"Received {mask.dtype} of shape {mask.shape}."
            )
        if not self.engine.episodes and not mask.all():
            raise gym.error.ResetNeeded("the first `reset` begins a task in every copy.")
        rows: list[int] = np.nonzero(mask)[0].tolist()
        return rows

    def _seed(self, seed: int | list[int | None] | None, rows: Sequence[int]) -> None:
        if seed is None and self._generators:
            return
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + row for row in range(self.num_envs)]
        else:
            seeds = list(seed)
        if not self._generators:
            self._generators = [np.random.default_rng()] * self.num_envs
        for row in rows:
            self._generators[row] = gym.utils.seeding.np_random(seeds[row])[0]

    def _begin(self, row: int, options: dict[str, Any] | None) -> None:
        self.engine.begin(
            row, *draw_episode(self.source, self.split, self._generators[row], options)
        )

    def _observations(self) -> Observations:
        arrays = self.engine.arrays()
        return {name: array.copy() for name, array in arrays.items()} if self.copy else arrays

    def _infos(self, observations: Observations, ended: NDArray[np.bool_]) -> dict[str, Any]:
        """Returns the infos; `ended` (B,): whose episode has just ended."""
        engine, each = self.engine, np.ones(self.num_envs, bool)
        infos: dict[str, Any] = {
            "action_mask": observations["action_mask"],
            "_action_mask": each,
            "request": np.array([episode.context.request for episode in engine.episodes]),
            "_request": each,
            "reward_terms": engine.terms.copy(),
            "_reward_terms": each,
        }
        ended = ended & self._ended
        if ended.any():
            metrics, worths = np.full((2, self.num_envs), None, dtype=object)
            for row in np.nonzero(ended)[0].tolist():
                metrics[row] = episode_metrics(engine.episodes[row], engine.states[row].invalid)
                if self.hindsight:
                    worths[row] = engine.hindsight(row)
            infos["episode_metrics"], infos["_episode_metrics"] = metrics, ended
            if self.hindsight:
                infos["hindsight"], infos["_hindsight"] = worths, ended.copy()
        return infos


def _of_row(options: dict[str, Any], row: int) -> dict[str, Any]:
    each = (list, tuple, np.ndarray)
    return {k: v[row] if isinstance(v, each) else v for k, v in options.items()}
