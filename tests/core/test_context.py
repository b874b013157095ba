"""Arrivals, requests, order and snapshots of a context, followed on paper."""

from dataclasses import replace

import pytest
from tiny_tasks import (
    chain_task,
    document_segment,
    episode_at,
    exchange,
    goal_segment,
    prepared,
    stream_task,
    user_segment,
    words,
)

from contextpilot.archives import MemoryArchive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.columns import NEVER, Columns
from contextpilot.core.context import Context
from contextpilot.core.segment import Form
from contextpilot.edits.services import Services
from contextpilot.summarizers import StructureSummarizer
from contextpilot.tokenizers import EstimateTokenizer


def services() -> Services:
    tokenizer = EstimateTokenizer()
    return Services(tokenizer, StructureSummarizer(tokenizer), MemoryArchive())


def context_of(*segments, budget: TokenBudget | None = None, prefix_tokens: int = 0) -> Context:
    entries, members = services().intern(segments)
    return Context(entries, members, budget or TokenBudget(), prefix_tokens=prefix_tokens)


def order(context: Context) -> list[int]:
    return context.columns.order[: context.length].tolist()


def ranks(context: Context) -> list[int]:
    return [context.columns.rank[i] for i in order(context)]


def test_arrivals_are_appended_in_full_and_counted():
    turn, result = exchange(0, words(50))
    context = context_of(goal_segment(), turn, result, prefix_tokens=7)
    for index in range(3):
        context.arrive(index)
    tokens = [e.full_tokens for e in context.entries]
    assert order(context) == [0, 1, 2]
    assert context.total == context.arrived_tokens == sum(tokens)
    assert context.used_tokens == sum(tokens) + 7
    assert [context.form(i) for i in range(3)] == [Form.FULL] * 3
    assert list(context.visible()) == [0, 1, 2]
    assert context.columns.edited[2] == NEVER


def test_what_has_not_arrived_has_no_place():
    context = context_of(goal_segment(), document_segment("d", "later"))
    context.arrive(0)
    assert context.has_arrived(0)
    assert not context.has_arrived(1)


def test_a_request_makes_everything_read_and_cached():
    context = context_of(goal_segment(), document_segment("d", words(40)), prefix_tokens=9)
    context.arrive(0)
    assert context.unread == [0]
    assert context.cached_tokens() == 0
    context.send()
    assert (context.request, context.unread, context.arrived_tokens) == (1, [], 0)
    assert context.columns.sent[0] == 1
    assert context.cached_tokens() == 9 + context.entries[0].full_tokens
    context.arrive(1)
    assert not context.has_pending_break  # an arrival appends
    assert context.columns.sent[1] == 0
    assert context.columns.arrival[1] == 1


def test_a_form_breaks_the_prefix_at_its_place():
    context = context_of(*(document_segment(f"d{n}", words(60, 100 * n)) for n in range(4)))
    for index in range(4):
        context.arrive(index)
    context.send()
    context.set_form(2, Form.STUB)
    sizes = [e.full_tokens for e in context.entries]
    assert (context.has_pending_break, context.break_at) == (True, 2)
    assert context.cached_tokens() == sizes[0] + sizes[1] == context.tokens_before(2)
    assert context.total == sum(sizes) - sizes[2] + context.entries[2].stub_tokens
    context.set_form(0, Form.ABSENT)
    assert context.cached_tokens() == 0
    assert list(context.visible()) == [1, 2, 3]


def test_a_cold_cache_has_nothing():
    context = context_of(goal_segment())
    context.arrive(0)
    context.send()
    context.cold = True
    assert context.cached_tokens() == 0
    context.send()
    assert not context.cold


def test_pressure_and_overflow_begin_behind_their_limits():
    text = goal_segment()
    tokens = services().intern([text])[0][0].full_tokens
    for limit, pressed, over in ((tokens, True, False), (tokens - 1, True, True)):
        context = context_of(text, budget=TokenBudget(limit, compression_threshold=0.5))
        context.arrive(0)
        assert (context.under_pressure, context.overflows) == (pressed, over)
    context = context_of(text, budget=TokenBudget(2 * tokens, compression_threshold=0.5))
    context.arrive(0)
    assert not context.under_pressure  # exactly at the threshold


@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_made_segment_opens_a_position(position):
    context = context_of(*(document_segment(f"d{n}", words(9, 100 * n)) for n in range(3)))
    for index in range(3):
        context.arrive(index)
    context.send()
    made = services().interned(document_segment("m3", words(20)), leader=3)
    before = context.total
    assert context.add(made, position) == 3
    expected = [0, 1, 2]
    expected.insert(position, 3)
    assert order(context) == expected
    assert ranks(context) == [0, 1, 2, 3]
    assert context.total == before + made.full_tokens
    assert context.unread == [3]
    assert context.has_pending_break == (position < 3)
    assert context.sent_length == (4 if position < 3 else 3)


