"""What is fetched where something is missing, what a miss is, and what it means for the task."""

import pytest
from demand_tasks import LAST, Says, edited, files
from demand_tasks import settings_of as config
from tiny_tasks import document_segment, episode_at, exchange, goal_segment, stream_task, words

from contextpilot.core.edit import Drop, Fold, Keep, Summarize
from contextpilot.errors import ConfigurationError
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.noise import uniform
from contextpilot_envs.tasks.base import Demand, KeyFact

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
