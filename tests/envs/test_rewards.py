"""Rewards: each term by an episode that was worked out on paper, and what holds for all of them.

The paper's task: a goal of 100 tokens, documents d0 of 800 and d1 of 100, all there from the first
of four requests on; a token is a word, a stub has 10. Prices are 1 to write, 0.1 to read, and 5 for
output, so raw's requests cost 1000, 100, 100 and 100: 1300 in all. d0 states KEY-1, which the third
request demands and which decides the task; asking for an original takes 40 words, so 200.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from demand_tasks import Says
from hypothesis import given
from strategies import examples, seeds
from tiny_tasks import (
    FixedSource,
    document_segment,
    goal_segment,
    mixed_task,
    random_legal,
    stream_task,
    words,
)

from contextpilot.core.edit import Op
from contextpilot.rewards.terms import TERMS
from contextpilot.rewards.weights import PRESETS, RewardWeights
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import Demand, KeyFact, Task

FULL_D0, RAW = 800, 1300.0
EVERYTHING = RewardWeights(*[1.0] * len(TERMS))
GOAL, D0, D1 = 0, 1, 2
"""Segments, and their slots."""


class Words:
    """A tokenizer whose tokens are words."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())

    def truncate(self, text: str, max_tokens: int) -> str:
        return " ".join(text.split()[:max_tokens])


def paper_task(kind: str = "code", *, stale: bool = False, requests: int = 4) -> Task:
    """Three words of each text are its message's framing."""
    facts = [KeyFact("KEY-1", kind, (D0,), (D1,) if stale else ())]
    half = FULL_D0 // 2 - 2
    stating = f"{words(half)} KEY-1 {words(half, 5000)}"
    segments = [
        goal_segment(words(97, 90000)), document_segment("d0", stating),
        document_segment("d1", words(97, 80000)),
    ]  # fmt: skip
    demands = [Demand(2, (0,), "the key", final=True)]
    return stream_task(segments, [0, 0, 0], requests, facts=facts, demands=demands)


def paper_engine(task: Task, notice: str = "perfect", says: str = "KEY-1 it is") -> Engine:
    config = SimulatorConfig(
        budget_fraction=None, notice=notice, prices="input_only", reload_output_tokens=40
    )
    engine = Engine(
        1, FixedSource(task), config, context_slots=8, archive_slots=2, tokenizer=Words(),
        summarizer=Says(says), reward=EVERYTHING,
    )  # fmt: skip
    engine.begin(0, task.id, 0)
    engine.observe([0])
    return engine


def played(engine: Engine, *actions: tuple[Any, ...] | None) -> list[dict[str, float]]:
    """Plays actions (None: keep); returns the terms that are not 0 but for rent, step by step."""
    seen = []
    for action in actions:
        engine.step([0 if action is None else engine.codec.encode(*action)], [0])
        terms = zip(TERMS, engine.terms[0].tolist(), strict=True)
        seen.append({name: value for name, value in terms if value and name != "rent"})
    return seen


FOLD = (Op.FOLD, "stub", D0)
SUMMARIZE = (Op.SUMMARIZE, "this", D0)


def test_the_paper_s_numbers_are_the_simulator_s():
    engine = paper_engine(paper_task())
    prepared = engine.episodes[0].prepared
    assert [entry.full_tokens for entry in prepared.entries] == [100, FULL_D0, 100]
    assert prepared.entries[D0].stub_tokens == 10
    assert prepared.raw.requests == pytest.approx((1000, 100, 100, 100))
    assert played(engine, None, None, None, None) == [{}] * 4


def test_a_fold_that_the_agent_has_to_undo():
    """It saves, then costs more than it saved; its potential comes back with the original."""
    seen = played(paper_engine(paper_task()), None, FOLD, None, None, None)
    # Noticed for certain: nothing would be missed, and 800 + 200 would be paid to fetch it.
    fold = {"action_cost": -0.1 / 4, "reload": -1000 / RAW}
    assert seen[1] == pytest.approx(fold)
    # goal 100 read, stub 10 and d1 100 written: 10 + 110 = 120 instead of 100; 210 < 500 tokens,
    # but the key fact cannot be read
    assert seen[2] == pytest.approx({"token_savings": (100 - 120) / RAW})
    # 210 read, 200 to ask, then 210 read and 800 written: 21 + 200 + 21 + 800 = 1042
    fetched = {
        "token_savings": (100 - 1042) / RAW, "action_cost": -1 / 4, "reload": 1000 / RAW,
        "thrash": -1.0, "reload_required": -1.0,
    }  # fmt: skip
    assert seen[3] == pytest.approx(fetched)
    # 1010 read: 101; bills 1000 + 120 + 1042 + 101 = 2263
    end = {"token_savings": -1 / RAW, "outcome": 1 - 2263 / RAW}
    assert seen[4] == pytest.approx(end)