@pytest.mark.parametrize(
    ("index", "position", "expected", "broken"),
    [
        (0, 3, [1, 2, 3, 0], 0),
        (3, 1, [0, 3, 1, 2], 1),
        (2, 2, [0, 1, 2, 3], 4),
        (1, 2, [0, 2, 1, 3], 1),
    ],
)
def test_a_move_breaks_the_prefix_only_where_something_moved(index, position, expected, broken):
    context = context_of(*(document_segment(f"d{n}", words(9, 100 * n)) for n in range(4)))
    for i in range(4):
        context.arrive(i)
    context.send()
    context.move(index, position)
    assert order(context) == expected
    assert ranks(context) == [0, 1, 2, 3]
    assert context.break_at == broken


def test_the_latest_user_text_is_pinned_and_the_former_released():
    context = context_of(goal_segment(), user_segment("u1", "more"), user_segment("u2", "again"))
    for index in range(3):
        context.arrive(index)
        assert context.latest_user == index == context.latest_user_rank
    assert context.columns.pinned[:3].tolist() == [1, 0, 1]  # the goal is pinned for itself


def test_an_exchange_is_settled_when_its_last_result_is_there():
    context = context_of(goal_segment(), *exchange(0, words(30)))
    context.arrive(0)
    context.arrive(1)
    assert context.columns.settled[1] == 0
    context.arrive(2)
    assert context.columns.settled[1:3].tolist() == [1, 1]
    assert context.group(2) == (1, 2)
    assert context.in_tool_loop


def test_a_pending_call_keeps_its_exchange_unsettled():
    turn, result = exchange(0, words(30))
    context = context_of(replace(turn, pending=True), result)
    context.arrive(0)
    context.arrive(1)
    assert context.columns.settled[:2].tolist() == [0, 0]


def test_a_late_result_makes_its_exchange_unread_until_the_next_request():
    turn, result = exchange(0, words(100))
    task = stream_task([goal_segment(), turn, result], [0, 1, 2], 6)
    episode = episode_at(task, 1)
    columns = episode.context.columns
    episode.send()
    assert (columns.sent[1], columns.sent[2]) == (0, 0)
    episode.send()
    assert (columns.sent[1], columns.sent[2]) == (1, 1)


def test_one_pinned_member_pins_its_exchange():
    turn, result = exchange(0, words(30))
    context = context_of(turn, replace(result, pinned=True))
    context.arrive(0)
    context.arrive(1)
    assert context.columns.pinned[:2].tolist() == [1, 1]


def test_reasoning_locks_the_whole_exchange():
    context = context_of(*exchange(0, words(30), reasoning=True), *exchange(1, words(30)))
    for index in range(4):
        context.arrive(index)
    assert context.columns.locked[:4].tolist() == [1, 1, 0, 0]
    assert context.columns.reasoning[:4].tolist() == [1, 0, 0, 0]


def test_a_newer_reading_of_a_path_supersedes_the_older():
    path = '{"path": "/etc/hosts"}'
    context = context_of(
        *exchange(0, words(30), argument=path), *exchange(1, words(9), argument='{"path": "/a"}'),
        *exchange(2, words(30), argument=path),
    )  # fmt: skip
    for index in range(6):
        context.arrive(index)
    assert context.columns.superseded[:6].tolist() == [0, 1, 0, 0, 0, 0]


def test_a_repeated_string_counts_as_a_reference():
    turn, _ = exchange(1, "x", argument='{"id": "ORDER-77412"}')
    context = context_of(document_segment("d0", "see ORDER-77412 here"), turn)
    context.arrive(0)
    context.send()
    assert context.columns.references[0] == 0
    context.arrive(1)
    assert (context.columns.references[0], context.columns.referenced[0]) == (1, 1)


def test_a_snapshot_brings_everything_back():
    context = episode_at(chain_task(5), 3).context
    fresh = prepared(chain_task(5))
    twin = Context(fresh.entries, fresh.members, fresh.budget)
    context.set_form(2, Form.STUB)
    made = services().interned(document_segment("m11", words(20)), leader=11)
    context.add(made, 3)
    context.cold = True
    kept = context.snapshot()
    context.move(made.leader, 1)
    context.set_form(4, Form.ABSENT)
    context.send()
    context.arrive(7)
    assert context.snapshot() != kept
    for target in (context, twin):
        target.restore(kept)
        assert target.snapshot() == kept
        assert order(target) == [0, 1, 2, 11, 3, 4, 5, 6]
        assert target.total == sum(target.columns.size[i] for i in target.visible())


def test_a_snapshot_does_not_change_with_its_context():
    context = episode_at(chain_task(5), 2).context
    kept, again = context.snapshot(), context.snapshot()
    context.set_form(2, Form.STUB)
    context.unread.append(4)
    context.resources["x"] = 1
    assert kept == again


def test_columns_grow_without_losing_anything():
    segments = [document_segment(f"d{n}", f"text {n}") for n in range(3)]
    entries, members = services().intern(segments)
    context = Context(entries, members, TokenBudget(), columns=Columns.allocate(4))
    for index in range(3):
        context.arrive(index)
    for number in range(3, 60):
        made = services().interned(document_segment(f"m{number}", f"m {number}"), leader=number)
        context.add(made, 1)
    assert order(context) == [0, *range(59, 2, -1), 1, 2]
    assert context.total == sum(e.full_tokens for e in context.entries)
