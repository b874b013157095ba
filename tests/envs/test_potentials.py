"""Potentials: followed step by step they are what their definition says, and change no optimum."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pytest
from brute_force import tiny_task
from hypothesis import given
from strategies import examples, seeds
from tiny_tasks import FixedSource, document_segment, mixed_task, random_legal, stream_task, words

from contextpilot.core.edit import Op
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.engine import Engine
from contextpilot_envs.potentials import PotentialTracker
from contextpilot_envs.row import RowSnapshot
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import holder, need_of
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.catalog import load_source

SHAPING = [TERMS.index(name) for name in ("key_info", "reload", "rent")]
SHAPED = RewardWeights(key_info=1.0, reload=1.0, rent=1.0)


def by_definition(episode: Episode) -> tuple[float, float, float]:
    """The potentials, demand by demand."""
    prepared, context = episode.prepared, episode.context
    config, raw, facts = prepared.config, prepared.raw, prepared.task.facts
    key_info = reload = 0.0
    solved = 1.0 if episode.succeeded else 0.0
    if episode.ended:
        return 0.0, 0.0, 0.0
    for demand in prepared.task.demands:
        if demand.request < context.request:
            continue
        told = sorted(demand.facts, key=lambda f: facts[f].segments)
        for segments, group in groupby(told, key=lambda f: facts[f].segments):
            lost = [facts[f] for f in sorted(group, key=demand.facts.index)
                    if holder(prepared, context, facts[f]) < 0]  # fmt: skip
            if not lost or all(context.columns.rank[i] < 0 for i in segments):
                continue
            need = need_of(context, lost[0], demand.query)
            p = config.notice_table.of(need.seen)
            bonus = 1.25 if {f.kind for f in lost} & {"number", "code", "identifier", "path"} else 1
            key_info -= (1 - p) * bonus * 5 * raw.requests[demand.request] / raw.total
            tokens = context.entries[need.source].full_tokens
            price = config.price_table.cache_write * tokens
            price += config.price_table.output * config.reload_output_tokens
            reload -= p * price / raw.total
            solved *= p if demand.final or prepared.task.success == "no_silent_miss" else 1.0
    return key_info - 2 * (1 - solved), reload, rent_by_definition(episode)


def rent_by_definition(episode: Episode) -> float:
    """Bills the rest of the task request by request, as it is and raw, without what comes new."""
    prepared, context = episode.prepared, episode.context
    bill = -episode.carried[1]
    raw_before = prepared.raw.tokens[context.request - 1] if context.request else 0
    raw_cached = 0 if context.request in prepared.cold else raw_before
    for sign, shown, cached, before in (
        (1, prepared.raw.tokens[context.request], raw_cached, raw_before),
        (-1, context.used_tokens, context.cached_tokens(), episode.carried[0]),
    ):
        cached = cached if before >= 1024 else 0
        first = 0.1 * cached + 1.25 * (shown - cached) if shown >= 1024 else shown
        rest = sum(0.1 * shown for _ in range(context.request + 1, prepared.task.requests))
        bill += sign * (first + rest)
    return bill / prepared.raw.total


def engine_with(task: Task, config: SimulatorConfig, weights: RewardWeights = SHAPED) -> Engine:
    engine = Engine(1, FixedSource(task), config, context_slots=24, archive_slots=6, reward=weights)
    engine.begin(0, task.id, 0)
    engine.observe([0])
    return engine


def stated_twice(seed: int) -> Task:
    """Facts that share segments, are stated twice, superseded, or demanded again and again."""
    rng, requests = np.random.default_rng(seed), 10
    keys = [f"KEY-{n}" for n in range(8)]
    texts = [words(60, 1000 * n).splitlines() for n in range(6)]
    facts = []
    for n, key in enumerate(keys):
        places = sorted(rng.choice(6, size=int(rng.integers(1, 3)), replace=False).tolist())
        for place in places:
            texts[place].insert(int(rng.choice([0, 30, 60])), key)
        old = int(rng.integers(6))
        stale = (1 + old,) if old not in places and rng.random() < 0.3 else ()
        kind = ("code", "clause")[n % 2]
        facts.append(KeyFact(key, kind, tuple(1 + place for place in places), stale))
    documents = [document_segment(f"d{n}", "\n".join(text)) for n, text in enumerate(texts)]
    goal = mixed_task(0).segments[1]
    demands = [
        Demand(int(r), tuple(sorted(rng.choice(8, 3, replace=False).tolist())), "key", final=True)
        for r in sorted(rng.integers(3, requests, 6))
    ]
    return stream_task([goal, *documents], [0, 0, 0, 1, 1, 2, 3], requests, facts=facts,
                       demands=demands)  # fmt: skip


def check_followed(engine: Engine, seed: int) -> float:
    """Plays random edits, comparing after each of them; returns the lowest potential seen."""
    rng, totals, lowest = np.random.default_rng(seed), np.zeros(len(TERMS)), 0.0
    while not engine.episodes[0].ended:
        engine.step([random_legal(engine, rng, keep_share=0.25)], [0])
        totals += engine.terms[0]
        tracker, episode = engine.states[0].tracker, engine.episodes[0]
        assert tracker is not None
        anew = PotentialTracker(episode)
        potentials = (tracker.key_info, tracker.reload, tracker.rent)
        assert potentials == (anew.key_info, anew.reload, anew.rent)
        expected = by_definition(episode)
        assert potentials == pytest.approx(expected, abs=1e-12)
        assert totals[SHAPING] == pytest.approx(expected, abs=1e-12)
        lowest = min(lowest, sum(expected))
    assert totals[SHAPING] == pytest.approx([0, 0, 0], abs=1e-12)
    return lowest


@given(seeds)
@examples(16)
def test_they_are_followed_exactly_and_sum_to_nothing(seed):
    task = (mixed_task, stated_twice)[seed % 2](seed // 2 % 100)
    config = SimulatorConfig(
        budget_fraction=(None, 0.6)[seed // 2 % 2], notice=("poor", "good")[seed // 4 % 2],
        compression_threshold=(0.8, 0.4)[seed // 8 % 2],
    )  # fmt: skip
    weights = (SHAPED, RewardWeights(key_info=1.0, half_kept=1.0))[seed // 16 % 2]
    check_followed(engine_with(task, config, weights), seed)


def test_they_are_followed_exactly_in_generated_tasks():
    lowest = []
    for name in ("docqa", "tools", "sample"):
        source = load_source(name, horizon=12)
        task = source.load(source.ids("train")[1])
        lowest.append(check_followed(engine_with(task, SimulatorConfig(budget_fraction=None)), 3))
    assert max(lowest) < -0.05


def test_without_a_weight_they_are_not_followed():
    engine = engine_with(stated_twice(0), SimulatorConfig(budget_fraction=None), RewardWeights())
    assert engine.states[0].tracker is None
    rng = np.random.default_rng(0)
    for _ in range(20):
        engine.step([random_legal(engine, rng, 0.2)], [0])
        assert not engine.terms[0, SHAPING].any()


def test_all_readable_looks_at_requests_that_were_sent_too():
    """A fact that nobody will demand again is hidden: only a tracker of the past sees it."""
    demands = [Demand(1, (0,), "key")]
    goal = mixed_task(0).segments[1]
    text = f"{words(60)}\nKEY-1\n{words(60, 500)}"
    task = stream_task([goal, document_segment("d0", text)], [0, 0], 4,
                       facts=[KeyFact("KEY-1", "code", (1,))], demands=demands)  # fmt: skip
    engine = engine_with(task, SimulatorConfig(budget_fraction=None))
    episode = engine.episodes[0]
    trackers = [PotentialTracker(episode, past=past) for past in (True, False)]
    fold = engine.codec.encode(Op.FOLD, "stub", 1)
    for action in (0, 0, fold):
        engine.step([action], [0])
    assert [tracker.all_readable() for tracker in trackers] == [False, True]
    assert [tracker.update()[:2] for tracker in trackers] == [(0.0, 0.0)] * 2


# ---- policy invariance -------------------------------------------------------------------------


def futures(engine: Engine, snapshot: RowSnapshot) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yields every sequence of legal actions to the end, with its summed terms."""
    engine.restore(0, snapshot)
    engine.observe()
    for number in np.flatnonzero(engine.encoder.action_mask[0]).tolist():
        engine.restore(0, snapshot)
        engine.observe()
        engine.step([number], [0])
        terms = engine.terms[0].copy()
        if engine.episodes[0].ended:
            yield (number,), terms
            continue
        for later, rest in futures(engine, engine.snapshot(0)):
            yield (number, *later), terms + rest


