"""Playing whole episodes in a vector environment, and the arrays that come of it.

Works with Gymnasium vector environments whose observations are those of the registered one. Under
autoreset mode DISABLED, which the native vector form has, the caller chooses which task each row
plays, and a row without further work stays ended. Under NEXT_STEP the environment draws its own
tasks, and the step after an episode's end, which only begins the next one, is never recorded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.pointer.network import PointerNetwork

Arrays = Mapping[str, NDArray[Any]]

_NOTHING, _RESETTING = -1, -2


class VectorEnvironment(Protocol):
    """What a rollout needs of a Gymnasium vector environment."""

    num_envs: int
    metadata: dict[str, Any]

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes; see `gymnasium.vector.VectorEnv.reset`."""
        ...

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Plays one action in each row; see `gymnasium.vector.VectorEnv.step`."""
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """One episode to be played.

    Attributes:
        task_id: which task; "" leaves it to the environment (NEXT_STEP).
        noise_seed: what the agent notices.
        group: episodes of one group share task and noise.
    """

    task_id: str = ""
    noise_seed: int = 0
    group: int = 0


@dataclass(frozen=True, slots=True)
class Decisions:
    """One action for each of n rows: all arrays (n,)."""

    actions: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]


class Actor(Protocol):
    """Decides for several rows at once."""

    def begin(self, row: int, assignment: Assignment) -> None:
        """Is told that a row begins an episode."""
        ...

    def act(self, observations: Arrays, rows: Sequence[int]) -> Decisions:
        """Returns decisions for observations of shape (n, ...) that stand in these rows."""
        ...

    def value(self, observations: Arrays) -> NDArray[np.float32]:
        """Returns values (n,) of observations (n, ...), for episodes that were cut off."""
        ...


class NetworkActor:
    """Samples from a network, or takes its mode where `generator` is None.

    Raises nothing of its own; the mask at collection is in the observation, and is stored with it.
    """

    def __init__(self, network: PointerNetwork, generator: torch.Generator | None) -> None:
        self.network, self.generator = network, generator

    def begin(self, row: int, assignment: Assignment) -> None:
        """Has no memory of its own."""

    @torch.inference_mode()
    def act(self, observations: Arrays, _rows: Sequence[int]) -> Decisions:
        """Returns sampled actions, their log-probabilities, and values."""
        output = self.network(tensors(observations, self.network.inputs))
        distribution = output.distribution
        if self.generator is None:
            actions = distribution.mode()
        else:
            actions = distribution.sample(self.generator)
        log_probs = distribution.log_prob(actions)
        return Decisions(actions.numpy(), log_probs.numpy(), output.value.numpy())

    @torch.inference_mode()
    def value(self, observations: Arrays) -> NDArray[np.float32]:
        """Returns the value head's estimates."""
        values: NDArray[np.float32] = self.network(
            tensors(observations, self.network.inputs)
        ).value.numpy()
        return values


class PolicyActor:
    """Plays baselines: `make(task_id)` gives the policy that a row plays its task with."""

    def __init__(self, make: Any, codec: ActionCodec) -> None:
        self._make, self._codec = make, codec
        self._policies: dict[int, Policy] = {}

    def begin(self, row: int, assignment: Assignment) -> None:
        """Gives the row a fresh policy."""
        self._policies[row] = self._make(assignment.task_id)
        self._policies[row].reset(assignment.noise_seed)

    def act(self, observations: Arrays, rows: Sequence[int]) -> Decisions:
        """Returns each row's policy's action; log-probabilities and values are 0."""
        actions = np.zeros(len(rows), np.int64)
        for k, row in enumerate(rows):
            view = Observation({name: a[k] for name, a in observations.items()}, self._codec)
            actions[k] = self._policies[row](view)
        zeros = np.zeros(len(rows), np.float32)
        return Decisions(actions, zeros, zeros)

    def value(self, observations: Arrays) -> NDArray[np.float32]:
        """Returns zeros: baselines estimate nothing."""
        return np.zeros(len(next(iter(observations.values()))), np.float32)


