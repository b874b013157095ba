"""What is parsed comes back: byte for byte, and as the host's own objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from messages.claude_code_files import claude_code_lists
from messages.message_lists import Messages, anthropic_lists, full, openai_lists, wire
from messages.real_data import DATA, needs_data

from contextpilot.core.segment import Kind, Part, Segment
from contextpilot.messages import anthropic, openai
from contextpilot.messages.validate import problems


def stored(segments: Sequence[Segment]) -> list[Segment]:
    """Returns the segments as an archive that stores JSON gives them back."""

    def copied(part: Part) -> Part:
        block = json.loads(json.dumps(part.block))
        return Part(part.type, part.text, part.name, part.call_id, block)

    return [
        Segment(
            s.id, s.role, s.kind, tuple(copied(p) for p in s.parts), s.source, s.trust, s.pinned,
            s.exchange, s.call_id, s.name, s.pending, s.lineage, s.position,
        )
        for s in segments
    ]  # fmt: skip


def assert_round_trip(module: ModuleType, messages: Messages) -> None:
    before = wire(messages)
    segments = module.parse(messages)
    rendered = module.render(full(segments))
    assert [id(m) for m in rendered] == [id(m) for m in messages]
    restored = stored(segments)
    assert restored == list(segments)  # an envelope equals the plain mapping that JSON gives back
    assert wire(module.render(full(restored))) == before
    assert wire(messages) == before


@given(openai_lists(strange=True))
def test_openai_lists_come_back_byte_for_byte(messages: Messages) -> None:
    assert_round_trip(openai, messages)


@given(anthropic_lists(strange=True))
def test_anthropic_lists_come_back_byte_for_byte(messages: Messages) -> None:
    assert_round_trip(anthropic, messages)


@given(openai_lists())
def test_every_result_has_its_turn(messages: Messages) -> None:
    segments = openai.parse(messages)
    assert [s.id for s in segments] == [f"s{n}" for n in range(1, len(segments) + 1)]
    turns = {s.exchange: s for s in segments if s.kind == Kind.TURN and s.exchange}
    for result in (s for s in segments if s.kind == Kind.RESULT):
        turn = turns[result.exchange]
        calls = {part.call_id: part.name for part in turn.parts if part.type == "call"}
        assert result.name == calls[result.call_id]
        assert turn.position < result.position
    answered = [(s.exchange, s.call_id) for s in segments if s.kind == Kind.RESULT]
    for exchange, turn in turns.items():
        open_calls = [
            p for p in turn.parts if p.type == "call" and (exchange, p.call_id) not in answered
        ]
        assert turn.pending == bool(open_calls)


@needs_data
def test_recorded_openai_runs_come_back() -> None:
    runs = json.loads((DATA / "tau_bench" / "gpt-4o-airline.json").read_text())
    assert len(runs) == 140
    for run in runs:
        assert_round_trip(openai, run["traj"])
        assert problems("openai", run["traj"]) == ()


@needs_data
@pytest.mark.parametrize("path", sorted(DATA.glob("claude_code/**/*.jsonl")), ids=lambda p: p.stem)
def test_recorded_anthropic_sessions_come_back(path: Any) -> None:
    episodes = claude_code_lists(path)
    assert episodes
    for messages in episodes:
        assert_round_trip(anthropic, messages)
        segments = anthropic.parse(messages)
        results = [s for s in segments if s.kind == Kind.RESULT]
        assert all(result.exchange and result.name for result in results)
