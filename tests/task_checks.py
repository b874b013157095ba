"""What every task must satisfy, whatever it comes from."""

from __future__ import annotations

from contextpilot.core.segment import Kind, Role
from contextpilot_envs.tasks.base import Task


def check_stream(task: Task) -> None:
    """Arrivals, identities and roles."""
    assert len(task.segments) == len(task.arrivals)
    assert list(task.arrivals) == sorted(task.arrivals)
    assert task.arrivals[0] == 0
    assert max(task.arrivals) == task.requests - 1
    assert set(task.arrivals) == set(range(task.requests)), "a request without anything new"
    assert len(task.output_tokens) == task.requests
    assert all(tokens > 0 for tokens in task.output_tokens)
    assert [segment.id for segment in task.segments] == [
        f"s{number}" for number in range(1, len(task.segments) + 1)
    ]
    first = task.segments[0]
    assert first.role == Role.USER
    assert first.pinned
    assert first.text == task.goal
    assert not any(segment.pinned for segment in task.segments[1:])
    check_roles(task)


def check_roles(task: Task) -> None:
    """Each turn answers something, and is followed by exactly the results that it asked for."""
    place = 0
    while place < len(task.segments):
        segment = task.segments[place]
        place += 1
        assert segment.kind != Kind.RESULT, "a result without its turn"
        if segment.kind != Kind.TURN:
            assert segment.role == Role.USER
            continue
        assert task.segments[place - 2].kind != Kind.TURN, "two turns in a row"
        calls = [part for part in segment.parts if part.type == "call"]
        assert bool(segment.exchange) == bool(calls)
        for call in calls:
            result = task.segments[place]
            assert result.kind == Kind.RESULT
            assert (result.call_id, result.name) == (call.call_id, call.name)
            assert result.exchange == segment.exchange
            assert task.arrivals[place] == task.arrivals[place - 1]
            place += 1
    assert task.segments[-1].kind != Kind.TURN, "nothing to answer at the last request"


def check_labels(task: Task) -> None:
    """Every fact is stated exactly where it says, in time, and is not given away."""
    texts = [segment.text for segment in task.segments]
    for fact in task.facts:
        stated = tuple(place for place, text in enumerate(texts) if fact.value in text)
        assert fact.segments == stated, fact
        assert not set(fact.stale_segments) & set(stated), fact
        assert fact.value not in task.goal
    for demand in task.demands:
        assert demand.facts
        assert 0 <= demand.request < task.requests
        for place in demand.facts:
            fact = task.facts[place]
            assert fact.value not in demand.query, fact
            assert task.arrivals[fact.segments[0]] <= demand.request, fact
    assert any(demand.final for demand in task.demands)
