"""Plays policies on tasks and returns one row per episode. Environments come in as factories."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pool
from typing import Any, Protocol

from numpy.typing import NDArray

from contextpilot.edits.codec import ActionCodec
from contextpilot.evaluation.rows import EvaluationRow, RemovedFact
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy


class EpisodeEngine(Protocol):
    """What the runner needs of an environment: episodes side by side, each row begun by name."""

    codec: ActionCodec

    def begin(self, row: int, task_id: str, noise_seed: int) -> None:
        """Starts a task in a row; rows are begun in order the first time."""
        ...

    def observe(self, refreshed: Sequence[int]) -> None:
        """Brings the arrays up to date after rows were begun."""
        ...

    def step(self, actions: Sequence[int], active: Sequence[int]) -> NDArray[Any]:
        """Plays one action in each active row."""
        ...

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Returns the observation arrays, (B, ...)."""
        ...

    def ended(self, row: int) -> bool:
        """True where a row's episode is over."""
        ...

    def metrics(self, row: int) -> Mapping[str, Any]:
        """Returns an ended episode's measures, under the names of `EvaluationRow`."""
        ...


EngineFactory = Callable[[int], EpisodeEngine]
"""Makes an engine with so many rows."""

PolicyFactory = Callable[[EpisodeEngine, int], Policy]
"""Makes a policy for one row; those that may not look behind observations ignore both."""


@dataclass(frozen=True)
class Setting:
    """One source under one notice preset, and the tasks to play there.

    Attributes:
        source, split, notice, horizon: what the rows say; horizon 0 means each task's own.
        make_engine: the environment of this setting; must survive pickling.
        task_ids, seeds: every policy plays every task with every seed.
        policies: by name; each plays in this setting.
    """

    source: str
    split: str
    notice: str
    horizon: int
    make_engine: EngineFactory
    task_ids: tuple[str, ...]
    seeds: tuple[int, ...]
    policies: Mapping[str, PolicyFactory]

    @property
    def episodes(self) -> int:
        """How many rows it gives."""
        return len(self.task_ids) * len(self.seeds) * len(self.policies)


@dataclass(frozen=True, slots=True)
class _Job:
    policy: str
    task_id: str
    seed: int


ROWS = 16
TASKS_PER_PART = 6
EPISODES_PER_PART = 60


def evaluate(
    settings: Sequence[Setting],
    *,
    workers: int = 1,
    on_rows: Callable[[int], None] = lambda _count: None,
) -> list[EvaluationRow]:
    """Plays all settings; the order of rows does not depend on `workers`.

    Args:
        settings: what to play.
        workers: processes; 1 plays in this one.
        on_rows: called with the number of episodes that have just been finished.
    """
    parts = [part for setting in settings for part in _parts(setting)]
    results: list[list[EvaluationRow]] = [[] for _ in parts]
    for k, rows in _played(parts, workers):
        results[k] = rows
        on_rows(parts[k].episodes)
    return [row for rows in results for row in rows]


def _played(parts: Sequence[Setting], workers: int) -> Iterator[tuple[int, list[EvaluationRow]]]:
    """Yields each part's number and rows, as they are finished; a pool ends with its caller."""
    if workers <= 1:
        yield from ((k, play_setting(part)) for k, part in enumerate(parts))
        return
    with Pool(workers, initializer=_leave_interrupts_to_the_parent) as pool:
        yield from pool.imap_unordered(_play_part, list(enumerate(parts)))


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _play_part(numbered: tuple[int, Setting]) -> tuple[int, list[EvaluationRow]]:
    return numbered[0], play_setting(numbered[1])


