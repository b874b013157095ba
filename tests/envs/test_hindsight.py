"""Hindsight is what playing the whole episode again without one edit gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from brute_force import tiny_task
from demand_tasks import Says
from played_again import Again, Step, from_scratch
from tiny_tasks import NO_LIMIT, FixedSource, chain_task, engine_of, mixed_task, random_legal

from contextpilot.core.edit import Op, Outcome
from contextpilot.errors import ConfigurationError
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import PRESETS, RewardWeights
from contextpilot_envs import hindsight as module
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.equality import plays_on_alike
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.catalog import load_source


def play(
    engine: Engine, task_id: str, seed: int, choose: Callable[[Engine, np.random.Generator], int]
) -> tuple[list[Step], np.ndarray]:
    """Plays an episode in an engine of one row; returns its steps and summed terms."""
    rng, terms = np.random.default_rng(seed), np.zeros(len(TERMS))
    engine.begin(0, task_id, seed)
    engine.observe([0])
    again, steps = Again(Episode(engine.episodes[0].prepared, seed), engine.reward), []
    while not engine.episodes[0].ended:
        number = choose(engine, rng)
        action = engine.codec.decode(number)
        slots = engine.encoder.archive_index if action.archived else engine.encoder.slot_index
        masked = not engine.encoder.action_mask[0, number]
        edits = action.op != Op.KEEP and not masked
        index = int(slots[0, action.slot]) if edits else -1
        sends = action.op == Op.KEEP or engine.states[0].step + 1 >= engine.simulator.max_edits
        name = again.names[index] if edits else ()
        steps.append(Step(action if edits else None, name, sends, masked))
        engine.step([number], [0])
        terms += engine.terms[0]
        again.play(len(steps) - 1, steps[-1])
    return steps, terms


def mostly_legal(engine: Engine, rng: np.random.Generator) -> int:
    if rng.random() < 0.05:
        return int(rng.integers(engine.codec.size))
    return random_legal(engine, rng, keep_share=0.3)


def folding(engine: Engine, rng: np.random.Generator) -> int:
    """Mostly marks, flushes and reloads, so that much is missed and fetched."""
    legal = np.flatnonzero(engine.encoder.action_mask[0])[1:]
    actions = [engine.codec.decode(int(number)) for number in legal]
    liked = [
        int(number)
        for number, action in zip(legal, actions, strict=True)
        if action.op in (Op.EXPIRE, Op.RELOAD, Op.DROP) or action.preset in ("flush", "through")
    ]
    return 0 if not liked or rng.random() < 0.35 else int(rng.choice(liked))


def engine_with(config: SimulatorConfig, reward: RewardWeights, *tasks: Task) -> Engine:
    return Engine(
        1, FixedSource(*tasks), config, context_slots=32, archive_slots=8, reward=reward,
        hindsight=True,
    )  # fmt: skip


def check(engine: Engine, task_id: str, seed: int, choose=mostly_legal) -> Counter[str]:
    """Compares every step's hindsight with brute force; returns what was covered."""
    steps, terms = play(engine, task_id, seed, choose)
    played, value = from_scratch(engine, seed, steps)
    plain = terms * engine.reward.vector()
    assert value == pytest.approx(plain.sum() - plain[3:5].sum(), abs=1e-9)
    assert played.episode.tally == engine.episodes[0].tally
    found, covered = engine.hindsight(0), Counter[str]()
    assert found.shape == (len(steps),)
    log, records = list(engine.episodes[0].log), iter(range(10**6))
    own = [r for r in log if not r.reason]  # neither settled nor forced
    for number, step in enumerate(steps):
        record = own[next(records)] if step.action is not None else None
        if record is None or record.outcome != Outcome.APPLIED:
            assert found[number] == 0.0
            covered["rejected"] += record is not None
            continue
        other, without = from_scratch(engine, seed, steps, removed=number)
        assert found[number] == pytest.approx(value - without, abs=1e-9), (number, step)
        covered[step.action.op.name] += abs(value - without) > 1e-9
        covered[step.action.preset] += abs(value - without) > 1e-9
        ours, theirs = played.episode.tally, other.episode.tally
        covered["misses"] += ours.silent_misses != theirs.silent_misses
        covered["reloads"] += ours.forced_reloads != theirs.forced_reloads
        covered["refused"] += ours.overflows != theirs.overflows
        covered["failed"] += played.episode.failed != other.episode.failed
    return covered


