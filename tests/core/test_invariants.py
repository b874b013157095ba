"""Every named invariant: a case that satisfies it and one that violates it."""

from types import SimpleNamespace

import numpy as np
import pytest
from tiny_tasks import (
    NO_LIMIT,
    chain_task,
    document_segment,
    engine_of,
    episode_at,
    exchange,
    goal_segment,
    mixed_task,
    random_legal,
    stream_task,
    user_segment,
    words,
)

from contextpilot.core import invariants
from contextpilot.core.edit import Drop, Expire, Fold, Placement, Reload, Summarize
from contextpilot.core.invariants import (
    COOLDOWN_REQUESTS,
    FACT_COLUMNS,
    LEGAL,
    Facts,
    SegmentFacts,
    is_legal,
    legal_facts,
    violated,
)
from contextpilot.core.segment import Form, Kind
from contextpilot_envs.simulator.config import SimulatorConfig

SIMPLE = {
    # name: (facts that satisfy it, facts that violate it)
    "arrived": ({"rank": 0}, {"rank": -1}),
    "visible": ({"form": Form.STUB}, {"form": Form.ABSENT}),
    "whole": ({"form": Form.FULL}, {"form": Form.OUTLINE}),
    "hidden": ({"form": Form.ABSENT}, {"form": Form.FULL}),
    "not_pinned": ({"pinned": 0}, {"pinned": 1}),
    "read": (
        {"sent": 1, "overflows": 0, "kind": Kind.RESULT, "exchange": 9, "full": 4},
        {"sent": 0, "overflows": 0, "kind": Kind.RESULT, "exchange": 9, "full": 4},
    ),
    "settled": ({"settled": 1}, {"settled": 0}),
    "reasoning_untouched": (
        {"reasoning": 1, "rank": 3, "latest_user_rank": 4},
        {"reasoning": 1, "rank": 5, "latest_user_rank": 4},
    ),
    "exchange_untouched": (
        {"locked": 1, "rank": 3, "latest_user_rank": 4},
        {"locked": 1, "rank": 5, "latest_user_rank": 4},
    ),
    "not_just_reloaded": ({"request": 7, "reloaded": 5}, {"request": 6, "reloaded": 5}),
    "not_just_hidden": ({"request": 7, "edited": 5}, {"request": 6, "edited": 5}),
    "shrinks_by_fold": ({"foldable": 1}, {"foldable": 0}),
    "shrinks_by_outline": ({"full": 160, "kind": Kind.RESULT}, {"full": 159, "kind": Kind.RESULT}),
    "worth_a_summary": ({"size": 80}, {"size": 79}),
    "can_be_rewritten": ({"kind": Kind.RESULT}, {"kind": Kind.TURN}),
    "due": ({"mark": 3, "request": 3}, {"mark": 3, "request": 2}),
    "unmarked": ({"mark": -1}, {"mark": 0}),
    "standalone": ({"kind": Kind.NOTE}, {"kind": Kind.RESULT}),
    "not_covered": ({"covered": -1}, {"covered": 0}),
    "fits": ({"full": 10, "room": 10}, {"full": 11, "room": 10}),
    "exchange_fits": (
        {"form": Form.ABSENT, "exchange": 10, "room": 10},
        {"form": Form.ABSENT, "exchange": 11, "room": 10},
    ),
    "has_original": ({"kind": Kind.RESULT}, {"kind": Kind.COPY}),
}
MORE_VIOLATIONS = [
    ("read", {"sent": 0, "overflows": 0, "kind": Kind.TURN, "exchange": 9, "full": 4}),
    ("due", {"mark": -1, "request": 3}),
    ("shrinks_by_outline", {"full": 900, "kind": Kind.TURN}),
    ("can_be_rewritten", {"kind": Kind.SUMMARY}),
    ("can_be_rewritten", {"kind": Kind.IMAGE}),
    ("has_original", {"kind": Kind.SUMMARY}),
    ("standalone", {"kind": Kind.TEXT}),
    ("standalone", {"kind": Kind.SUMMARY}),
]
MORE_HOLDS = [
    ("read", {"sent": 0, "overflows": 1, "kind": Kind.RESULT, "exchange": 9, "full": 4}),
    ("read", {"sent": 0, "overflows": 0, "kind": Kind.TURN, "exchange": 4, "full": 4}),
    ("reasoning_untouched", {"reasoning": 0, "rank": 5, "latest_user_rank": 4}),
    ("exchange_untouched", {"locked": 0, "rank": 5, "latest_user_rank": 4}),
    ("standalone", {"kind": Kind.COPY}),
    ("standalone", {"kind": Kind.DOCUMENT}),
    ("exchange_fits", {"form": Form.STUB, "exchange": 11, "room": 10}),
]


