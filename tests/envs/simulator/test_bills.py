"""Bills that were worked out on paper, request by request."""

import pytest
from tiny_tasks import (
    document_segment,
    episode_at,
    exchange,
    goal_segment,
    stream_task,
    user_segment,
    words,
)

from contextpilot.core.edit import Drop, Fold, Placement, Reload, Summarize
from contextpilot.core.prices import Prices
from contextpilot.core.segment import Form
from contextpilot.errors import ConfigurationError, SummarizerError
from contextpilot_envs.simulator.billing import request_price
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.tasks.base import Demand, KeyFact

BIG = 400  # words; above the minimum prefix of 1024 tokens


def documents(requests: int = 5, output_tokens: int = 0, **more):
    """A goal, and one large document a request from the first on."""
    texts = [document_segment(f"d{n}", words(BIG, 1000 * n)) for n in range(requests)]
    return stream_task(
        [goal_segment(), *texts], [0, *range(requests)], requests, output_tokens=output_tokens,
        **more,
    )  # fmt: skip


def sizes(episode: Episode) -> list[int]:
    return [entry.full_tokens for entry in episode.context.entries]


def config(**settings) -> SimulatorConfig:
    return SimulatorConfig(**{"budget_fraction": None, "notice": "perfect", **settings})


def test_a_cached_prefix_is_read_at_a_tenth_and_the_rest_written_at_a_quarter_more():
    episode = episode_at(documents(output_tokens=7), 0, config())
    goal, first, second, *_ = sizes(episode)
    assert first > 1024
    assert episode.send().bill == pytest.approx(1.25 * (goal + first) + 5 * 7)
    assert episode.send().bill == pytest.approx(0.1 * (goal + first) + 1.25 * second + 35)


def test_below_the_minimum_prefix_nothing_is_cached():
    texts = [document_segment("d0", words(30)), document_segment("d1", words(BIG, 9000))]
    episode = episode_at(stream_task([goal_segment(), *texts], [0, 1, 2], 4), 0, config())
    goal, small, big = sizes(episode)
    assert goal + small < 1024 < goal + small + big
    assert episode.send().bill == goal
    assert episode.send().bill == goal + small
    # The request before was too short to be cached: all of it is written now.
    assert episode.send().bill == pytest.approx(1.25 * (goal + small + big))
    assert episode.send().bill == pytest.approx(0.1 * (goal + small + big))


def test_an_edit_loses_the_prefix_from_its_position_on():
    episode = episode_at(documents(), 3, config())
    goal, d0, _, d2, d3, _ = sizes(episode)
    episode.edit(Fold((2,)))
    stub = episode.context.entries[2].stub_tokens
    expected = 0.1 * (goal + d0) + 1.25 * (stub + d2 + d3)
    assert episode.send().bill == pytest.approx(expected)


def test_two_edits_lose_it_once_from_the_first_position_on():
    episode = episode_at(documents(), 4, config())
    goal, d0, _, d2, _, d4 = sizes(episode)
    episode.edit(Drop((4,)))
    episode.edit(Drop((2,)))
    assert episode.send().bill == pytest.approx(0.1 * (goal + d0) + 1.25 * (d2 + d4))
    assert episode.tally.bill_without_prefix == episode.tally.bill


def test_a_cold_request_pays_for_all_of_it():
    episode = episode_at(documents(cold=(2,)), 2, config())
    assert episode.context.cold
    total = sum(sizes(episode)[:4])
    assert episode.send().bill == pytest.approx(1.25 * total)
    assert episode.prepared.raw.requests[2] == pytest.approx(1.25 * total)
    assert episode.send().bill == pytest.approx(0.1 * total + 1.25 * sizes(episode)[4])


def test_the_fixed_prefix_is_billed_and_can_be_told_apart():
    task = documents(requests=3, prefix_tokens=2000)
    episode = episode_at(task, 0, config())
    goal, d0, d1, _ = sizes(episode)
    bills = [episode.send().bill for _ in range(3)]
    assert bills[0] == pytest.approx(1.25 * (2000 + goal + d0))
    assert bills[1] == pytest.approx(0.1 * (2000 + goal + d0) + 1.25 * d1)
    of_prefix = 1.25 * 2000 + 2 * 0.1 * 2000
    assert episode.tally.bill_without_prefix == pytest.approx(sum(bills) - of_prefix)
    assert episode.prepared.raw.total_without_prefix == pytest.approx(sum(bills) - of_prefix)
    free = episode_at(task, 3, config(bill_prefix=False))
    assert free.tally.bill == pytest.approx(sum(bills) - of_prefix)
    assert free.tally.request_tokens == episode.tally.request_tokens - 3 * 2000