@pytest.mark.parametrize(("kind", "bonus"), [("code", 1.25), ("clause", 1.0)])
def test_a_fold_whose_fact_is_missed_for_certain(kind, bonus):
    """A stale copy is visible, and poor agents never notice that: 5 requests of 100 are lost."""
    seen = played(paper_engine(paper_task(kind, stale=True), "poor"), None, FOLD, None, None, None)
    # and the task with it, whose failure costs 2
    assert seen[1] == pytest.approx({"action_cost": -0.025, "key_info": -bonus * 500 / RAW - 2})
    assert seen[2] == pytest.approx({"token_savings": -20 / RAW})
    missed = {"token_savings": 79 / RAW, "demand": -500 / RAW, "key_info": bonus * 500 / RAW}
    assert seen[3] == pytest.approx(missed)  # 210 read: 21
    # bills 1000 + 120 + 21 + 21 = 1162
    outcome = 1 - (1162 + 500) / RAW
    end = {"token_savings": 79 / RAW, "task": -1.0, "outcome": outcome, "key_info": 2}
    assert seen[4] == pytest.approx(end)


def test_a_fold_that_may_be_missed():
    """A good agent notices a stub with 0.95."""
    fold = played(paper_engine(paper_task(), "good"), None, FOLD)[1]
    expected = {
        "action_cost": -0.025, "key_info": -0.05 * (1.25 * 500 / RAW + 2),
        "reload": -0.95 * 1000 / RAW,
    }  # fmt: skip
    assert fold == pytest.approx(expected)


def test_the_rent_of_what_is_shown_comes_with_the_edit():
    """What the next request and the two after it cost less; the bills then take it back."""
    engine, rents = paper_engine(paper_task()), []
    for action in (0, engine.codec.encode(*FOLD), 0, 0):
        engine.step([action], [0])
        rents.append(engine.terms[0, TERMS.index("rent")] * RAW)
    # Next: 120 as above instead of 100; then twice 21 instead of 100.
    assert rents[:2] == pytest.approx([0, -20 + 2 * 79])
    # Request 1 is billed: -20 goes. In request 2 the original comes back beside its stub.
    assert rents[2:] == pytest.approx([20, -2 * 79 - 1])


def test_a_summary_that_keeps_the_fact():
    seen = played(paper_engine(paper_task()), None, SUMMARIZE, None, None, None)
    assert seen[1] == pytest.approx({"action_cost": -1.1 / 4, "summary_kept": 1.0})
    # It read 797 and wrote 3: 797 + 15. Then goal read, summary 6 and d1 written: 10 + 106 = 116.
    bill = 812 + 116
    kept = {"token_savings": (100 - bill) / RAW, "half_kept": 1.0}
    assert seen[2] == pytest.approx(kept)
    later = {"token_savings": (100 - 20.6) / RAW, "half_kept": 1.0}
    assert seen[3] == pytest.approx(later)
    total = 1000 + bill + 2 * 20.6
    assert seen[4] == pytest.approx(later | {"outcome": 1 - total / RAW})


def test_a_summary_that_omits_the_fact():
    """Nothing is missed yet, so it counts as kept; but less than all key facts are readable."""
    seen = played(paper_engine(paper_task(), "good", says="nothing"), None, SUMMARIZE, None)
    expected = {
        "action_cost": -1.1 / 4, "key_info": -0.3 * (1.25 * 500 / RAW + 2), "summary_kept": 1.0,
        "reload": -0.7 * 1000 / RAW,
    }  # fmt: skip
    assert seen[1] == pytest.approx(expected)
    assert "half_kept" not in seen[2]


def test_a_summary_after_a_miss_and_a_rejected_one_are_not_kept():
    engine = paper_engine(paper_task(stale=True, requests=5), "poor")
    after = played(engine, None, FOLD, None, None, (Op.SUMMARIZE, "this", D1))
    assert after[4] == pytest.approx({"action_cost": -1.1 / 5})
    rejected = played(paper_engine(paper_task(), says=""), None, SUMMARIZE)[1]
    assert rejected == pytest.approx({"action_cost": -1.1 / 4})


@pytest.mark.parametrize(("request_number", "thrash"), [(3, -1.0), (4, -1.0), (5, 0.0)])
def test_a_reload_thrashes_within_three_requests(request_number, thrash):
    """Hidden before request 1, reloaded before another; the demand is not in the way: d1."""
    engine = paper_engine(paper_task(requests=7))
    keeps = [None] * (request_number - 1)
    fold, reload = (Op.FOLD, "stub", D1), (Op.RELOAD, "in_place", D1)
    seen = played(engine, None, fold, *keeps, reload)
    assert engine.episodes[0].context.request == request_number
    assert seen[-1] == pytest.approx(
        {"action_cost": -0.1 / 7} | ({"thrash": thrash} if thrash else {})
    )


def test_a_masked_action_and_a_refused_request():
    """Both in one step, where the only edit step sends: 1000 tokens do not fit into 900."""
    config = SimulatorConfig(max_context_tokens=900, prices="input_only", max_edits=1)
    engine = Engine(
        1, FixedSource(paper_task()), config, context_slots=8, tokenizer=Words(), reward=EVERYTHING
    )
    engine.begin(0, "stream", 0)
    engine.observe([0])
    seen = played(engine, (Op.DROP, "this", GOAL))
    # The whole task is billed as raw's.
    assert seen == [{"budget": -1.0, "invalid": -1.0}]
    assert engine.episodes[0].ended


