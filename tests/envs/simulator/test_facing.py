"""What happens when the agent needs a fact: it reads it, fetches it, or acts wrong."""

import pytest
from tiny_tasks import (
    document_segment,
    episode_at,
    exchange,
    goal_segment,
    stream_task,
    words,
)

from contextpilot.core.edit import Drop, Fold, Keep, Placement, Reload, Summarize
from contextpilot.core.segment import Form
from contextpilot.errors import ConfigurationError
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.simulator.config import NOTICE_PRESETS, SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import need_of
from contextpilot_envs.simulator.noise import uniform
from contextpilot_envs.simulator.readers import unread_probability
from contextpilot_envs.tasks.base import Demand, KeyFact

LAST = 6
NAMES = ("alpha", "bravo", "delta", "gamma")


def config(**settings) -> SimulatorConfig:
    return SimulatorConfig(**{"budget_fraction": None, "notice": "perfect", **settings})


def files(*demands: Demand, stale: tuple[int, ...] = (), queries: tuple = (), success="answer"):
    """Four exchanges, read one a request; exchange n says what the code of NAMES[n] is."""
    segments, arrivals, facts = [goal_segment()], [0], []
    for n, name in enumerate(NAMES):
        text = f"{words(60, 1000 * n)}\nthe code of {name} is KEY-{n}\n{words(60, 1000 * n + 500)}"
        segments += exchange(n, text, argument=f'{{"path": "{name}"}}')
        arrivals += [n + 1, n + 1]
        facts.append(KeyFact(f"KEY-{n}", "code", (2 + 2 * n,), stale))
    if not demands:
        demands = (Demand(LAST, (0,), "the code of alpha", final=True),)
    return stream_task(
        segments, arrivals, LAST + 2, facts=facts, demands=demands, success=success
    )


class Says:
    """A summarizer with one answer."""

    name = "says"

    def __init__(self, text: str) -> None:
        self.text = text

    def summarize(self, request) -> str:
        return self.text


def edited(edit, task=None, settings=None, *, noise_seed: int = 0, summarizer=None) -> Episode:
    """An episode that has made an edit before its fifth request, at the demand's request."""
    episode = episode_at(
        task or files(), 5, settings or config(), noise_seed=noise_seed, summarizer=summarizer
    )
    for one in edit if isinstance(edit, list) else [edit]:
        episode.edit(one)
    episode.send()
    assert episode.context.request == LAST
    return episode


def seen(episode: Episode) -> str:
    return need_of(episode.prepared, episode.context, episode.prepared.task.facts[0], "").seen


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
        outcomes = {
            (root.fork(noise_seed=seed).send().silent_misses) for root in (*roots, early)
        }
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


# ---- fetching ----------------------------------------------------------------------------------


def test_at_most_two_reloads_a_request():
    task = files(Demand(LAST, (0, 1, 2, 3), "codes", final=True))
    episode = edited(Fold((2, 4, 6, 8)), task)
    outcome = episode.send()
    assert (outcome.forced_reloads, outcome.silent_misses) == (2, 2)
    assert (episode.tally.demands, episode.tally.demands_met) == (1, 0)
    assert [m["seen"] for m in episode.tally.removed] == ["stub", "stub"]


def test_the_next_request_has_its_own_two_reloads():
    task = files(Demand(LAST, (0, 1), "codes"), Demand(LAST + 1, (2, 3), "codes"))
    episode = edited(Fold((2, 4, 6, 8)), task)
    assert [episode.send().forced_reloads for _ in range(2)] == [2, 2]
    assert episode.tally.silent_misses == 0


def test_what_was_fetched_serves_the_facts_behind_it():
    task = files(Demand(LAST, (0,), "alpha"), Demand(LAST, (0,), "alpha again"))
    episode = edited(Fold((2,)), task)
    assert episode.send().forced_reloads == 1
    assert episode.tally.demands_met == 2


def test_noticed_but_not_fitting_is_a_silent_miss_without_a_request():
    episode = edited(Fold((2,)))
    episode.context.budget = episode.context.budget.__class__(episode.context.used_tokens)
    outcome = episode.send()
    assert (outcome.forced_reloads, outcome.silent_misses) == (0, 1)
    assert outcome.bill == pytest.approx(0.1 * episode.context.used_tokens)