@pytest.mark.parametrize("seed", [0, 21, 28])
def test_no_optimum_changes_and_returns_differ_by_a_constant(seed):
    """Every sequence of at most one edit a request, from the start and from amid the task."""
    task = tiny_task(np.random.default_rng(seed), 3)
    config = SimulatorConfig(budget_fraction=None, max_edits=1, notice="poor")
    engine = engine_with(task, config)
    engine.step([0], [0])
    folds = [n for n in np.flatnonzero(engine.encoder.action_mask[0]).tolist()
             if engine.codec.decode(n).op == Op.FOLD]  # fmt: skip
    starts = [engine.snapshot(0)]
    engine.step([folds[0]], [0])
    starts.append(engine.snapshot(0))
    plain = RewardWeights().vector()
    for start in starts:
        engine.restore(0, start)
        potential = sum(by_definition(engine.episodes[0]))
        sequences, terms = zip(*futures(engine, start), strict=True)
        returns = np.stack(terms) @ plain
        shaped = np.stack(terms) @ SHAPED.vector()
        np.testing.assert_allclose(shaped, returns - potential, atol=1e-12)
        best = np.flatnonzero(returns > returns.max() - 1e-9)
        assert np.flatnonzero(shaped > shaped.max() - 1e-9).tolist() == best.tolist()
        assert len(best) < len(sequences) == len(set(sequences))
    assert potential < 0
