"""What edits make of messages: forms, absences, and segments without a host message."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages.conversations import ANTHROPIC, LONG, OPENAI, show
from messages.edited_segments import edited, synthetic_turn
from messages.message_lists import Messages, anthropic_lists, full, openai_lists, wire

from contextpilot.core.segment import Form, Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.errors import MessageFormatError
from contextpilot.messages import anthropic, openai
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.validate import problems


@given(st.data(), openai_lists())
def test_edited_openai_lists_stay_valid(data: st.DataObject, messages: Messages) -> None:
    check_edited(openai, "openai", data, messages)


@given(st.data(), anthropic_lists())
def test_edited_anthropic_lists_stay_valid(data: st.DataObject, messages: Messages) -> None:
    check_edited(anthropic, "anthropic", data, messages)


def check_edited(
    module: ModuleType, wire_format: str, data: st.DataObject, messages: Messages
) -> None:
    assert problems(wire_format, messages) == ()
    before = copy.deepcopy(messages)
    shown = data.draw(edited(module.parse(messages)))
    rendered = module.render(shown)
    assert problems(wire_format, rendered) == ()
    assert messages == before  # the host's history is never changed
    assert wire(module.render(shown)) == wire(rendered)
    module.parse(rendered)
    text = wire(rendered).replace("&lt;/context-data>", "</context-data>")
    for item in (item for item in shown if item.form == Form.FULL):
        for part in item.segment.parts:
            if part.type != "call" and part.text.strip():
                assert json.dumps(part.text, ensure_ascii=False)[1:-1] in text


def test_openai_forms() -> None:
    segments = openai.parse(OPENAI)
    out = openai.render(
        show(segments, {"s3": (Form.STUB, "ignored"), "s4": (Form.OUTLINE, "[9 lines, id s4]")})
    )
    arguments = out[2]["tool_calls"][0]["function"].pop("arguments")
    assert json.loads(arguments) == {"path": "a.md", "text": "[… 500 chars hidden, id s3]"}
    assert wire([out[2]]) == wire(
        [
            {
                "role": "assistant",
                "content": "Writing.",
                "reasoning_content": "think",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "write"}}],
            }
        ]
    )
    assert wire([out[3]]) == wire([{**OPENAI[3], "content": "[9 lines, id s4]"}])
    assert [out[i] is OPENAI[i] for i in (0, 1, 4, 5)] == [True] * 4


def test_anthropic_forms() -> None:
    segments = anthropic.parse(ANTHROPIC)
    out = anthropic.render(
        show(
            segments, {"s2": (Form.STUB, None), "s3": (Form.SUMMARY, "ok"), "s4": (Form.STUB, "D")}
        )
    )
    thinking, text, call = out[1]["content"]
    assert thinking is ANTHROPIC[1]["content"][0]
    assert text is ANTHROPIC[1]["content"][1]
    assert wire([call]) == wire(
        [
            {
                "type": "tool_use",
                "id": "c1",
                "name": "write",
                "input": {"path": "a.md", "text": "[… 500 chars hidden, id s2]"},
                "caller": {"type": "direct"},
            }
        ]
    )
    expected = {"tool_use_id": "c1", "type": "tool_result", "content": "ok", "is_error": False}
    assert wire(out[2]["content"]) == wire([expected])
    assert out[3] == {"role": "assistant", "content": "D"}
    assert out[4] is ANTHROPIC[4]


def test_a_custom_call_is_folded_as_text() -> None:
    call = {"id": "p", "type": "custom", "custom": {"name": "patch", "input": LONG}}
    segments = openai.parse([{"role": "assistant", "tool_calls": [call]}])
    (turn,) = openai.render(show(segments, {"s1": (Form.STUB, None)}))
    assert turn["tool_calls"][0]["custom"] == {
        "name": "patch",
        "input": "[… 500 chars hidden, id s1]",
    }


def test_a_turn_without_calls_becomes_its_text_without_reasoning() -> None:
    chat = [{"role": "assistant", "reasoning": "hm", "content": "long"}]
    out = openai.render(show(openai.parse(chat), {"s1": (Form.STUB, "short")}))
    assert out == [{"role": "assistant", "content": "short"}]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blocks = [{"role": "assistant", "content": [thinking, {"type": "text", "text": "long"}]}]
    out = anthropic.render(show(anthropic.parse(blocks), {"s1": (Form.STUB, "short")}))
    assert out == [{"role": "assistant", "content": [{"type": "text", "text": "short"}]}]
    for module, messages in ((openai, chat), (anthropic, blocks)):
        assert module.render(show(module.parse(messages), {"s1": (Form.STUB, " ")})) == []


def test_replaced_blocks_keep_their_cache_marker() -> None:
    marker = {"type": "ephemeral"}
    blocks = [{"type": "text", "text": "long", "cache_control": marker}]
    wrapped = {"type": "tool_result", "tool_use_id": "a", "content": blocks}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    segments = anthropic.parse(
        [{"role": "assistant", "content": [use]}, {"role": "user", "content": [wrapped]}]
    )
    out = anthropic.render(show(segments, {"s2": (Form.STUB, "short")}))
    assert out[1]["content"][0]["content"] == [
        {"type": "text", "text": "short", "cache_control": marker}
    ]


def test_part_of_a_user_message_may_go() -> None:
    image = {"type": "image_url", "image_url": {"url": "u"}}
    text = {"type": "text", "text": "look"}
    segments = openai.parse([{"role": "user", "name": "ada", "content": [image, text]}])
    assert wire(openai.render(show(segments, absent=["s1"]))) == wire(
        [{"role": "user", "name": "ada", "content": [text]}]
    )
    out = openai.render(show(segments, {"s1": (Form.STUB, "[image s1]")}))
    assert out[0]["content"] == [{"type": "text", "text": "[image s1]"}, text]


def test_anthropic_joins_what_an_absence_brings_together_and_nothing_else() -> None:
    segments = anthropic.parse(ANTHROPIC)
    out = anthropic.render(show(segments, absent=["s2", "s3"]))
    assert [m["role"] for m in out] == ["user", "assistant", "user"]
    out = anthropic.render(show(segments, absent=["s2", "s3", "s4"]))
    expected = [{"type": "text", "text": t} for t in ("Write notes.", "Next.")]
    assert out == [{"role": "user", "content": expected}]
    side_by_side = [ANTHROPIC[0], ANTHROPIC[0], {"role": "assistant", "content": "a"}]
    assert anthropic.render(full(anthropic.parse(side_by_side))) == side_by_side


def test_a_document_may_move_within_its_message() -> None:
    document = {"type": "document", "source": {"type": "text", "data": "doc"}}
    text = {"type": "text", "text": "read"}
    first, second = full(anthropic.parse([{"role": "user", "content": [document, text]}]))
    assert anthropic.render([second, first]) == [{"role": "user", "content": [text, document]}]


@pytest.mark.parametrize("module", [openai, anthropic])
def test_segments_without_a_host_message_are_written_anew(module: ModuleType) -> None:
    user = text_segment(
        "s1", Role.USER, Kind.TEXT, "Go.", source=Source.USER, trust=Trust.USER, pinned=True
    )
    turn = synthetic_turn("s2", "c1", '{"p": 1}', "x2")
    result = Segment(
        "s3", Role.TOOL, Kind.RESULT, (Part("text", "r"),), Source.TOOL, Trust.UNTRUSTED,
        exchange="x2", call_id="c1", name="read",
    )  # fmt: skip
    answer = text_segment(
        "s4", Role.ASSISTANT, Kind.TURN, "Done.", source=Source.ASSISTANT, trust=Trust.AGENT
    )
    shown = [*full([user, turn]), RenderedSegment(result, Form.STUB, "short"), *full([answer])]
    function = {"name": "read", "arguments": '{"p": 1}'}
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": 1}}
    expected: dict[ModuleType, Messages] = {
        openai: [
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "short", "tool_call_id": "c1"},
            {"role": "assistant", "content": "Done."},
        ],
        anthropic: [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "short"}],
            },
            {"role": "assistant", "content": "Done."},
        ],
    }
    assert module.render(shown) == expected[module]


def test_parallel_results_without_a_host_message_share_one() -> None:
    parts = tuple(Part("call", "{}", "f", call_id) for call_id in "ab")
    turn = Segment(
        "s1", Role.ASSISTANT, Kind.TURN, parts, Source.ASSISTANT, Trust.AGENT, exchange="x1"
    )
    results = [
        Segment(
            f"r{c}", Role.TOOL, Kind.RESULT, (Part("text", c),), Source.TOOL, Trust.UNTRUSTED,
            exchange="x1", call_id=c,
        )
        for c in "ab"
    ]  # fmt: skip
    out = anthropic.render(full([turn, *results]))
    assert [block["tool_use_id"] for block in out[1]["content"]] == ["a", "b"]
    assert len(openai.render(full([turn, *results]))) == 3


def test_refusals() -> None:
    segments = openai.parse(OPENAI)
    with pytest.raises(MessageFormatError, match=r"contextpilot\.messages\.openai\.render"):
        anthropic.render(full(segments))
    with pytest.raises(MessageFormatError, match="s4 has no text"):
        openai.render(show(segments, {"s4": (Form.STUB, None)}))
    with pytest.raises(MessageFormatError, match="Leave absent segments out"):
        RenderedSegment(segments[0], Form.ABSENT)
    system = text_segment(
        "s1", Role.SYSTEM, Kind.TEXT, "r", source=Source.SYSTEM, trust=Trust.SYSTEM
    )
    with pytest.raises(MessageFormatError, match="'system' argument"):
        anthropic.render(full([system]))
    with pytest.raises(MessageFormatError, match="JSON object"):
        anthropic.render(full([synthetic_turn("s2", "c1", "[1]", "x1")]))


def test_copies_of_segments_survive_deep_copies_without_identity() -> None:
    segments = copy.deepcopy(anthropic.parse(ANTHROPIC))
    out: list[Any] = anthropic.render(full(segments))
    assert wire(out) == wire(ANTHROPIC)
    assert not any(a is b for a, b in zip(out, ANTHROPIC, strict=True))