def test_a_short_request_s_prefix_costs_what_its_tokens_do():
    segments = [goal_segment(), document_segment("d0", words(20))]
    episode = episode_at(stream_task(segments, [0, 1], 2, prefix_tokens=300), 2, config())
    goal, small = sizes(episode)
    assert episode.tally.bill == 2 * 300 + 2 * goal + small
    assert episode.tally.bill_without_prefix == 2 * goal + small
    assert episode.prepared.raw.total_without_prefix == 2 * goal + small


def test_output_can_be_left_out_of_every_bill():
    episode = episode_at(documents(output_tokens=9), 5, config(bill_output=False))
    full = episode_at(documents(output_tokens=9), 5, config())
    assert full.tally.bill - episode.tally.bill == pytest.approx(5 * 5 * 9)
    assert full.prepared.raw.total - episode.prepared.raw.total == pytest.approx(225)


class Words:
    """A summarizer with a fixed answer, or none."""

    name = "words"

    def __init__(self, text: str | None) -> None:
        self.text = text

    def summarize(self, request) -> str:
        if self.text is None:
            raise SummarizerError("down")
        return self.text


@pytest.mark.parametrize("text", ["a few words", words(3000), "", None])
def test_a_summarizer_is_billed_with_the_request_it_delays_used_or_not(text):
    episode = episode_at(documents(), 3, config(), summarizer=Words(text))
    twin = episode_at(documents(), 3, config())
    episode.edit(Summarize((1,), 100))
    count = episode.services.count
    asked = 1.0 * count(words(BIG)) + 5.0 * count(text or "")
    if text == "a few words":
        goal, _, d1, d2, d3, _ = sizes(episode)
        summary = episode.context.entries[1].tokens(Form.SUMMARY)
        price = 0.1 * goal + 1.25 * (summary + d1 + d2 + d3)
    else:
        price = twin.send().bill
    assert episode.send().bill == pytest.approx(asked + price)
    assert episode.tally.latency_seconds == 4 + 1


def demanding(request: int, *, last_user: bool = False, **more):
    """An exchange that is demanded later; `last_user`: that request ends with a user text."""
    turn, result = exchange(0, words(BIG) + "\nKEY-77\n")
    segments = [goal_segment(), turn, result, document_segment("d0", words(BIG, 5000))]
    arrivals = [0, 1, 1, 2]
    if last_user:
        segments.append(user_segment("u1", "what was it?"))
        arrivals.append(request)
    return stream_task(
        segments, arrivals, request + 3, facts=[KeyFact("KEY-77", "code", (2,))],
        demands=[Demand(request, (0,), "the key", final=True)], **more,
    )  # fmt: skip


def test_a_forced_reload_is_one_more_request_and_the_copy_stays():
    episode = episode_at(demanding(5), 4, config(reload_output_tokens=600))
    goal, turn, result, document = sizes(episode)
    episode.edit(Fold((2,)))
    episode.send()
    tokens = goal + turn + episode.context.entries[2].stub_tokens + document
    outcome = episode.send()
    assert (outcome.forced_reloads, outcome.silent_misses) == (1, 0)
    expected = 0.1 * tokens + 5 * 600 + (0.1 * tokens + 1.25 * result)
    assert outcome.bill == pytest.approx(expected)
    assert episode.send().bill == pytest.approx(0.1 * (tokens + result))
    assert episode.context.columns.reloads[2] == 1
    assert episode.tally.latency_seconds == 7 + 1
    assert episode.tally.peak_tokens == tokens + result


def test_a_copy_before_the_user_s_text_writes_that_text_again():
    episode = episode_at(demanding(5, last_user=True), 4, config(reload_output_tokens=40))
    goal, turn, result, document, user = sizes(episode)
    episode.edit(Fold((2,)))
    episode.send()
    tokens = goal + turn + episode.context.entries[2].stub_tokens + document
    expected = 0.1 * tokens + 1.25 * user + 5 * 40 + 0.1 * tokens + 1.25 * (result + user)
    assert episode.send().bill == pytest.approx(expected)
    assert episode.send().bill == pytest.approx(0.1 * (tokens + result + user))


