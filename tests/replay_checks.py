"""A small recorded run, and what holds for every task made of a recording."""

import json
from typing import Any

from contextpilot.core.segment import Kind
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.demands import MAX_FACTS
from contextpilot_envs.tasks.transcripts import Transcript


def turn(
    content: str, arguments: dict[str, Any] | None = None, call_id: str = "c"
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if arguments is not None:
        function = {"name": "lookup", "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
    return message


def answer(content: str, call_id: str = "c") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def transcript(*messages: dict[str, Any], **fields: Any) -> Transcript:
    count = sum(message["role"] == "assistant" for message in messages)
    known = {"usage": (None,) * count, "metadata": {"session": "s", "file": "s.jsonl"}} | fields
    return Transcript("s#0", "openai", messages, agent="test", **known)


RUN = transcript(
    {"role": "system", "content": "Region is EU-WEST-4."},
    {"role": "user", "content": "Book order 778812 again"},
    turn("I look it up.", {"query": "order 778812", "region": "EU-WEST-4"}, "c1"),
    answer("order 778812: customer cust_4410, contract ZX-9001-B, parcel in depot Nord", "c1"),
    turn("", {"customer": "cust_4410"}, "c2"),
    answer("cust_4410 pays by card_7731", "c2"),
    {"role": "user", "content": "go on"},
    turn("The contract is ZX-9001-B.", {"method": "card_7731"}, "c3"),
    answer("booked as order 990155", "c3"),
    turn("Done: 990155 replaces 778812."),
)


def demanded(task: Task) -> dict[int, set[str]]:
    return {d.request: {task.facts[f].value for f in d.facts} for d in task.demands}


def check_labels(task: Task) -> None:
    """Every demanded fact is stated, verbatim, by a result that is there, and nowhere pinned."""
    for fact in task.facts:
        assert fact.segments
        assert all(fact.value in task.segments[i].text for i in fact.segments)
    used: set[int] = set()
    for demand in task.demands:
        assert 0 <= demand.request < task.requests
        assert demand.facts
        assert len(set(demand.facts)) == len(demand.facts) <= MAX_FACTS
        used.update(demand.facts)
        for fact in (task.facts[f] for f in demand.facts):
            there = [i for i in fact.segments if task.arrivals[i] <= demand.request]
            assert any(task.segments[i].kind == Kind.RESULT for i in there)
            assert not any(task.segments[i].pinned for i in there)
            assert fact.value not in demand.query
    assert used == set(range(len(task.facts)))
    assert list(task.arrivals) == sorted(task.arrivals)
    assert not task.arrivals or task.arrivals[-1] < task.requests
    assert len(task.output_tokens) == task.requests


def check_exchanges(task: Task) -> None:
    """No result without its turn, and both arrive together."""
    turns = {s.exchange: a for s, a in zip(task.segments, task.arrivals, strict=True)
             if s.kind == Kind.TURN and s.exchange}  # fmt: skip
    for segment, arrival in zip(task.segments, task.arrivals, strict=True):
        if segment.kind == Kind.RESULT:
            assert turns[segment.exchange] == arrival
    assert len({segment.id for segment in task.segments}) == len(task.segments)
