"""Every way of folding, summarizing and dropping in a tiny task, played on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from tiny_tasks import exchange, goal_segment, stream_task, words

from contextpilot.core.edit import Drop, Edit, Fold, Summarize
from contextpilot.core.invariants import is_legal
from contextpilot.core.segment import Form
from contextpilot.edits.codec import summary_limit
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.tasks.base import Demand, KeyFact, Task

RULES = {Form.STUB: "fold", Form.OUTLINE: "outline", Form.SUMMARY: "summarize"}
Life = tuple[int, Form, int]
"""Request before which a result leaves its full form, as what, and before which it is dropped."""


def tiny_task(rng: np.random.Generator, requests: int) -> Task:
    """A goal and two exchanges; facts at the edge or in the middle, demanded 0 to 2 times each."""
    arrivals = (0, 1) if rng.random() < 0.7 else (0, 0)
    segments, times, facts, demands = [goal_segment()], [0], [], []
    for n, arrival in enumerate(arrivals):
        large = rng.random() < 0.5
        lines = words(int(rng.integers(200, 700) if large else rng.integers(30, 120)), 1000 * n)
        texts = lines.splitlines()
        key = f"KEY-{n}-{int(rng.integers(100, 999))}"
        middle = rng.random() < 0.7
        texts.insert(int(rng.integers(len(texts))) if middle else int(rng.choice([0, 999])), key)
        places = [2 + 2 * n]
        if n == 1 and rng.random() < 0.3:  # the first fact is stated twice
            texts.insert(len(texts) // 2, facts[0].value)
            facts[0] = KeyFact(facts[0].value, "code", (2, 4))
        segments += exchange(n, "\n".join(texts))
        times += [arrival, arrival]
        facts.append(KeyFact(key, "code", tuple(places)))
    for fact in range(2):
        for _ in range(int(rng.integers(0, 3))):
            request = int(rng.integers(arrivals[fact], requests))
            demands.append(Demand(request, (fact,), f"code {fact}", final=bool(rng.random() < 0.8)))
    return stream_task(
        segments, times, requests, facts=facts, demands=demands, output_tokens=5,
        cold=(int(rng.integers(1, requests)),) if rng.random() < 0.3 else (),
        prefix_tokens=int(rng.choice([0, 0, 800])),
    )  # fmt: skip


def lives(first: int, horizon: int) -> Iterator[Life]:
    """Every life of a result that may be edited from request `first` on."""
    for drop in (*range(first, horizon), horizon):
        yield horizon, Form.FULL, drop
        for leave in range(first, drop):
            for form in RULES:
                yield leave, form, drop


def best_objective(prepared: PreparedTask, noise_seed: int, *, unread: bool = False) -> float:
    """Returns the highest objective of all lives of the two results.

    Args:
        prepared: a task of `tiny_task`.
        noise_seed: what the agent will notice.
        unread: try edits of what was not sent yet, too; legal only where the window is full.
    """
    task = prepared.task
    each = [list(lives(task.arrivals[i] + (not unread), task.requests)) for i in (2, 4)]
    played = (_play(prepared, noise_seed, dict(zip((2, 4), pair, strict=True)))
              for pair in product(*each))  # fmt: skip
    return max(objective for objective in played if objective is not None)


def _play(prepared: PreparedTask, noise_seed: int, plan: dict[int, Life]) -> float | None:
    """Returns the objective; None where an edit is not legal when it is due."""
    episode = Episode(prepared, noise_seed)
    while not episode.ended:
        now = episode.context.request
        for i, (leave, form, drop) in plan.items():
            if leave == now:
                if not is_legal(RULES[form], episode.context, i):
                    return None
                episode.edit(_leaving(prepared, episode, i, form))
            if drop == now:
                if not is_legal("drop", episode.context, i):
                    return None
                episode.edit(Drop((i,)))
        episode.send()
    return episode.objective


def _leaving(prepared: PreparedTask, episode: Episode, i: int, form: Form) -> Edit:
    if form != Form.SUMMARY:
        return Fold((i,), form)
    tokens = episode.context.columns.size[i]
    return Summarize((i,), summary_limit(tokens, prepared.budget.summarize_max_tokens))