def test_a_reload_by_the_policy_costs_no_further_request():
    episode = episode_at(demanding(5), 3, config())
    goal, turn, result, document = sizes(episode)
    episode.edit(Fold((2,)))
    for _ in range(2):
        episode.send()
    episode.edit(Reload((2,), Placement.AT_END))
    tokens = goal + turn + episode.context.entries[2].stub_tokens + document
    outcome = episode.send()
    assert outcome.bill == pytest.approx(0.1 * tokens + 1.25 * result)
    assert outcome.forced_reloads == 0
    assert episode.tally.demands_met == 1


def test_a_miss_costs_the_raw_price_of_five_requests():
    episode = episode_at(demanding(5), 4, config(notice="poor", max_reloads=0))
    episode.edit(Drop((2,)))
    episode.send()
    outcome = episode.send()
    assert outcome.silent_misses == 1
    raw = episode.prepared.raw
    assert outcome.miss_cost == episode.tally.miss_cost == raw.requests[5]
    while not episode.ended:
        episode.send()
    bill = episode.tally.bill
    assert episode.objective == pytest.approx(-(bill + 5 * raw.requests[5]) / raw.total - 2)


def test_miss_price_and_task_weight_are_settings():
    settings = config(max_reloads=0, miss_price_requests=20.0, task_weight=0.5)
    episode = episode_at(demanding(5), 4, settings)
    episode.edit(Drop((2,)))
    while not episode.ended:
        episode.send()
    raw = episode.prepared.raw
    expected = -(episode.tally.bill + 20 * raw.requests[5]) / raw.total - 0.5
    assert episode.objective == pytest.approx(expected)


def test_a_request_over_the_window_is_refused_and_the_rest_billed_as_raw_s():
    task = documents(output_tokens=3)
    peak = sum(sizes(episode_at(task))[:4])
    for slack, refused in ((0, False), (-1, True)):
        episode = episode_at(task, 2, config(max_context_tokens=peak + slack))
        spent = episode.tally.bill
        outcome = episode.send()
        assert (outcome.refused, outcome.ended) == (refused, refused)
        if refused:
            rest = sum(episode.prepared.raw.requests[2:])
            assert outcome.bill == pytest.approx(rest)
            assert episode.tally.bill == pytest.approx(spent + rest)
            assert episode.failed
            assert not episode.succeeded
            assert episode.objective == pytest.approx(-1 - 2)


def test_the_answer_s_room_counts_against_the_window():
    task = documents()
    peak = sum(sizes(episode_at(task))[:4])
    settings = {"max_context_tokens": peak + 99, "reserved_output_tokens": 100}
    assert episode_at(task, 2, config(**settings)).send().refused


def test_a_budget_is_a_share_of_the_largest_raw_request():
    task = documents()
    episode = episode_at(task, 0, config(budget_fraction=0.75, reserved_output_tokens=50))
    share = round(0.75 * sum(sizes(episode)))
    assert episode.context.budget.input_limit == share
    assert episode.context.budget.max_context_tokens == share + 50


def test_a_share_never_falls_below_what_no_edit_can_remove():
    episode = episode_at(documents(prefix_tokens=500), 0, config(budget_fraction=0.01))
    goal, *rest = sizes(episode)
    assert episode.context.budget.input_limit == 500 + goal + max(rest)
    while not episode.ended:  # and that much is enough
        for index in list(episode.context.visible()):
            if episode.context.columns.sent[index] and not episode.context.columns.pinned[index]:
                episode.edit(Drop((index,)))
        assert not episode.send().refused


@pytest.mark.parametrize(
    ("cached", "tokens", "previous", "expected"),
    [
        (0, 500, 0, 500),
        (0, 2000, 0, 2500),
        (1500, 2000, 1500, 0.1 * 1500 + 1.25 * 500),
        (900, 2000, 900, 2500),
        (500, 1023, 2000, 1023),
        (1024, 1024, 1024, 102.4),
    ],
)
def test_the_price_of_a_request(cached, tokens, previous, expected):
    assert request_price(Prices(), cached, tokens, previous) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["input", "cached_read", "cache_write", "output"])
def test_a_negative_price_is_refused(name):
    with pytest.raises(ConfigurationError, match=rf"price `{name}` .* Received -0\.1\."):
        Prices(**{name: -0.1})


def test_without_a_cache_every_token_costs_the_same():
    episode = episode_at(documents(), 3, config(prices="uncached"))
    total = sum(sizes(episode)[:5])
    episode.edit(Fold((1,)))
    entry = episode.context.entries[1]
    assert episode.send().bill == total - entry.full_tokens + entry.stub_tokens
