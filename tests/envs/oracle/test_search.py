"""The oracle against every possibility of tiny tasks, and against itself."""

import numpy as np
import pytest
from brute_force import best_objective, tiny_task
from strategies import played
from tiny_tasks import chain_task, engine_of, mixed_task, prepared

from contextpilot.core.edit import Op
from contextpilot_envs.oracle.bound import lower_bound
from contextpilot_envs.oracle.plan import FORMS, PlanModel
from contextpilot_envs.oracle.player import oracle_score, play
from contextpilot_envs.oracle.search import best_plans
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.catalog import load_source
from contextpilot_envs.tasks.synthetic import FAMILIES

PRICES = ("default", "openai", "uncached", "input_only")
NOTICES = ("perfect", "good", "poor")


def drawn(number: int, *, window: bool = False):
    """A tiny task under prices, notice preset and noise that its number determines."""
    rng = np.random.default_rng(number)
    task = tiny_task(rng, 5 if number % 13 == 0 else 4)
    config = SimulatorConfig(
        budget_fraction=float(rng.choice([0.5, 0.7, 0.9])) if window else None,
        prices=PRICES[number % 4], notice=NOTICES[number % 3],
        reload_output_tokens=int(rng.choice([40, 600])),
    )  # fmt: skip
    return prepared(task, config), int(rng.integers(100))


@pytest.mark.parametrize("number", range(26))
def test_it_equals_exhaustive_search_on_tiny_tasks(number):
    """Better is possible: the oracle also reloads."""
    task, seed = drawn(number)
    score = oracle_score(task, seed)
    episode = play(task, score.plan, seed, mended=score.mended)
    best = best_objective(task, seed)
    assert episode.objective >= best - 1e-9
    if not any(record.op == Op.RELOAD for record in episode.log):
        assert episode.objective == pytest.approx(best, abs=1e-9)
    if not episode.tally.silent_misses:
        assert lower_bound(task) <= episode.tally.bill + 1e-6


@pytest.mark.parametrize("number", range(100, 106))
def test_nor_does_it_lose_under_a_window(number):
    task, seed = drawn(number, window=True)
    score = oracle_score(task, seed)
    episode = play(task, score.plan, seed, mended=score.mended)
    assert episode.objective >= best_objective(task, seed, unread=True) - 1e-9


@pytest.fixture(scope="module")
def models() -> list[PlanModel]:
    """A short task of every family, in turn without and under a window."""
    found = []
    for number, family in enumerate(FAMILIES):
        source = load_source(family, horizon=8)
        config = SimulatorConfig(budget_fraction=(None, 0.6)[number % 2])
        task = source.load(source.ids("validation")[number])
        found.append(PlanModel(prepared(task, config)))
    return found


@pytest.fixture(scope="module")
def plans(models) -> list:
    return [best_plans(model)[0] for model in models]


def test_a_planned_bill_is_the_played_bill(models, plans):
    copies = 0
    for model, plan in zip(models, plans, strict=True):
        episode = play(model.prepared, plan, 0, mended=False)
        assert episode.tally.silent_misses == episode.tally.forced_reloads == 0
        copies += bool((plan.copy < model.horizon).any())
        assert episode.tally.bill == pytest.approx(model.bill(plan), rel=1e-6)
    assert copies > 0


def test_a_random_plan_s_bill_is_its_played_bill(models):
    """Plans that nobody would make, of legal edits in any form."""
    rng = np.random.default_rng(0)
    for model in models[::2]:  # no window: nothing is refused
        for _ in range(6):
            plan = model.empty()
            for i in range(model.count):
                form = int(rng.integers(len(FORMS)))
                if model.ready[form, i] < model.horizon and rng.random() < 0.5:
                    plan.leave[i] = rng.integers(model.ready[form, i], model.horizon)
                    plan.form[i] = form
            for leader in np.unique(model.leaders):
                if model.drop_ready[leader] < model.horizon and rng.random() < 0.4:
                    group = model.leaders == leader
                    plan.drop[group] = rng.integers(model.drop_ready[leader], model.horizon)
            episode = play(model.prepared, plan, 0, mended=False)
            assert episode.tally.bill == pytest.approx(model.bill(plan), rel=1e-9)


def test_doing_nothing_is_a_plan_and_costs_what_raw_costs(models):
    for model in models[::2]:
        assert model.bill(model.empty()) == pytest.approx(model.prepared.raw.total)


def test_the_bound_is_below_and_not_far_below(models, plans):
    for model, plan in zip(models, plans, strict=True):
        bound = lower_bound(model.prepared)
        assert 0.3 * model.bill(plan) < bound <= model.bill(plan) + 1e-6


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_below_every_random_policy_that_misses_nothing(seed):
    config = SimulatorConfig(
        budget_fraction=None, prices=PRICES[seed % 4], notice="perfect", reload_output_tokens=0
    )
    engine = engine_of(mixed_task(seed, 8), config=config)
    for _ in played(engine, seed, 500, keep_share=0.4):
        pass
    episode = engine.episodes[0]
    assert episode.ended
    if not episode.tally.silent_misses:
        assert lower_bound(episode.prepared) <= episode.tally.bill


def test_a_fact_that_two_segments_state_is_kept_where_it_is_cheaper():
    """The designated holder is the smaller one, yet dropping it and keeping the first is best."""
    task, seed = drawn(9)
    model = PlanModel(task)
    pairs = {pair for pairs in model.needs.may for pair in pairs}
    assert all(any(pair in of for of in model.needs.of) for pair in pairs)
    assert best_objective(task, seed) <= oracle_objective(task, seed) + 1e-9


def oracle_objective(task, seed: int) -> float:
    score = oracle_score(task, seed)
    return play(task, score.plan, seed, mended=score.mended).objective


def test_plans_are_found_once_and_depend_on_nothing_else():
    task = prepared(chain_task(6))
    first, again = (best_plans(PlanModel(task))[0] for _ in range(2))
    assert all(np.array_equal(getattr(first, n), getattr(again, n)) for n in first.__slots__)
    assert oracle_score(task, 3).plan is oracle_score(task, 3).plan


def test_clearing_rules_can_be_bounded_by_folds_of_results_only():
    task = prepared(chain_task(8))
    for plan in best_plans(PlanModel(task, results_only=True)):
        assert (plan.drop == 8).all()
        assert (plan.leave[1::2] == 8).all()  # turns