def holds(name: str, facts: dict[str, int]) -> tuple[bool, bool]:
    """What an invariant says of one segment, and of an array of one."""
    check = getattr(invariants, name)
    arrays = {key: np.array([value], np.int16) for key, value in facts.items()}
    return bool(check(SimpleNamespace(**facts))), bool(check(SimpleNamespace(**arrays))[0])


def test_every_invariant_is_tested_here():
    assert set(SIMPLE) == {f.__name__ for rule in LEGAL.values() for f in rule}


@pytest.mark.parametrize("name", SIMPLE)
def test_an_invariant_holds_and_is_violated(name):
    good, bad = SIMPLE[name]
    assert holds(name, good) == (True, True)
    assert holds(name, bad) == (False, False)


@pytest.mark.parametrize(("name", "facts"), MORE_VIOLATIONS)
def test_further_violations(name, facts):
    assert holds(name, facts) == (False, False)


@pytest.mark.parametrize(("name", "facts"), MORE_HOLDS)
def test_further_cases_that_hold(name, facts):
    assert holds(name, facts) == (True, True)


def test_the_cooldown_is_two_requests():
    assert COOLDOWN_REQUESTS == 2


def first_violation(request: int, rule: str, index: int, **task) -> str:
    return violated(rule, episode_at(chain_task(8, **task), request).context, index)


def test_violations_are_named_on_a_real_context():
    assert first_violation(2, "fold", 0) == "not_pinned"
    assert first_violation(2, "fold", 6) == "arrived"
    assert first_violation(2, "fold", 4) == "read"
    assert first_violation(3, "fold", 4) == ""
    assert first_violation(3, "fold", 3) == "shrinks_by_fold"
    assert first_violation(3, "reload_at_end", 4) == "hidden"
    assert first_violation(3, "reorder", 4) == "standalone"
    assert first_violation(3, "flush_fold", 4) == "due"
    assert first_violation(3, "summarize", 3) == "worth_a_summary"


def test_a_mark_is_due_at_its_request_and_not_before():
    episode = episode_at(chain_task(8), 3)
    episode.edit(Expire((4,), 2))
    seen = []
    for _ in range(4):
        seen.append(violated("flush_fold", episode.context, 4))
        episode.send()
    assert seen == ["due", "due", "", ""]
    assert violated("expire", episode.context, 4) == "unmarked"


def test_hysteresis_holds_for_two_requests_each_way():
    episode = episode_at(chain_task(10), 3)
    episode.edit(Fold((4,)))
    seen = []
    for _ in range(3):
        seen.append(violated("reload_in_place", episode.context, 4))
        episode.send()
    assert seen == ["not_just_hidden", "not_just_hidden", ""]
    episode.edit(Reload((4,), Placement.IN_PLACE))
    seen = []
    for _ in range(3):
        seen.append(violated("drop", episode.context, 3))
        episode.send()
    assert seen == ["not_just_reloaded", "not_just_reloaded", ""]


def test_a_summary_covers_what_it_stands_for():
    episode = episode_at(chain_task(10), 4)
    episode.edit(Summarize((2, 4), 200, run=True))
    for _ in range(2):
        episode.send()
    assert violated("reload_in_place", episode.context, 2) == "not_covered"
    assert violated("reload_at_end", episode.context, 2) == ""
    summary = episode.context.native
    assert violated("reorder", episode.context, summary) == "standalone"
    assert violated("drop", episode.context, summary) == ""


