"""`ContextPilot/ContextEdit-v0`: one agent's context, edited before each of its requests."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError
from contextpilot.rewards.weights import RewardWeights
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.engine import DEFAULT_REWARD, Engine
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.rendering import render_desk
from contextpilot_envs.row import RowSnapshot
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.spaces import action_space, observation_space
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.catalog import load_source

Observation = dict[str, NDArray[Any]]


class ContextEditEnv(gym.Env[Observation, np.int64]):
    """The context of an LLM agent as a decision problem.

    ## Description
    One episode is one task: a recorded agent run or a generated one. At each request new segments
    have arrived; the policy makes up to K edits; `keep` (or the K-th edit) sends the request. The
    simulator then bills it, lets the reader face what the agent needs there, resolves what is
    missing (a forced reload, or a silent miss), and delivers the agent's turn and the next
    arrivals. The stream is exogenous: edits change what is billed and read, not what arrives.

    ## Action Space
    `Discrete(A)`: operation x preset x slot by `contextpilot.edits.codec.ActionCodec`; 0 is keep.
    The mask of legal actions is `action_masks()`, `info["action_mask"]` (int8) and
    `observation["action_mask"]`, all three the same. A masked action changes nothing but uses an
    edit step, costs the weight of `invalid`, and counts in `info["invalid_actions"]`.

    ## Observation Space
    `Dict`, with S context slots, M archive slots and the features that
    `contextpilot.observations.features` names: `segments` (S, F) float32, `segment_tokens` (S, T)
    int16 hashed words, `segment_mask` (S,), `archive` (M, Fa), `archive_tokens` (M, T),
    `archive_mask` (M,), `goal_tokens` (Tg,), `state` (G,), `action_mask` (A,) int8. Ground truth is
    never in it.

    ## Rewards
    The weighted sum of `info["reward_terms"]`, which `contextpilot.rewards.terms.TERMS` names. By
    default 0 for an edit; for a request `(raw price - bill - miss_price * silent misses) / raw
    bill`, and a further -2 at the end of a task that failed. Summed over an episode without masked
    actions this is J + 1, J being the objective: 0 for editing nothing and missing nothing.
    Discount 1.

    ## Starting State
    The segments that are there before the first request, all in full. `options={"task_id": ...}`
    chooses the task, `options={"noise_seed": ...}` what an agent notices; otherwise both are drawn
    from the environment's generator.

    ## Episode End
    Terminated after the last request, or when a request is over the window and is refused. Never
    truncated.

    ## Information
    `action_mask`, `task_id`, `request` (the one that the observation belongs to),
    `invalid_actions`, `reward_terms` (N,) float64, of this step and without weights; after a
    request `bill`, `silent_misses`, `forced_reloads`; at the end `episode_metrics`.

    ## Arguments
    `source`: a task source, or a name that `contextpilot_envs.tasks.catalog` knows; `split`:
    "train" or "validation"; `simulator`: window, prices, notice preset, reader;
    `context_slots`, `archive_slots`: S and M; `tokenizer`, `summarizer`; `reward`: what the terms
    weigh (`contextpilot.rewards.weights`), None for the defaults.

    ## Version History
    v0: first version.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self,
        source: TaskSource | str = "mixed",
        split: str = "train",
        simulator: SimulatorConfig | None = None,
        *,
        context_slots: int = 128,
        archive_slots: int = 32,
        tokenizer: Tokenizer | None = None,
        summarizer: Summarizer | None = None,
        reward: RewardWeights | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.source = load_source(source) if isinstance(source, str) else source
        self.split, self.render_mode = split, render_mode
        self.engine = Engine(
            1, self.source, simulator or SimulatorConfig(), context_slots=context_slots,
            archive_slots=archive_slots, tokenizer=tokenizer, summarizer=summarizer,
            reward=reward or DEFAULT_REWARD,
        )  # fmt: skip
        # Gymnasium types a Dict space by its values, and an observation by its keys.
        self.observation_space = observation_space(self.engine.codec)  # type: ignore[assignment]
        self.action_space = action_space(self.engine.codec)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a task; see the class docstring for `options`.

        Raises:
            UnknownTaskError: when `options["task_id"]` does not exist in the source.
        """
        super().reset(seed=seed)
        task_id, noise_seed = draw_episode(self.source, self.split, self.np_random, options)
        self.engine.begin(0, task_id, noise_seed)
        self.engine.observe([0])
        return self._observation(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Makes one edit, or sends the request."""
        episode = self.engine.episodes[0]
        if episode.ended:
            raise gym.error.ResetNeeded("the episode has ended: call `reset` before `step`.")
        sends = int(action) == 0 or (
            self.engine.states[0].step + 1 >= self.engine.simulator.max_edits
        )  # fmt: skip
        before = episode.tally.copy() if sends else None
        reward = float(self.engine.step([int(action)], [0])[0])
        info = self._info()
        if before is not None:
            info["bill"] = episode.tally.bill - before.bill
            info["silent_misses"] = episode.tally.silent_misses - before.silent_misses
            info["forced_reloads"] = episode.tally.forced_reloads - before.forced_reloads
        if episode.ended:
            info["episode_metrics"] = episode_metrics(episode, self.engine.states[0].invalid)
        return self._observation(), reward, episode.ended, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask of legal actions, (A,) bool, True = allowed."""
        mask: NDArray[np.bool_] = self.engine.encoder.action_mask[0].astype(bool)
        return mask

    def snapshot(self) -> RowSnapshot:
        """Returns the whole state; `restore` returns to it, here or in another instance."""
        return self.engine.snapshot(0)

    def restore(self, snapshot: RowSnapshot) -> tuple[Observation, dict[str, Any]]:
        """Returns to a snapshot; gives back what `reset` would."""
        if not self.engine.episodes:
            self.engine.begin(0, snapshot.task_id, snapshot.episode.noise_seed)
        self.engine.restore(0, snapshot)
        self.engine.observe()
        return self._observation(), self._info()

    def render(self) -> str | None:
        """Returns the desk as text in mode "ansi"."""
        if self.render_mode != "ansi":
            return None
        return render_desk(self.engine.episodes[0])

    def _observation(self) -> Observation:
        return {name: array[0].copy() for name, array in self.engine.arrays().items()}

    def _info(self) -> dict[str, Any]:
        episode = self.engine.episodes[0]
        return {
            "action_mask": self.engine.encoder.action_mask[0].copy(),
            "task_id": episode.prepared.task.id,
            "request": episode.context.request,
            "invalid_actions": self.engine.states[0].invalid,
            "reward_terms": self.engine.terms[0].copy(),
        }


def draw_episode(
    source: TaskSource,
    split: str,
    generator: np.random.Generator,
    options: dict[str, Any] | None = None,
) -> tuple[str, int]:
    """Returns (task id, noise seed), from the options or from the generator."""
    options = options or {}
    task_id, noise_seed = options.get("task_id"), options.get("noise_seed")
    drawn = int(generator.integers(2**31))
    ids = source.ids(split) if task_id is None else ()
    if not ids and task_id is None:
        raise ConfigurationError(
            f"task source {source.name!r} has no tasks in its split {split!r}. "
            'Choose another split, or name a task with options={"task_id": ...}.'
        )
    if task_id is None:
        task_id = ids[int(generator.integers(len(ids)))]
    return str(task_id), drawn if noise_seed is None else int(noise_seed)