WEIGHTS = [
    RewardWeights(), PRESETS["balanced"], PRESETS["terminal_only"], PRESETS["naive"],
    RewardWeights(thrash=0.3, action_cost=0.1, task=0.7, demand=2.0),
]  # fmt: skip


def test_it_is_brute_force_on_every_kind_of_segment_and_edit():
    covered = Counter[str]()
    for seed in range(15):
        config = SimulatorConfig(
            budget_fraction=(None, 0.6, 0.9)[seed % 3], notice=("good", "poor")[seed % 2],
            max_edits=(8, 3)[seed % 4 == 3], reader=("ideal", "rot")[seed % 5 == 4],
            compression_threshold=(0.8, 0.4)[seed % 2],
        )  # fmt: skip
        task = mixed_task(seed, 9)
        engine = engine_with(config, WEIGHTS[seed % len(WEIGHTS)], task)
        covered += check(engine, task.id, seed, (mostly_legal, folding)[seed % 2])
    wanted = ("FOLD", "SUMMARIZE", "EXPIRE", "DROP", "RELOAD", "REORDER", "flush", "through",
              "misses", "reloads", "refused", "failed")  # fmt: skip
    assert {name: covered[name] for name in wanted if not covered[name]} == {}


@pytest.mark.parametrize("notice", ["good", "poor"])
def test_it_is_brute_force_on_tiny_tasks(notice):
    for seed in range(25):
        task = tiny_task(np.random.default_rng(seed), 6)
        config = SimulatorConfig(budget_fraction=None, notice=notice)
        check(engine_with(config, WEIGHTS[seed % len(WEIGHTS)], task), task.id, seed)


@pytest.mark.parametrize("number", [0, 3])
def test_it_is_brute_force_on_sample_sessions(number):
    source = load_source("sample")
    task = source.load(source.ids("train")[number])
    config = SimulatorConfig(budget_fraction=0.7, notice=("good", "poor")[number > 0], max_edits=4)
    covered = check(engine_with(config, RewardWeights(), task), task.id, number)
    assert covered["FOLD"] + covered["SUMMARIZE"] + covered["DROP"] > 2


def test_episodes_that_meet_again_are_not_played_to_their_end(monkeypatch):
    met = []

    def counted(*states):
        met.append(plays_on_alike(*states))
        return met[-1]

    monkeypatch.setattr(module, "plays_on_alike", counted)
    for seed in range(8):
        task = mixed_task(seed, 9)
        config = SimulatorConfig(budget_fraction=(None, 0.8)[seed % 2], notice="poor")
        weights = (RewardWeights(), PRESETS["terminal_only"])[seed % 2]
        check(engine_with(config, weights, task), task.id, seed, folding)
    assert sum(met) > 5


def test_the_only_edit_is_worth_the_whole_return():
    """Without it nothing is edited, and that returns 0."""
    engine = engine_with(NO_LIMIT, RewardWeights(), chain_task(6))
    engine.begin(0, "chain", 0)
    engine.observe([0])
    fold = engine.codec.encode(Op.FOLD, "stub", 4)
    forbidden = engine.codec.encode(Op.DROP, "this", 0)
    actions = [0, 0, forbidden, 0, fold, 0, 0, 0]
    returned = sum(engine.step([action], [0])[0] for action in actions)
    assert engine.episodes[0].ended
    worth = engine.hindsight(0)
    assert worth[[0, 1, 2, 3, 5, 6, 7]].tolist() == [0.0] * 7
    assert worth[4] == pytest.approx(returned + 0.01)
    assert worth[4] != 0.0


