"""Responses items become segments, and come back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages.conversations import show
from messages.edited_segments import edited
from messages.message_lists import Messages, full, wire
from messages.real_data import DATA, needs_data
from messages.responses_cases import ITEMS, SAID, call, output, user
from messages.responses_lists import FILE, IMAGE, responses_lists
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from contextpilot.archives.codec import segment_from_json, segment_to_json
from contextpilot.core.segment import Form, Kind
from contextpilot.errors import MessageFormatError
from contextpilot.messages import responses
from contextpilot.messages.validate import problems


def assert_round_trip(items: Messages) -> None:
    before = wire(items)
    segments = responses.parse(items)
    assert [id(item) for item in responses.render(full(segments))] == [id(item) for item in items]
    restored = [segment_from_json(segment_to_json(segment)) for segment in segments]
    assert restored == list(segments)
    assert wire(responses.render(full(restored))) == before
    assert wire(items) == before


@given(responses_lists(strange=True))
def test_lists_come_back_byte_for_byte(items: Messages) -> None:
    assert_round_trip(items)


@given(responses_lists(strange=True))
def test_every_output_has_its_turn(items: Messages) -> None:
    segments = responses.parse(items)
    assert [s.id for s in segments] == [f"s{n}" for n in range(1, len(segments) + 1)]
    turns = {s.exchange: s for s in segments if s.kind == Kind.TURN and s.exchange}
    results = [s for s in segments if s.kind == Kind.RESULT]
    for result in results:
        turn = turns[result.exchange]
        calls = {part.call_id: part.name for part in turn.parts if part.type == "call"}
        assert result.name == calls[result.call_id]
        assert turn.position < result.position
    answered = {(s.exchange, s.call_id) for s in results}
    for exchange, turn in turns.items():
        calls = [p.call_id for p in turn.parts if p.type == "call"]
        assert turn.pending == any((exchange, c) not in answered for c in calls)


def test_segments_of_a_conversation() -> None:
    segments = responses.parse(ITEMS)
    assert [(s.kind, s.exchange, s.position) for s in segments] == [
        (Kind.TEXT, "", (0, 0)),
        (Kind.TEXT, "", (1, 0)),
        (Kind.TURN, "x3", (2, 0)),
        (Kind.RESULT, "x3", (6, 0)),
        (Kind.RESULT, "x3", (7, 0)),
        (Kind.TURN, "", (8, 0)),
        (Kind.TEXT, "", (10, 0)),
    ]
    assert [s.name for s in segments[3:5]] == ["patch", "read"]
    assert segments[3].image_count == 1
    assert segments[2].has_reasoning
    assert segments[5].text == "Done."
    assert [s.pinned for s in segments] == [True, True, False, False, False, False, True]


def test_parts_of_a_user_message_are_segments() -> None:
    text = {"type": "input_text", "text": "look"}
    segments = responses.parse([user([text, IMAGE, FILE])])
    assert [(s.kind, s.name) for s in segments] == [
        (Kind.TEXT, ""),
        (Kind.IMAGE, ""),
        (Kind.DOCUMENT, "a.pdf"),
    ]
    out = responses.render(show(segments, {"s2": (Form.STUB, "[image s2]")}, absent=["s3"]))
    assert out == [user([text, {"type": "input_text", "text": "[image s2]"}])]


def test_outputs_of_calls_that_are_only_referred_to_stay_with_the_reference() -> None:
    reference = {"type": "item_reference", "id": "fc_1"}
    items = [user("go"), {"id": "rs_1"}, reference, output("a"), output("b"), user("on")]
    segments = responses.parse(items)
    assert [s.kind for s in segments] == [Kind.TEXT, Kind.TURN, Kind.TEXT]
    assert segments[1].text == "r\nr"
    assert problems("responses", items) == ()
    assert_round_trip(items)


def test_what_stands_for_the_past_is_pinned() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    segments = responses.parse([compaction, SAID, user("on")])
    assert [s.pinned for s in segments] == [True, False, True]


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ({"role": "user"}, "items must be a list"),
        ("go", "items must be a list"),
        ([user("go"), "x"], r"messages\[1\]: an item must be a dict"),
        ([{"content": "x"}], "an item needs a 'type'"),
        ([{"role": "human", "content": "x"}], "unknown role"),
        ([{"role": "tool", "content": "x"}], "'function_call_output' item"),
        ([user(3)], "string or a list of blocks"),
        ([user(["x"])], "must be a dict with a 'type'"),
        ([call("a", arguments={"b": 1})], "'arguments' of a 'function_call' must be a string"),
        ([{"type": "function_call_output", "output": "r"}], "Name the call that it answers"),
        ([output("a", {"b": 1})], "string or a list of blocks"),
    ],
)
def test_what_is_no_item_list_is_named(items: Any, told: str) -> None:
    with pytest.raises(MessageFormatError, match=told):
        responses.parse(items)


@given(st.data(), responses_lists())
def test_lists_are_what_the_openai_package_takes(data: st.DataObject, items: Messages) -> None:
    adapter = TypeAdapter(ResponseInputItemParam)
    for sent in (items, responses.render(data.draw(edited(responses.parse(items))))):
        for item in sent:
            exhaust(adapter.validate_python(item))


def exhaust(value: Any) -> None:
    """Looks into everything: iterables are only validated as they are read."""
    if isinstance(value, dict):
        for item in value.values():
            exhaust(item)
    elif not isinstance(value, str) and hasattr(value, "__iter__"):
        for item in value:
            exhaust(item)


def codex_lists(path: Path) -> Iterator[Messages]:
    """Yields the items between compactions; what a compaction kept begins the next list."""
    items: Messages = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["type"] == "compacted":
            yield items
            items = list(entry["payload"].get("replacement_history") or [])
        elif entry["type"] == "response_item":
            items.append(entry["payload"])
    yield items


@needs_data
@pytest.mark.parametrize(
    "path", sorted(DATA.glob("agent_sessions/*codex*/*.jsonl")), ids=lambda path: path.stem
)
def test_recorded_sessions_come_back(path: Path) -> None:
    for items in codex_lists(path):
        assert problems("responses", items) == ()
        assert_round_trip(items)
        segments = responses.parse(items)
        assert all(s.exchange and s.name for s in segments if s.kind == Kind.RESULT)
        exchanges: Sequence[str] = sorted({s.exchange for s in segments if s.exchange})
        gone = [s.id for s in segments if s.exchange in exchanges[::2] and not s.pending]
        assert problems("responses", responses.render(show(segments, absent=gone))) == ()
