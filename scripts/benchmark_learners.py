"""What the training benchmark measures: the settings, a measurement, and our own PPO."""

from __future__ import annotations

import copy
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.config import CreditConfig, PPOConfig
from contextpilot.training.credit import step_with_values
from contextpilot.training.ppo import update_ppo
from contextpilot.training.rollout import Assignment, NetworkActor, collect
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.synthetic import SyntheticConfig, SyntheticSource

_NO_LIMIT = 1e9


@dataclass(frozen=True, slots=True)
class Settings:
    """What all learners share. `tasks`: prepared beforehand, as in most of a training run."""

    copies: int = 16
    episodes: int = 128
    iterations: int = 2
    rounds: int = 5
    source: str = "tools"
    tasks: int = 64
    horizon: int = 10
    context_slots: int = 32
    archive_slots: int = 8
    budget_fraction: float = 0.5
    minibatch: int = 512
    epochs: int = 3
    learning_rate: float = 3e-4
    seed: int = 0

    @property
    def network(self) -> PointerConfig:
        """The pointer network's own width, layers and heads."""
        return PointerConfig(context_slots=self.context_slots, archive_slots=self.archive_slots)


QUICK = Settings(copies=2, episodes=4, iterations=1, rounds=2, tasks=4, horizon=3, minibatch=64)


@dataclass(frozen=True, slots=True)
class Sample:
    """One or more iterations: trained steps and episodes, and seconds.

    Attributes:
        played: steps of the environment, those that were not trained on included.
        process, wall: seconds of all.
        environment, policy, update, bookkeeping: seconds of wall time, which sum to `wall`.
    """

    steps: int
    played: int
    episodes: int
    process: float
    wall: float
    environment: float
    policy: float
    update: float
    bookkeeping: float

    def __add__(self, other: Sample) -> Sample:
        mine, theirs = asdict(self), asdict(other)
        return Sample(**{name: mine[name] + theirs[name] for name in mine})


class Learner(Protocol):
    """Something that collects and updates."""

    name: str
    parameters: int

    def begin(self) -> None:
        """Returns to the first weights."""
        ...

    def iterate(self, updating: AbstractContextManager[object]) -> Sample:
        """Makes one iteration, its update inside the context."""
        ...


class CountedEnv(SyncVectorEnv):
    """A SyncVectorEnv that counts the steps of its copies in `played`."""

    played = 0

    def step(self, actions: Any) -> Any:
        """Steps every copy."""
        self.played += self.num_envs
        return super().step(actions)


def make_env(settings: Settings, autoreset_mode: AutoresetMode) -> CountedEnv:
    """Returns copies that have every task prepared; observations are handed out uncopied."""
    source = SyntheticSource(
        SyntheticConfig(settings.source, horizon=settings.horizon), settings.tasks
    )

    def make() -> ContextEditEnv:
        simulator = SimulatorConfig(budget_fraction=settings.budget_fraction)
        env = ContextEditEnv(
            source, simulator=simulator, context_slots=settings.context_slots,
            archive_slots=settings.archive_slots,
        )  # fmt: skip
        for task_id in source.ids(env.split):
            env.engine.prepare(task_id)
        return env

    return CountedEnv([make] * settings.copies, copy=False, autoreset_mode=autoreset_mode)


def clocks() -> tuple[float, float]:
    """Returns process time and wall time."""
    return time.process_time(), time.perf_counter()


class Own:
    """This library's collector, credit and update, as `contextpilot.training.ppo` calls them."""

    def __init__(self, settings: Settings) -> None:
        self.name, self.settings = "own PPO", settings
        self.env = make_env(settings, AutoresetMode.NEXT_STEP)
        torch.manual_seed(settings.seed)
        self.network = PointerNetwork(settings.network)
        self._first = copy.deepcopy(self.network.state_dict())
        self.parameters = sum(p.numel() for p in self.network.parameters())
        self.algorithm = PPOConfig(
            epochs=settings.epochs, minibatch=settings.minibatch, target_kl=_NO_LIMIT,
            learning_rate=settings.learning_rate,
        )  # fmt: skip
        self.iteration = 0
        self.begin()

    def begin(self) -> None:
        """Returns to the first weights."""
        self.network.load_state_dict(self._first)
        rate = self.settings.learning_rate
        self.optimizer = torch.optim.Adam(self.network.parameters(), rate, eps=1e-5)

    def iterate(self, updating: AbstractContextManager[object]) -> Sample:
        """Plays whole episodes, and updates."""
        self.iteration += 1
        before, (process, wall) = self.env.played, clocks()
        actor = NetworkActor(self.network, torch.Generator().manual_seed(self.iteration))
        plan, inputs = [Assignment()] * self.settings.episodes, self.network.inputs
        played = collect(self.env, actor, plan, keep=inputs, seed=self.iteration)
        paid = step_with_values(played, CreditConfig())
        started = time.perf_counter()
        with updating:
            rng = np.random.default_rng(self.iteration)
            update_ppo(self.network, self.optimizer, played, *paid, self.algorithm, None, rng)
        update = time.perf_counter() - started
        process, wall = (now - then for now, then in zip(clocks(), (process, wall), strict=True))
        parts = (played.env_seconds, played.policy_seconds, update)
        return Sample(
            len(played), self.env.played - before, played.episodes, process, wall, *parts,
            wall - sum(parts),
        )  # fmt: skip