def _parts(setting: Setting) -> Iterator[Setting]:
    """Cuts a setting into parts that finish in seconds, so that progress can be seen."""
    names = list(setting.policies)
    for start in range(0, len(setting.task_ids), TASKS_PER_PART):
        ids = setting.task_ids[start : start + TASKS_PER_PART]
        width = max(1, EPISODES_PER_PART // (len(ids) * len(setting.seeds)))
        for first in range(0, len(names), width):
            chosen = {name: setting.policies[name] for name in names[first : first + width]}
            yield replace(setting, task_ids=ids, policies=chosen)


def play_setting(setting: Setting) -> list[EvaluationRow]:
    """Plays every policy on every task with every seed, several episodes side by side."""
    jobs = deque(
        _Job(policy, task_id, seed)
        for policy in setting.policies
        for task_id in setting.task_ids
        for seed in setting.seeds
    )
    order = {job: k for k, job in enumerate(jobs)}
    width = min(ROWS, len(jobs))
    engine = setting.make_engine(width)
    playing: list[_Job | None] = [None] * width
    policies: list[dict[str, Policy]] = [{} for _ in range(width)]
    seconds = [0.0] * width
    finished: dict[int, EvaluationRow] = {}

    def begin(row: int) -> None:
        job = playing[row] = jobs.popleft() if jobs else None
        if job is not None:
            engine.begin(row, job.task_id, job.seed)
            if job.policy not in policies[row]:
                policies[row][job.policy] = setting.policies[job.policy](engine, row)
            policies[row][job.policy].reset(job.seed)
            seconds[row] = 0.0

    for row in range(width):
        begin(row)
    engine.observe(range(width))
    while active := [row for row in range(width) if playing[row] is not None]:
        started = time.perf_counter()
        arrays = engine.arrays()
        actions = [0] * width
        for row in active:
            job = playing[row]
            assert job is not None  # only active rows have a job
            view = Observation({name: array[row] for name, array in arrays.items()}, engine.codec)
            before = time.perf_counter()
            actions[row] = policies[row][job.policy](view)
            spent = time.perf_counter() - before
            seconds[row] += spent
            started += spent  # a policy's time is its own row's; the rest is shared
        engine.step(actions, active)
        shared = (time.perf_counter() - started) / len(active)
        begun = []
        for row in active:
            seconds[row] += shared
            job = playing[row]
            if job is not None and engine.ended(row):
                finished[order[job]] = _row(setting, job, engine.metrics(row), seconds[row])
                begin(row)
                begun.append(row)
        engine.observe([row for row in begun if playing[row] is not None])
    return [finished[k] for k in sorted(finished)]


def _row(setting: Setting, job: _Job, metrics: Mapping[str, Any], seconds: float) -> EvaluationRow:
    m = metrics
    return EvaluationRow(
        policy=job.policy, source=setting.source, split=setting.split, notice=setting.notice,
        horizon=setting.horizon or m["requests"], task_id=job.task_id, seed=job.seed,
        objective=float(m["objective"]), demand_success=float(m["demand_success"]),
        task_success=bool(m["task_success"]), silent_misses=int(m["silent_misses"]),
        forced_reloads=int(m["forced_reloads"]), billed_tokens=float(m["billed_tokens"]),
        raw_billed_tokens=float(m["raw_billed_tokens"]),
        mean_request_tokens=float(m["mean_request_tokens"]), peak_tokens=int(m["peak_tokens"]),
        edits=int(m["edits"]), overflows=int(m["overflows"]),
        key_facts_kept=float(m["key_facts_kept"]), seconds=float(seconds),
        cluster=str(m["cluster"]), language=str(m["language"]), requests=int(m["requests"]),
        demands=int(m["demands"]), miss_cost_tokens=float(m["miss_cost_tokens"]),
        failed=bool(m["failed"]), edits_by_op=dict(m["edits_by_op"]), revisits=int(m["revisits"]),
        billed_without_prefix_tokens=float(m["billed_without_prefix_tokens"]),
        raw_without_prefix_tokens=float(m["raw_without_prefix_tokens"]),
        removed_facts=tuple(RemovedFact(**fact) for fact in m["removed_facts"]),
    )  # fmt: skip