def test_a_flush_is_removed_as_a_whole_and_a_mark_alone():
    """Two marked results and one flush: what the second mark is worth has no break of its own."""
    engine = engine_with(NO_LIMIT, RewardWeights(), chain_task(12, result_words=400, needed=9))
    encode = engine.codec.encode
    marks = [encode(Op.EXPIRE, "0", slot) for slot in (2, 4)]

    def played(*actions: int) -> float:
        engine.begin(0, "chain", 0)
        engine.observe([0])
        return sum(engine.step([action], [0])[0] for action in (0, 0, 0, *actions, *[0] * 9))

    flush_one, flush_both = encode(Op.FOLD, "flush", 4), encode(Op.FOLD, "flush", 2)
    one, first = played(marks[1], flush_one), played(marks[0], flush_both)
    both = played(*marks, flush_both)
    worth = engine.hindsight(0)
    assert worth[5] == pytest.approx(both)
    assert worth[3] == pytest.approx(both - one)
    assert worth[4] == pytest.approx(both - first)
    assert worth[3] + worth[4] != pytest.approx(worth[5])


def test_a_rejected_edit_is_worth_nothing():
    engine = Engine(
        1, FixedSource(chain_task(5)), NO_LIMIT, context_slots=16, archive_slots=2,
        summarizer=Says(""), hindsight=True,
    )  # fmt: skip
    engine.begin(0, "chain", 0)
    engine.observe([0])
    for action in (0, 0, engine.codec.encode(Op.SUMMARIZE, "this", 2), 0, 0, 0):
        engine.step([action], [0])
    assert engine.episodes[0].log[0].outcome == Outcome.REJECTED_EMPTY_SUMMARY
    assert engine.hindsight(0).tolist() == [0.0] * 6


def test_it_looks_back_beyond_a_restore():
    """Also in another engine, and from a snapshot that went on differently at first."""
    task = mixed_task(4, 8)
    engines = [engine_with(NO_LIMIT, RewardWeights(), task) for _ in range(2)]
    rng = np.random.default_rng(0)
    engines[0].begin(0, task.id, 1)
    engines[0].observe([0])
    for _ in range(12):
        engines[0].step([random_legal(engines[0], rng)], [0])
    snapshot, worths = engines[0].snapshot(0), []
    engines[1].begin(0, task.id, 5)
    for engine in (engines[0], engines[1], engines[0]):
        engine.restore(0, snapshot)
        engine.observe()
        rng = np.random.default_rng(3)
        while not engine.episodes[0].ended:
            engine.step([random_legal(engine, rng, 0.4)], [0])
        worths.append(engine.hindsight(0))
    assert np.abs(worths[0]).max() > 0
    assert len(worths[0]) > 12
    np.testing.assert_array_equal(worths[0], worths[1])
    np.testing.assert_array_equal(worths[0], worths[2])


def test_the_episode_is_not_changed():
    task = mixed_task(2, 8)
    engine = engine_with(NO_LIMIT, RewardWeights(), task)
    play(engine, task.id, 2, mostly_legal)
    episode = engine.episodes[0]
    before, texts = episode.snapshot(), [entry.segment.text for entry in episode.context.entries]
    engine.hindsight(0)
    after = episode.snapshot()
    assert (after.context, after.tally, list(after.log)) == (
        before.context, before.tally, list(before.log),
    )  # fmt: skip
    assert [entry.segment.text for entry in episode.context.entries] == texts


def test_the_vector_environment_tells_it_when_an_episode_ends():
    env = ContextEditVectorEnv(
        2, FixedSource(chain_task(4), mixed_task(1, 6)), simulator=NO_LIMIT, context_slots=16,
        archive_slots=4, hindsight=True,
    )  # fmt: skip
    env.reset(seed=0, options={"task_id": ["chain", "mixed/1"]})
    rng, lengths, seen = np.random.default_rng(0), [0, 0], []
    ended = np.zeros(2, bool)
    while len(seen) < 2:
        lengths = [length + 1 for length in lengths]
        masks = env.action_masks()
        actions = [0 if rng.random() < 0.5 else int(rng.choice(np.flatnonzero(m))) for m in masks]
        _, _, ended, _, infos = env.step(np.array(actions))
        assert ("hindsight" in infos) == ended.any()
        for row in np.flatnonzero(ended):
            assert infos["_hindsight"][row]
            assert infos["hindsight"][row].shape == (lengths[row],)
            np.testing.assert_array_equal(infos["hindsight"][row], env.engine.hindsight(row))
            seen.append(row)
            lengths[row] = -1  # the step that begins the next task is no step of it
    with pytest.raises(ConfigurationError, match="hindsight=True"):
        engine_of(chain_task(4)).hindsight(0)
