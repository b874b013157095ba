"""The optima that learning is measured against: that they are optima, and what they need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from learning.optimum import Relaxation, edits, optimum
from learning.tiny_environments import ENVIRONMENTS, delayed_miss, marking, reload_required
from tiny_tasks import prepared

from contextpilot_envs.oracle.player import oracle_score, play
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.prepared import PreparedTask

SEEDS = range(6)
CLEARLY_LESS = 0.9

environments = pytest.mark.parametrize("make", ENVIRONMENTS, ids=lambda make: make.__name__)
Rule = Callable[[Episode, list[str]], str]


def returned(task: PreparedTask, noise_seed: int, rule: Rule) -> float:
    """The return of a scripted rule, which chooses among the names of what is legal."""
    episode, step = Episode(task, noise_seed), 0
    while not episode.ended:
        allowed = dict(edits(episode, ("fold", "drop", "expire", "flush", "reload")))
        edit = allowed[rule(episode, list(allowed))]
        if edit is not None:
            episode.commit(edit)
        step += 1
        if edit is None or step == task.config.max_edits:
            episode.send()
            step = 0
    return episode.objective + 1.0


def first(*prefixes: str) -> Rule:
    """Makes the first edit of the first operation that is legal."""

    def rule(episode: Episode, names: list[str]) -> str:
        return next((name for p in prefixes for name in names if name.startswith(p)), "keep")

    return rule


def needed(task: PreparedTask) -> set[int]:
    return {i for fact in task.task.facts for i in fact.segments}


def sparing(op: str) -> Rule:
    """Hides with one operation whatever will never be demanded."""

    def rule(episode: Episode, names: list[str]) -> str:
        kept = {f"{op} {j}" for i in needed(episode.prepared) for j in episode.context.group(i)}
        return next((n for n in names if n.startswith(op) and n not in kept), "keep")

    return rule


def marks_then_folds(episode: Episode, names: list[str]) -> str:
    """Marks at the first two requests and folds at the third."""
    return sparing("expire" if episode.context.request < 2 else "fold")(episode, names)


SCRIPTED: dict[str, Rule] = {
    "keep": lambda episode, names: "keep",
    "fold all": first("fold"),
    "drop all": first("drop"),
    "reload, then drop": first("reload", "drop"),
    "fold, sparing what is needed": sparing("fold"),
    "drop, sparing what is needed": sparing("drop"),
    "mark, then fold": marks_then_folds,
}


@environments
def test_the_optima_are_those_of_an_exact_search(make):
    environment = make()
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        found = optimum(prepared(task, environment.simulator), 0)
        assert found.value == pytest.approx(best, abs=1e-6)
        assert best > 0.25


@environments
def test_no_script_no_oracle_and_no_chance_does_better(make):
    environment, rng = make(), np.random.default_rng(0)
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        ready = prepared(task, environment.simulator)
        for seed in SEEDS:
            rules = {**SCRIPTED, "chance": lambda _, names: str(rng.choice(names))}
            for name, rule in rules.items():
                assert returned(ready, seed, rule) <= best + 1e-6, name
        score = oracle_score(ready, 0)
        assert play(ready, score.plan, 0, mended=score.mended).objective + 1.0 <= best + 1e-6


@pytest.mark.parametrize("make", [delayed_miss, reload_required], ids=lambda make: make.__name__)
def test_the_optimum_does_not_depend_on_luck(make):
    environment = make()
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        ready = prepared(task, environment.simulator)
        for seed in (1, 2, 3):
            assert optimum(ready, seed).value == pytest.approx(best, abs=1e-6)


def test_marking_is_played_without_luck():
    assert {marking().simulator.notice_table.of(s) for s in ("stub", "nothing")} == {1.0}


@environments
def test_the_bound_of_the_search_is_never_undercut(make):
    environment, rng = make(), np.random.default_rng(1)
    task = prepared(environment.tasks[0], environment.simulator)
    relaxation = Relaxation(task)
    for seed in range(40):
        bounds: list[float] = []

        def chance(episode: Episode, names: list[str], bounds: list[float] = bounds) -> str:
            bounds.append(relaxation.bound(episode))
            return "keep" if rng.random() < 0.3 else str(rng.choice(names))

        total = returned(task, seed, chance)
        assert total <= min(bounds) + 1e-9


def test_hiding_everything_as_soon_as_it_was_read_is_not_enough():
    environment = delayed_miss()
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        ready = prepared(task, environment.simulator)
        for op in ("fold", "drop"):
            assert np.mean([returned(ready, seed, first(op)) for seed in SEEDS]) < 0.6 * best


def test_what_is_needed_is_demanded_ten_requests_later():
    for task in delayed_miss().tasks:
        (demand,), (fact,) = task.demands, task.facts
        assert demand.request - task.arrivals[fact.segments[0]] >= 10


def test_without_marks_the_best_policy_earns_clearly_less():
    environment = marking()
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        ready = prepared(task, environment.simulator)
        unmarked = optimum(ready, 0, ("keep", "fold", "drop", "reload"))
        assert unmarked.value < CLEARLY_LESS * best


def test_the_optimum_marks_at_several_requests_and_breaks_the_prefix_once():
    environment = marking()
    found = optimum(prepared(environment.tasks[0], environment.simulator), 0)
    requests = {op: set() for op in ("expire", "drop", "flush", "fold", "reload")}
    for edit in found.edits:
        request, name = edit.split(": ")
        if name != "keep":
            requests[name.split()[0]].add(int(request))
    assert len(requests["expire"]) >= 2
    assert len(requests["drop"] | requests["flush"] | requests["fold"]) == 1
    assert not requests["reload"]


def test_without_reloads_no_policy_comes_near_whatever_the_agent_notices():
    environment = reload_required()
    for task, best in zip(environment.tasks, environment.optima, strict=True):
        ready = prepared(task, environment.simulator)
        bound = Relaxation(ready, reloads=False).bound(Episode(ready, 0))
        assert bound < CLEARLY_LESS * best


def test_keeping_everything_overflows_where_a_reload_is_required():
    environment = reload_required()
    for task in environment.tasks:
        ready = prepared(task, environment.simulator)
        assert returned(ready, 0, SCRIPTED["keep"]) < -1.0