def test_a_search_that_finds_something_else_is_paid_for_and_a_miss():
    task = files(Demand(LAST, (0,), "the code of delta", final=True))
    episode = edited([Drop((2,)), Drop((6,))], task)
    tokens = episode.context.used_tokens
    outcome = episode.send()
    assert (outcome.forced_reloads, outcome.silent_misses) == (0, 1)
    assert episode.tally.failed_searches == 1
    assert outcome.bill == pytest.approx(0.1 * tokens + 5 * 600 + 0.1 * tokens)
    assert len(episode.context.entries) == episode.context.native


def test_a_search_that_finds_it_is_a_reload():
    episode = edited([Drop((2,)), Drop((6,))])
    assert episode.send().forced_reloads == 1
    assert episode.tally.failed_searches == 0


def test_a_summary_narrows_the_search_to_what_it_names():
    task = files(Demand(LAST, (0,), "the code of delta", final=True))
    episode = edited(
        [Summarize((2,), 90, run=True), Drop((6,))], task, summarizer=Says("nothing of note")
    )
    assert episode.send().forced_reloads == 1  # delta is not among what the summary stands for


def test_two_facts_of_one_lost_source_are_one_miss():
    task = files(Demand(LAST, (0, 1), "codes", final=True))
    facts = (task.facts[0], KeyFact("w00007", "code", (2,)), *task.facts[2:])
    task = stream_task(task.segments, task.arrivals, LAST + 2, facts=facts, demands=task.demands)
    episode = edited(Fold((2,)), task, config(max_reloads=0))
    assert episode.send().silent_misses == 1
    assert (episode.tally.facts, episode.tally.facts_kept) == (2, 0)


def test_a_miss_names_the_edit_that_hid_the_fact():
    task = files(success="no_silent_miss")
    episode = edited(Drop((2,)), task, config(max_reloads=0))
    episode.send()
    assert episode.tally.removed == [
        {
            "request": LAST, "fact_kind": "code", "removed_by": "drop", "removed_at": 5,
            "seen": "nothing",
        }
    ]  # fmt: skip


# ---- success -----------------------------------------------------------------------------------


def finished(task, edit, **settings) -> Episode:
    episode = edited(edit, task, config(max_reloads=0, **settings))
    while not episode.ended:
        episode.send()
    return episode


@pytest.mark.parametrize(
    ("final", "success", "succeeds"),
    [
        (True, "answer", False),
        (False, "answer", True),
        (True, "no_silent_miss", False),
        (False, "no_silent_miss", False),
    ],
)
def test_what_a_miss_means_for_the_task(final, success, succeeds):
    task = files(Demand(LAST, (0,), "x", final=final), Demand(LAST, (1,), "y"), success=success)
    episode = finished(task, Fold((2,)))
    assert episode.succeeded == (not episode.failed) == succeeds
    metrics = episode_metrics(episode)
    assert metrics["demand_success"] == 0.5
    assert metrics["task_success"] == float(succeeds)
    assert metrics["key_facts_kept"] == 0.5


def test_a_task_without_demands_succeeds():
    task = files(Demand(LAST, (), "nothing"))
    assert finished(task, Fold((2,))).succeeded


def test_a_demand_before_its_fact_arrived_is_refused():
    with pytest.raises(ConfigurationError, match="demands a fact of kind 'code' at request 0"):
        episode_at(files(Demand(0, (0,), "too early")))


def test_edits_are_counted_without_rejected_ones_and_forced_reloads():
    episode = edited(
        [Keep(), Fold((4,)), Summarize((8,), 90), Fold((2,))], summarizer=Says(words(900))
    )
    episode.send()
    assert episode.tally.forced_reloads == 1
    assert episode.edits_by_op() == {"fold": 2}


# ---- unread results under overflow -------------------------------------------------------------