@dataclass(frozen=True)
class Trajectories:
    """N steps of E whole episodes, one episode after the other, each in order of time.

    Attributes:
        observations: arrays (N, ...), the mask at collection among them.
        actions, log_probs, values, rewards: (N,).
        terms: raw reward terms, (N, K); K is 0 where the environment names none.
        requests: the request that each step belongs to, (N,).
        starts: the first step of each episode, and N, (E + 1,).
        final_values: bootstrap value of what would have followed, (E,); 0 where the task ended.
        assignments: what each episode played, E.
        metrics: the environment's measures of each episode, E.
        hindsight: (N,) return minus the return without the step's edit; None: not asked for.
        env_seconds, policy_seconds: where the time went.
    """

    observations: dict[str, NDArray[Any]]
    actions: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terms: NDArray[np.float64]
    requests: NDArray[np.int64]
    starts: NDArray[np.int64]
    final_values: NDArray[np.float64]
    assignments: tuple[Assignment, ...]
    metrics: tuple[Mapping[str, Any], ...]
    hindsight: NDArray[np.float64] | None = None
    env_seconds: float = 0.0
    policy_seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def episodes(self) -> int:
        """E."""
        return len(self.starts) - 1

    def spans(self) -> Iterator[slice]:
        """Yields each episode's steps."""
        for first, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield slice(first, end)

    @property
    def ends_request(self) -> NDArray[np.bool_]:
        """True for the last step of each request, (N,)."""
        ends = np.ones(len(self), bool)
        ends[:-1] = self.requests[1:] != self.requests[:-1]
        ends[self.starts[1:] - 1] = True
        return ends

    @property
    def returns(self) -> NDArray[np.float64]:
        """Undiscounted return of each episode, bootstrapped where it was cut off, (E,)."""
        sums = np.add.reduceat(self.rewards, self.starts[:-1])
        return np.asarray(sums + self.final_values)


@dataclass
class _Store:
    """What has been recorded so far, in the order of play."""

    observations: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    actions: list[NDArray[np.int64]] = field(default_factory=list)
    log_probs: list[NDArray[np.float32]] = field(default_factory=list)
    values: list[NDArray[np.float32]] = field(default_factory=list)
    rewards: list[NDArray[np.float64]] = field(default_factory=list)
    terms: list[NDArray[np.float64]] = field(default_factory=list)
    requests: list[NDArray[np.int64]] = field(default_factory=list)
    episodes: list[NDArray[np.int64]] = field(default_factory=list)


def collect(
    env: VectorEnvironment,
    actor: Actor,
    plan: Sequence[Assignment],
    *,
    keep: Sequence[str],
    seed: int = 0,
) -> Trajectories:
    """Plays every episode of a plan to its end.

    Args:
        env: a vector environment in autoreset mode NEXT_STEP or DISABLED.
        actor: decides.
        plan: the episodes to play, begun in this order.
        keep: the observation arrays to record.
        seed: for the environment's own draws (NEXT_STEP).

    Raises:
        ConfigurationError: for another autoreset mode.
    """
    return _Rollout(env, actor, plan, keep).play(seed)


