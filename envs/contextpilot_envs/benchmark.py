"""How fast the environment is, as ratios taken in one run on one machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.replay_source import ReplaySource
from contextpilot_envs.tasks.sample import sample_transcript
from contextpilot_envs.tasks.synthetic import SyntheticConfig, SyntheticSource

COPIES = 64
ROUNDS = 7
STEPS_TIMED = 600
WARM_UP_PASSES = 2
WARM_UP_STEPS = 200
"""Passes over the pool and steps a task, until tasks repeat: so it is in most of a training run."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One measurement: `ours` and `theirs` were taken in turn, `ratio` is the median of rounds.

    Attributes:
        name: what is compared.
        ours, theirs: steps per second of process time, medians (for a time ratio: seconds).
        ratio: median over rounds of ours / theirs.
        least, largest: over the rounds.
        target: what it must reach, in words.
    """

    name: str
    ours: float
    theirs: float
    ratio: float
    least: float
    largest: float
    target: str

    def to_json(self) -> dict[str, object]:
        """Returns the fields as JSON knows them."""
        return asdict(self)


def legal_actions(rng: np.random.Generator, mask: NDArray[np.int8]) -> NDArray[np.int64]:
    """Returns one legal action per row, each equally likely."""
    return np.asarray((rng.random(mask.shape, np.float32) * mask).argmax(axis=1), np.int64)


def vector_against_cartpole(seed: int = 0) -> list[Ratio]:
    """Steps per second of 64 copies against CartPole-v1 x 64 under SyncVectorEnv.

    The registered default: mixed families at horizon 20, text tokens and archive slots included,
    observations copied. Three ways to act: actions sampled from the action space, as CartPole's
    are (most of them are masked); legal actions only, each equally likely, so that every step is a
    real edit; and keep alone, so that every step is a request. Drawing actions is left out.
    """
    rng = np.random.default_rng(seed)
    env = ContextEditVectorEnv(COPIES)
    env.action_space.seed(seed)
    masks = [_warm_up(env, rng)]
    cartpole = gym.make_vec("CartPole-v1", num_envs=COPIES, vectorization_mode="sync")
    cartpole.reset(seed=seed)
    pushes = [cartpole.action_space.sample() for _ in range(64)]

    def ours(draw: Callable[[NDArray[np.int8]], NDArray[np.int64]], steps: int) -> float:
        spent = 0.0
        for _ in range(steps):
            actions = draw(masks[0])
            started = time.process_time()
            infos = env.step(actions)[4]
            spent += time.process_time() - started
            masks[0] = infos["action_mask"]
        return COPIES * steps / spent

    def theirs() -> float:
        started = time.process_time()
        for push in pushes * 5:
            cartpole.step(push)
        return COPIES * len(pushes) * 5 / (time.process_time() - started)

    draws: dict[str, tuple[Callable[[NDArray[np.int8]], NDArray[np.int64]], str]] = {
        "sampled actions": (lambda _mask: env.action_space.sample(), "no target: mostly masked"),
        "legal actions only": (lambda mask: legal_actions(rng, mask), "at least 0.25"),
        "keep only": (lambda mask: np.zeros(len(mask), np.int64), "no target"),
    }
    ratios = []
    for name, (draw, target) in draws.items():
        ours(draw, 100)
        ratios.append(
            _in_turn(
                f"native vector env x64 / CartPole-v1 SyncVectorEnv x64, {name}",
                partial(ours, draw, 100),
                theirs,
                target,
            )
        )
    return ratios


def _warm_up(env: ContextEditVectorEnv, rng: np.random.Generator) -> NDArray[np.int8]:
    """Plays every task of the pool until what can be cached is; returns the last masks."""
    tasks = env.source.ids(env.split)
    mask: NDArray[np.int8] = np.zeros(0, np.int8)
    for first in range(0, WARM_UP_PASSES * len(tasks), COPIES):
        batch = [tasks[(first + row) % len(tasks)] for row in range(COPIES)]
        mask = env.reset(options={"task_id": batch})[1]["action_mask"]
        for _ in range(WARM_UP_STEPS):
            mask = env.step(legal_actions(rng, mask))[4]["action_mask"]
    return mask


def step_growth(seed: int = 0) -> list[Ratio]:
    """Time of a step at 64 and 256 segments against 16, with random legal actions.

    As many context slots as segments. Linear growth would give 4 and 16; a smaller ratio means
    that a step's cost grows more slowly than the segments.
    """
    seconds = {n: _step_seconds(n, seed) for n in (16, 64, 256)}
    return [
        Ratio(
            f"step at {n} segments / at 16", seconds[n], seconds[16], seconds[n] / seconds[16],
            seconds[n] / seconds[16], seconds[n] / seconds[16], f"at most {n // 16}",
        )
        for n in (64, 256)
    ]  # fmt: skip


def load_against_play(messages: int = 400, seed: int = 0) -> Ratio:
    """Loading a transcript of so many messages against playing it, both from nothing.

    Loading reads the file, parses messages, counts tokens, derives demands, and makes the task
    ready. Playing is an episode on the single environment with uniformly random legal actions.
    """
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.json"
        path.write_text(json.dumps(long_session(messages)), encoding="utf-8")
        loads, plays = [], []
        for _ in range(3):
            started = time.process_time()
            source = ReplaySource("transcripts", path)
            (task_id,) = [i for split in ("train", "validation") for i in source.ids(split)]
            env = ContextEditEnv(source, simulator=SimulatorConfig(budget_fraction=None))
            env.engine.prepare(task_id)
            loads.append(time.process_time() - started)
            started = time.process_time()
            _, info = env.reset(options={"task_id": task_id, "noise_seed": 0})
            ended = False
            while not ended:
                action = int(legal_actions(rng, info["action_mask"][None])[0])
                _, _, ended, _, info = env.step(action)
            plays.append(time.process_time() - started)
    ratios = sorted(a / b for a, b in zip(loads, plays, strict=True))
    return Ratio(
        f"load / play a transcript of {messages} messages", sorted(loads)[1], sorted(plays)[1],
        ratios[1], ratios[0], ratios[-1], "at most 0.1",
    )  # fmt: skip


def long_session(messages: int) -> list[dict[str, Any]]:
    """Returns a made-up session of at least so many Anthropic messages: several, end to end."""
    joined: list[dict[str, Any]] = []
    for seed in count():
        joined += sample_transcript(seed).messages
        if len(joined) >= messages:
            return (
                joined[:messages]
                if joined[messages - 1]["role"] == "user"
                else joined[: messages - 1]
            )
    return joined


def _step_seconds(segments: int, seed: int) -> float:
    """Returns the median seconds of a step while so many segments are there, slots for all."""
    rng = np.random.default_rng(seed)
    source = SyntheticSource(SyntheticConfig("tools", horizon=max(8, segments // 2)), 4)
    env = ContextEditEnv(
        source, simulator=SimulatorConfig(budget_fraction=None), context_slots=segments
    )  # fmt: skip
    times: list[float] = []
    while len(times) < STEPS_TIMED:
        _, info = env.reset(seed=seed + len(times))
        ended = False
        while not ended:
            full = env.engine.episodes[0].context.length >= 0.75 * segments
            action = int(legal_actions(rng, info["action_mask"][None])[0]) if full else 0
            started = time.process_time()
            _, _, ended, _, info = env.step(action)
            if full:
                times.append(time.process_time() - started)
    return float(np.median(times))


def _in_turn(
    name: str, ours: Callable[[], float], theirs: Callable[[], float], target: str
) -> Ratio:
    pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
    ratios = sorted(a / b for a, b in pairs)
    middle = len(pairs) // 2
    return Ratio(
        name, sorted(a for a, _ in pairs)[middle], sorted(b for _, b in pairs)[middle],
        ratios[middle], ratios[0], ratios[-1], target,
    )  # fmt: skip