def crowded(notice: str):
    """Request 2 would not fit: its own result may be edited unread."""
    segments, arrivals = [goal_segment()], [0]
    for n in range(2):
        segments += exchange(n, words(150, 1000 * n))
        arrivals += [n + 1, n + 1]
    segments.append(document_segment("d", "later"))
    task = stream_task(segments, [*arrivals, 3], 5)
    sizes = [e.full_tokens for e in episode_at(task).context.entries]
    settings = config(notice=notice, max_context_tokens=sum(sizes[:5]) - 1)
    return episode_at(task, 2, settings), sizes


def test_an_unread_result_that_was_hidden_is_a_demand_of_its_own():
    episode, _ = crowded("poor")
    seed = next(s for s in range(99) if uniform(s, "stream", 2, "whole:4") >= 0.75)
    episode.noise_seed = seed
    assert episode.context.overflows
    episode.edit(Fold((4,)))
    outcome = episode.send()
    assert (outcome.silent_misses, outcome.forced_reloads) == (1, 0)
    assert (episode.tally.demands, episode.tally.demands_met) == (1, 0)
    assert episode.tally.removed[0]["fact_kind"] == "whole"


def test_an_unread_result_is_fetched_where_that_is_noticed_and_fits():
    episode, sizes = crowded("perfect")
    episode.edit(Fold((4,)))
    episode.edit(Drop((2,)))
    tokens = episode.context.used_tokens
    outcome = episode.send()
    assert (outcome.silent_misses, outcome.forced_reloads) == (0, 1)
    assert episode.tally.demands == 0
    assert episode.context.used_tokens == tokens + sizes[4] + sizes[5]


# ---- readers -----------------------------------------------------------------------------------


def test_the_ideal_reader_overlooks_nothing():
    assert unread_probability("ideal", episode_at(files(), 5).context, 2) == 0.0


def test_the_rot_reader_follows_its_formula():
    context = episode_at(files(), 5).context
    sizes = [context.columns.size[i] for i in range(9)]
    total = sum(sizes)
    for index in (1, 2, 6, 8):
        x = (sum(sizes[:index]) + sizes[index] / 2) / total
        share = 1 - sizes[index] / total
        expected = share * (0.149 + 0.193 * 4 * x * (1 - x) + 0.150 * x)
        assert unread_probability("rot", context, index) == pytest.approx(expected, abs=1e-12)


def test_the_rot_reader_is_worst_in_the_middle_and_perfect_on_one_document():
    context = episode_at(files(), 5).context
    first, middle, last = (unread_probability("rot", context, i) for i in (2, 6, 8))
    assert first < middle > last
    alone = episode_at(stream_task([goal_segment()], [0], 2)).context
    assert unread_probability("rot", alone, 0) == 0.0


def test_what_the_rot_reader_overlooked_can_be_fetched_all_the_same():
    root = edited(Keep(), settings=config(reader="rot"))
    outcomes = [root.fork(noise_seed=seed).send() for seed in range(40)]
    assert 0 < sum(outcome.forced_reloads for outcome in outcomes) < 40
    assert sum(outcome.silent_misses for outcome in outcomes) == 0


def test_the_rot_reader_overlooks_as_often_as_it_should():
    root = edited(Keep(), settings=config(reader="rot", max_reloads=0))
    p = unread_probability("rot", root.context, 2)
    missed = 0
    for seed in range(60):
        outcome = root.fork(noise_seed=seed).send()
        expected = uniform(seed, "stream", LAST, "read:0:0") < p
        assert outcome.silent_misses == expected
        missed += expected
    assert 0 < missed < 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"notice": "god"}, r"unknown `notice` preset\. Received 'god'\. Did you mean 'good'"),
        ({"prices": "free"}, r"unknown `prices` preset"),
        ({"reader": "chat"}, r"unknown `reader` preset"),
        ({"budget_fraction": 0.0}, r"`budget_fraction` must be positive, or None"),
        ({"max_context_tokens": 0}, r"`max_context_tokens` must be positive, or None"),
        ({"max_edits": 0}, r"`max_edits` must be at least 1\. Received 0"),
        ({"summarize_max_tokens": 0}, r"`summarize_max_tokens` must be at least 1"),
        ({"max_reloads": -1}, r"`max_reloads` must not be negative"),
        ({"task_weight": -2.0}, r"`task_weight` must not be negative"),
    ],
)
def test_settings_that_no_episode_could_run_with_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        SimulatorConfig(**settings)