def test_reasoning_stays_until_the_user_speaks_again():
    segments = [goal_segment(), *exchange(0, words(90), argument='{"a": "' + "b" * 200 + '"}',
                                          reasoning=True), user_segment("u1", "go on")]  # fmt: skip
    episode = episode_at(stream_task(segments, [0, 1, 1, 3], 6), 2)
    context = episode.context
    assert violated("fold", context, 1) == "reasoning_untouched"
    assert violated("drop", context, 1) == violated("drop", context, 2) == "exchange_untouched"
    assert violated("fold", context, 2) == ""  # the result itself has no reasoning
    episode.send()
    assert [violated("drop", context, i) for i in (1, 2)] == ["", ""]
    assert violated("fold", context, 1) == ""


def test_only_a_request_that_would_not_fit_lifts_unread():
    task = stream_task(
        [goal_segment(), document_segment("d1", words(100)), document_segment("d2", words(100))],
        [0, 1, 2], 4,
    )  # fmt: skip
    sizes = [e.full_tokens for e in episode_at(task).context.entries]
    for slack, name in ((0, "read"), (-1, "")):
        window = sum(sizes) + slack
        episode = episode_at(task, 2, SimulatorConfig(max_context_tokens=window))
        assert episode.context.overflows == (slack < 0)
        assert violated("drop", episode.context, 2) == name


def test_a_reload_must_fit():
    task = chain_task(8)
    full = episode_at(task).context.entries[2].full_tokens
    for slack, name in ((0, ""), (-1, "fits")):
        episode = episode_at(task, 3)
        episode.edit(Drop((2,)))
        for _ in range(2):
            episode.send()
        window = episode.context.used_tokens + full + slack
        object.__setattr__(episode.context.budget, "max_context_tokens", window)
        assert violated("reload_at_end", episode.context, 2) == name


def test_in_its_place_a_whole_exchange_must_fit():
    task = chain_task(8)
    entries = episode_at(task).context.entries
    both = entries[1].full_tokens + entries[2].full_tokens
    for slack, name in ((0, ""), (-1, "exchange_fits")):
        episode = episode_at(task, 3)
        episode.edit(Drop((2,)))
        for _ in range(2):
            episode.send()
        window = episode.context.used_tokens + both + slack
        object.__setattr__(episode.context.budget, "max_context_tokens", window)
        assert [violated("reload_in_place", episode.context, i) for i in (1, 2)] == [name, name]
        assert violated("reload_at_end", episode.context, 2) == ""


def test_what_a_dropped_summary_stood_for_may_return_to_its_place():
    episode = episode_at(chain_task(12), 4)
    episode.edit(Summarize((2,), 200, run=True))
    episode.send()
    first = episode.context.native
    episode.edit(Summarize((first, 4), 200, run=True))
    episode.send()
    episode.send()
    assert violated("reload_in_place", episode.context, 2) == "not_covered"
    episode.edit(Drop((first + 1,)))
    assert {violated("reload_in_place", episode.context, i) for i in range(1, 5)} == {""}
    assert violated("reload_in_place", episode.context, first) == "has_original"


@pytest.mark.parametrize("seed", range(4))
def test_the_mask_of_many_equals_the_check_of_each(seed):
    """One function of arrays and one of numbers: they agree on every segment and rule."""
    rng = np.random.default_rng(seed)
    engine = engine_of(mixed_task(seed, 10), config=SimulatorConfig(budget_fraction=0.7))
    episode = engine.episodes[0]
    compared = 0
    while not episode.ended:
        context = episode.context
        one = SegmentFacts(context, 0)
        count = len(context.entries)
        facts = Facts(
            **{name: np.array(getattr(context.columns, name)[:count]) for name in FACT_COLUMNS},
            request=one.request, overflows=one.overflows, latest_user_rank=one.latest_user_rank,
            room=one.room,
        )  # fmt: skip
        for rule in LEGAL:
            many = legal_facts(rule, facts)
            assert many.tolist() == [is_legal(rule, context, i) for i in range(count)], rule
            compared += int(many.sum())
        engine.step([random_legal(engine, rng, 0.3)], [0])
    assert compared > 100


def test_the_default_budget_lets_nothing_unread_go():
    context = episode_at(chain_task(5), 2, NO_LIMIT).context
    assert {violated("drop", context, i) for i in context.unread} == {"read"}