class _Rollout:
    def __init__(
        self, env: VectorEnvironment, actor: Actor, plan: Sequence[Assignment], keep: Sequence[str]
    ) -> None:
        self.env, self.actor, self.plan, self.keep = env, actor, tuple(plan), tuple(keep)
        mode = str(getattr(env.metadata.get("autoreset_mode"), "name", None))
        if mode not in ("DISABLED", "NEXT_STEP"):
            raise ConfigurationError(
                "rollouts need a vector environment whose autoreset mode is DISABLED or NEXT_STEP. "
                f"Received {mode}. Pass autoreset_mode=AutoresetMode.NEXT_STEP when making it."
            )
        self.chooses = mode == "DISABLED"
        self.begun = 0
        self.rows = [_NOTHING] * env.num_envs  # which episode each row plays
        self.store = _Store()
        self.finals = np.zeros(len(plan))
        self.metrics: list[Mapping[str, Any]] = [{} for _ in plan]
        self.hindsight: list[NDArray[np.float64] | None] = [None] * len(plan)
        self.env_seconds = self.policy_seconds = 0.0

    def play(self, seed: int) -> Trajectories:
        observations, infos = self._begin_all(seed)
        while any(episode >= 0 for episode in self.rows) or _RESETTING in self.rows:
            live = [row for row, episode in enumerate(self.rows) if episode >= 0]
            actions = np.zeros(self.env.num_envs, np.int64)
            if live:
                actions[live] = self._decide(observations, infos, live)
            started = time.perf_counter()
            observations, rewards, terminated, truncated, infos = self.env.step(actions)
            self.env_seconds += time.perf_counter() - started
            self._record(rewards, infos, live)
            restarted = [r for r, episode in enumerate(self.rows) if episode == _RESETTING]
            for row in restarted:
                self._begin_row(row)
            ended = [row for row in live if terminated[row] or truncated[row]]
            if ended:
                self._finish(ended, terminated, observations, infos)
                again = self._next(ended)
                if again is not None:
                    observations, infos = again
        return self._trajectories()

    def _begin_all(self, seed: int) -> tuple[Arrays, dict[str, Any]]:
        rows = range(min(self.env.num_envs, len(self.plan)))
        if self.chooses:
            return self._reset(list(rows), spare=range(len(rows), self.env.num_envs))
        started = time.perf_counter()
        observations, infos = self.env.reset(seed=seed)
        self.env_seconds += time.perf_counter() - started
        for row in rows:
            self._begin_row(row)
        return observations, infos

    def _begin_row(self, row: int) -> None:
        self.rows[row] = self.begun
        self.actor.begin(row, self.plan[self.begun])
        self.begun += 1

    def _reset(
        self, rows: Sequence[int], spare: Sequence[int] = ()
    ) -> tuple[Arrays, dict[str, Any]]:
        """Begins the next episodes of the plan in these rows (DISABLED).

        A first reset must begin every row, so spare ones play along, and nobody looks.
        """
        mask = np.zeros(self.env.num_envs, bool)
        task_ids, seeds = [""] * self.env.num_envs, [0] * self.env.num_envs
        for row in rows:
            assignment = self.plan[self.begun]
            mask[row], task_ids[row], seeds[row] = True, assignment.task_id, assignment.noise_seed
            self._begin_row(row)
        for row in spare:
            mask[row], task_ids[row] = True, self.plan[0].task_id
        started = time.perf_counter()
        result = self.env.reset(
            options={"reset_mask": mask, "task_id": task_ids, "noise_seed": seeds}
        )
        self.env_seconds += time.perf_counter() - started
        return result

    def _next(self, ended: Sequence[int]) -> tuple[Arrays, dict[str, Any]] | None:
        """Gives rows that have ended something further to do, while there is something."""
        left = len(self.plan) - self.begun
        if self.chooses:
            again = list(ended[:left])
            return self._reset(again) if again else None
        waiting = self.rows.count(_RESETTING)
        for row in ended[: max(0, left - waiting)]:
            self.rows[row] = _RESETTING
        return None

    def _decide(
        self, observations: Arrays, infos: Mapping[str, Any], live: Sequence[int]
    ) -> NDArray[np.int64]:
        started = time.perf_counter()
        chosen = {name: observations[name][live] for name in observations}
        decisions = self.actor.act(chosen, live)
        self.policy_seconds += time.perf_counter() - started
        store = self.store
        store.observations.append({name: chosen[name] for name in self.keep})
        store.actions.append(decisions.actions)
        store.log_probs.append(decisions.log_probs)
        store.values.append(decisions.values)
        store.episodes.append(np.array([self.rows[row] for row in live], np.int64))
        requests = infos.get("request")
        if requests is None:  # without requests each step is one
            requests = np.full(self.env.num_envs, len(store.actions))
        store.requests.append(np.asarray(requests, np.int64)[live])
        return decisions.actions

    def _record(self, rewards: NDArray[Any], infos: Mapping[str, Any], live: Sequence[int]) -> None:
        if not live:
            return
        self.store.rewards.append(np.asarray(rewards, np.float64)[live])
        terms = infos.get("reward_terms")
        self.store.terms.append(
            np.zeros((len(live), 0)) if terms is None else np.array(terms, np.float64)[live]
        )

    def _finish(
        self,
        ended: Sequence[int],
        terminated: NDArray[np.bool_],
        observations: Arrays,
        infos: Mapping[str, Any],
    ) -> None:
        cut = [row for row in ended if not terminated[row]]
        if cut:
            values = self.actor.value({name: a[cut] for name, a in observations.items()})
            for row, value in zip(cut, values.tolist(), strict=True):
                self.finals[self.rows[row]] = value
        for row in ended:
            episode = self.rows[row]
            self.metrics[episode] = _of_row(infos.get("episode_metrics"), row)
            if "hindsight" in infos:
                self.hindsight[episode] = np.asarray(infos["hindsight"][row], np.float64)
            self.rows[row] = _NOTHING

    def _trajectories(self) -> Trajectories:
        store = self.store
        episodes = np.concatenate(store.episodes)
        order = np.argsort(episodes, kind="stable")
        counts = np.bincount(episodes, minlength=len(self.plan))
        hindsight = [h for h in self.hindsight if h is not None]
        return Trajectories(
            {
                name: np.concatenate([o[name] for o in store.observations])[order]
                for name in self.keep
            },
            np.concatenate(store.actions)[order], np.concatenate(store.log_probs)[order],
            np.concatenate(store.values)[order], np.concatenate(store.rewards)[order],
            np.concatenate(store.terms)[order], np.concatenate(store.requests)[order],
            np.concatenate([[0], np.cumsum(counts)]), self.finals, self.plan,
            tuple(self.metrics),
            np.concatenate(hindsight) if len(hindsight) == len(self.plan) else None,
            self.env_seconds, self.policy_seconds,
        )  # fmt: skip


def _of_row(metrics: Any, row: int) -> Mapping[str, Any]:
    """Returns a row's measures; vector environments give dicts of arrays, or arrays of dicts."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):  # "_name" (B,) says which rows have the measure
        return {
            name: _of_row(values, row) if isinstance(values, Mapping) else values[row]
            for name, values in metrics.items()
            if name[0] != "_" and metrics[f"_{name}"][row]
        }
    found: Mapping[str, Any] = metrics[row]
    return found


def tensors(observations: Arrays, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Returns the named arrays as tensors that share their memory."""
    return {name: torch.from_numpy(observations[name]) for name in names}
