"""Nothing that a policy is shown depends on the labels of demands that were not faced yet."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, seeds
from tiny_tasks import FixedSource, mixed_task

from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.catalog import load_source
from contextpilot_envs.tasks.synthetic import FAMILIES


def known(task: Task, fact: int, request: int) -> bool:
    return any(task.arrivals[i] <= request for i in task.facts[fact].segments)


def permuted(task: Task, faced: int, rng: np.random.Generator) -> Task:
    """The facts of all demands behind request `faced`, dealt out to them anew."""
    later = [d for d in task.demands if d.request > faced]
    pool = [f for d in later for f in d.facts]
    rng.shuffle(pool)
    demands = [d for d in task.demands if d.request <= faced]
    for demand in later:
        facts = [f for f in pool if known(task, f, demand.request)][: len(demand.facts)]
        pool = [f for f in pool if f not in facts]
        demands.append(replace(demand, facts=tuple(facts), final=bool(rng.random() < 0.5)))
    return replace(task, demands=tuple(demands))


def replaced(task: Task, faced: int, rng: np.random.Generator) -> Task:
    """Later demands gone, other ones in their place, and other values for facts not faced."""
    past = [d for d in task.demands if d.request <= faced]
    touched = {f for d in past for f in d.facts}
    facts = [
        fact if number in touched else KeyFact(f"other-{number}", "clause", (0,), (1,))
        for number, fact in enumerate(task.facts)
    ]
    facts.append(KeyFact("the goal itself", "name", (0,)))
    request = task.requests - 1
    return replace(
        task, facts=tuple(facts), demands=(*past, Demand(request, (len(facts) - 1,), "?"))
    )


def play_both(task: Task, other: Task, faced: int, seed: int, config: SimulatorConfig) -> int:
    """Plays the same actions on both until request `faced` is behind; returns the steps."""
    envs = [
        ContextEditEnv(
            FixedSource(t), simulator=config, context_slots=24, archive_slots=6, render_mode="ansi"
        )
        for t in (task, other)
    ]
    options = {"task_id": task.id, "noise_seed": seed}
    rng, steps = np.random.default_rng(seed), 0
    states = [(*env.reset(options=options), 0.0, False) for env in envs]
    while True:
        (left, li, lr, le), (right, ri, rr, re) = states
        for name in left:
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)
        assert li.keys() == ri.keys()
        for name in li.keys() - {"episode_metrics"}:
            np.testing.assert_array_equal(li[name], ri[name], err_msg=name)
        assert (lr, le) == (rr, re)
        assert envs[0].render() == envs[1].render()
        contexts = [env.engine.contexts[0] for env in envs]
        assert contexts[0].snapshot().columns == contexts[1].snapshot().columns
        assert [e.segment for e in contexts[0].entries] == [e.segment for e in contexts[1].entries]
        if le or contexts[0].request > faced:
            return steps
        legal = np.flatnonzero(li["action_mask"])
        action = 0 if rng.random() < 0.25 else int(rng.choice(legal))
        states = []
        for env in envs:
            observation, reward, ended, _, info = env.step(action)
            states.append((observation, info, reward, ended))
        steps += 1


@given(st.integers(0, 60), st.integers(0, 9), seeds, st.booleans())
@examples(14)
def test_labels_of_later_demands_change_nothing(number, faced, seed, swap):
    task = mixed_task(number, 11)
    change = permuted if swap else replaced
    other = change(task, faced, np.random.default_rng(seed))
    config = SimulatorConfig(budget_fraction=0.8, notice="poor")
    play_both(task, other, faced, seed % 1000, config)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("change", [permuted, replaced])
def test_nor_on_the_generated_families(family, change):
    source = load_source(family, horizon=10)
    config, steps = SimulatorConfig(notice="poor", reload_output_tokens=40), 0
    for task_id in source.ids("validation")[:2]:
        task = source.load(task_id)
        faced = sorted(d.request for d in task.demands)[1]
        other = change(task, faced, np.random.default_rng(faced))
        assert other.demands != task.demands
        steps += play_both(task, other, faced, faced, config)
    assert steps > 10


def test_the_comparison_sees_a_label_that_was_faced():
    """What is not hidden any more does show: the test above can fail."""
    task = mixed_task(4, 11)
    config = SimulatorConfig(budget_fraction=None, notice="poor")
    other = replaced(task, 3, np.random.default_rng(0))
    with pytest.raises(AssertionError):
        _play_often(task, other, config)


def _play_often(task: Task, other: Task, config: SimulatorConfig) -> None:
    for seed in range(20):
        play_both(task, other, task.requests, seed, config)