def test_a_summary_before_a_refused_request_is_all_that_is_lost():
    config = SimulatorConfig(max_context_tokens=150, prices="input_only")
    engine = Engine(
        1, FixedSource(paper_task()), config, context_slots=8, tokenizer=Words(), reward=EVERYTHING,
        summarizer=Says("KEY-1 it is"),
    )  # fmt: skip
    engine.begin(0, "stream", 0)
    engine.observe([0])
    seen = played(engine, SUMMARIZE, None)  # 206 tokens remain
    assert seen[1]["token_savings"] == pytest.approx(-812 / RAW)
    assert seen[1]["outcome"] == pytest.approx(-812 / RAW)
    assert seen[1]["budget"] == -1.0
    assert "task" not in seen[1]


WEIGHTS = [RewardWeights(), *PRESETS.values(), EVERYTHING]


@given(seeds)
@examples(14)
def test_the_reward_is_the_weighted_sum_of_its_terms(seed):
    weights = WEIGHTS[seed % len(WEIGHTS)]
    config = SimulatorConfig(
        budget_fraction=(None, 0.6)[seed % 2], notice=("poor", "good")[seed // 2 % 2],
        max_edits=(16, 3)[seed // 4 % 2],
    )  # fmt: skip
    engine = Engine(
        2, FixedSource(mixed_task(seed % 40, 8)), config, context_slots=24, archive_slots=4,
        reward=weights,
    )  # fmt: skip
    for row in range(2):
        engine.begin(row, engine.source.ids("train")[0], seed % 7 + row)
    engine.observe(range(2))
    rng, totals = np.random.default_rng(seed), np.zeros((2, len(TERMS)))
    while not engine.episodes[0].ended:
        number = random_legal(engine, rng)
        if rng.random() < 0.1:
            number = int(rng.integers(engine.codec.size))
        rewards = engine.step([number, 0], [0])
        expected = 0.0
        for weight, term in zip(weights.vector().tolist(), engine.terms[0].tolist(), strict=True):
            expected += weight * term
        assert rewards[0] == expected
        assert rewards[1] == 0.0
        assert not engine.terms[1].any()
        totals += engine.terms
    check_totals(engine, dict(zip(TERMS, totals[0].tolist(), strict=True)))


def check_totals(engine: Engine, totals: dict[str, float]) -> None:
    """What a whole episode's terms are by its tally."""
    episode, tally = engine.episodes[0], engine.episodes[0].tally
    raw, requests = episode.prepared.raw.total, episode.prepared.task.requests
    assert totals["token_savings"] == pytest.approx(1 - tally.bill / raw, abs=1e-9)
    assert totals["demand"] == pytest.approx(-5 * tally.miss_cost / raw, abs=1e-9)
    objective = totals["token_savings"] + totals["demand"]
    objective += 2 * (totals["task"] + totals["budget"])
    assert objective == pytest.approx(episode.objective + 1, abs=1e-9)
    assert totals["outcome"] == pytest.approx(totals["token_savings"] + totals["demand"], abs=1e-9)
    assert totals["invalid"] == -engine.states[0].invalid
    assert totals["reload_required"] == -tally.forced_reloads
    own = [r for r in episode.log if not r.reason]
    calls = tally.forced_reloads + tally.failed_searches
    calls += sum(any(record.summarizer_tokens) for record in own)
    assert totals["action_cost"] == pytest.approx(-(0.1 * len(own) + calls) / requests)
    assert totals["key_info"] == pytest.approx(0.0, abs=1e-12)
    assert totals["reload"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("weights", [PRESETS["balanced"], PRESETS["naive"], EVERYTHING])
def test_going_on_from_a_snapshot_earns_the_same(weights):
    task = mixed_task(6, 10)
    engines = [
        Engine(1, FixedSource(task), SimulatorConfig(notice="poor"), reward=weights)
        for _ in range(2)
    ]
    for engine in engines:
        engine.begin(0, task.id, 3)
        engine.observe([0])
    rng = np.random.default_rng(1)
    for _ in range(25):
        engines[0].step([random_legal(engines[0], rng)], [0])
    snapshot, earned = engines[0].snapshot(0), []
    for engine in (engines[0], engines[0], engines[1]):
        engine.restore(0, snapshot)
        engine.observe()
        assert not engine.terms.any()
        rng, terms = np.random.default_rng(2), []
        while not engine.episodes[0].ended:
            engine.step([random_legal(engine, rng)], [0])
            terms.append(engine.terms[0].copy())
        earned.append(terms)
    assert len(earned[0]) > 10
    assert np.abs(np.sum(earned[0], 0)).max() > 0
    np.testing.assert_array_equal(earned[0], earned[1])
    np.testing.assert_array_equal(earned[0], earned[2])
