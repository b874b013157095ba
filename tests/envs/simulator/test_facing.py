"""What the agent reads, and what it sees and notices where it cannot."""

import pytest
from demand_tasks import LAST, Says, edited, files
from demand_tasks import settings_of as config
from tiny_tasks import episode_at, exchange, stream_task

from contextpilot.core.edit import Drop, Fold, Keep, Placement, Reload, Summarize
from contextpilot.core.segment import Form
from contextpilot_envs.simulator.config import NOTICE_PRESETS
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import need_of
from contextpilot_envs.simulator.noise import uniform
from contextpilot_envs.tasks.base import Demand


def seen(episode: Episode) -> str:
    return need_of(episode.context, episode.prepared.task.facts[0], "").seen


# ---- what is readable ----------------------------------------------------------------------


@pytest.mark.parametrize("edit", [Keep(), Fold((4,)), Drop((4,)), Summarize((4,), 90)])
def test_a_demand_is_met_while_its_source_is_shown(edit):
    episode = edited(edit, settings=config(notice="poor", max_reloads=0))
    outcome = episode.send()
    assert (outcome.silent_misses, outcome.forced_reloads) == (0, 0)
    assert (episode.tally.demands, episode.tally.demands_met) == (1, 1)
    assert (episode.tally.facts, episode.tally.facts_kept) == (1, 1)


@pytest.mark.parametrize(
    "edit", [Fold((2,)), Fold((2,), Form.OUTLINE), Drop((2,)), Summarize((2,), 90, run=True)]
)
def test_it_is_missed_where_the_value_is_shown_nowhere(edit):
    episode = edited(edit, settings=config(max_reloads=0), summarizer=Says("nothing of note"))
    assert episode.send().silent_misses == 1
    assert (episode.tally.facts_kept, episode.tally.demands_met) == (0, 0)


@pytest.mark.parametrize("run", [False, True])
def test_a_summary_that_says_the_value_keeps_it(run):
    episode = edited(
        Summarize((2,), 90, run=run), settings=config(max_reloads=0),
        summarizer=Says("alpha has KEY-0, that is all"),
    )  # fmt: skip
    assert episode.send().silent_misses == 0
    assert episode.tally.facts_kept == 1


def test_an_outline_that_shows_the_value_keeps_it():
    task = files()
    lines = task.segments[2].text.splitlines()
    text = "\n".join(["the code of alpha is KEY-0", *lines[:60], *lines[61:]])
    segments = (*task.segments[:2], exchange(0, text)[1], *task.segments[3:])
    task = stream_task(segments, task.arrivals, LAST + 2, facts=task.facts, demands=task.demands)
    episode = edited(Fold((2,), Form.OUTLINE), task, config(max_reloads=0))
    assert episode.send().silent_misses == 0


def test_a_copy_keeps_the_value():
    task = files(Demand(LAST + 1, (0,), "alpha"))
    episode = edited(Drop((2,)), task, config(max_reloads=0))
    episode.send()
    episode.edit(Reload((2,), Placement.AT_END))
    assert episode.send().silent_misses == 0


# ---- what the agent sees instead -------------------------------------------------------------


def test_a_stub_names_the_source():
    assert seen(edited(Fold((2,)))) == "stub"
    assert seen(edited(Fold((2,), Form.OUTLINE))) == "stub"


@pytest.mark.parametrize("run", [False, True])
def test_a_summary_stands_for_the_source(run):
    episode = edited(Summarize((2,), 90, run=run), summarizer=Says("nothing of note"))
    assert seen(episode) == "summary"


def test_a_summary_of_a_summary_still_stands_for_the_source():
    episode = episode_at(files(), 4, config(), summarizer=Says("nothing of note"))
    episode.edit(Summarize((2,), 90, run=True))
    episode.send()
    first = episode.context.native
    episode.edit(Summarize((first, 4), 90, run=True))
    episode.send()
    assert episode.context.form(first) == Form.ABSENT
    assert seen(episode) == "summary"
    assert episode.send().forced_reloads == 1


def test_a_summary_that_was_dropped_stands_for_nothing():
    episode = episode_at(files(), 4, config(), summarizer=Says("nothing of note"))
    episode.edit(Summarize((2,), 90, run=True))
    episode.send()
    episode.edit(Drop((episode.context.native,)))
    episode.send()
    assert seen(episode) == "nothing"


def test_a_drop_leaves_nothing():
    assert seen(edited(Drop((2,)))) == "nothing"


def test_a_stale_copy_misleads_whatever_else_is_there():
    assert seen(edited(Fold((2,)), files(stale=(4,)))) == "stale"
    assert seen(edited([Fold((2,)), Fold((4,))], files(stale=(4,)))) == "stub"


@pytest.mark.parametrize("preset", ["perfect", "good", "poor"])
@pytest.mark.parametrize(
    ("what", "edit", "stale"),
    [
        ("stub", Fold((2,)), ()),
        ("summary", Summarize((2,), 90), ()),
        ("nothing", Drop((2,)), ()),
        ("stale", Fold((2,)), (4,)),
    ],
)
def test_it_is_noticed_as_often_as_the_preset_says(preset, what, edit, stale):
    """The draw itself is known, so every single outcome is."""
    task, chance = files(stale=stale), NOTICE_PRESETS[preset].of(what)
    root = edited(edit, task, config(notice=preset), summarizer=Says("nothing of note"))
    noticed = 0
    for seed in range(40):
        outcome = root.fork(noise_seed=seed).send()
        expected = uniform(seed, "stream", LAST, "fact:0") < chance
        assert (outcome.forced_reloads, outcome.silent_misses) == (expected, not expected)
        noticed += expected
    assert chance in (0.0, 1.0) or 0 < noticed < 40


def test_the_good_preset_is_the_one_of_the_design():
    assert NOTICE_PRESETS["good"].of("stub") == 0.95
    assert NOTICE_PRESETS["good"].of("summary") == 0.7
    assert NOTICE_PRESETS["good"].of("nothing") == 0.5
    assert NOTICE_PRESETS["good"].of("stale") == 0.2
    for what in ("stub", "summary", "nothing", "stale"):
        good, poor = (NOTICE_PRESETS[name].of(what) for name in ("good", "poor"))
        assert poor == pytest.approx(good - 0.2)


def test_luck_is_common_to_all_policies():
    """Folded early or late, alone or with others: what is noticed depends on the seed alone."""
    edits = ([Fold((2,))], [Fold((2,)), Drop((6,))], [Fold((4, 2), Form.OUTLINE)])
    roots = [edited(one, settings=config(notice="poor")) for one in edits]
    early = episode_at(files(), 3, config(notice="poor"))
    early.edit(Fold((2,)))
    while early.context.request < LAST:
        early.send()
    for seed in range(25):
        outcomes = {(root.fork(noise_seed=seed).send().silent_misses) for root in (*roots, early)}
        assert len(outcomes) == 1


def test_luck_differs_by_request_fact_task_and_seed():
    draws = {
        uniform(seed, task, request, what)
        for seed in (0, 1)
        for task in ("a", "b")
        for request in (0, 1)
        for what in ("fact:0", "fact:1")
    }
    assert len(draws) == 16
    assert all(0 <= draw < 1 for draw in draws)
    assert uniform(3, "t", 4, "fact:5") == uniform(3, "t", 4, "fact:5")
