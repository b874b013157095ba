"""What edits make of Responses items: forms, absences, and segments without a host item."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages.conversations import copy_of, note, show
from messages.edited_segments import edited, synthetic_turn
from messages.message_lists import Message, Messages, full, wire
from messages.responses_cases import ITEMS, SAID, call, output, thought, user
from messages.responses_lists import IMAGE, PAIRS, responses_lists

from contextpilot.core.segment import Form, Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.errors import MessageFormatError
from contextpilot.messages import openai, responses
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.validate import problems


@given(st.data(), responses_lists())
def test_edited_lists_stay_valid(data: st.DataObject, items: Messages) -> None:
    assert problems("responses", items) == ()
    before = copy.deepcopy(items)
    segments = responses.parse(items)
    shown = data.draw(edited(segments))
    rendered = responses.render(shown)
    assert problems("responses", rendered) == ()
    assert items == before  # the host's history is never changed
    assert wire(responses.render(shown)) == wire(rendered)
    responses.parse(rendered)
    sent = [id(item) for item in rendered]
    turns = {s.segment.id: s for s in shown if s.segment.kind == Kind.TURN}
    for turn in (s for s in segments if s.kind == Kind.TURN):
        check_reasoning(turn, turns.get(turn.id), rendered, sent)


def check_reasoning(
    turn: Segment, shown: RenderedSegment | None, rendered: Messages, sent: list[int]
) -> None:
    """A turn keeps all of its reasoning in its place, or none of it."""
    items = [part.block for part in turn.parts[1:]]
    calls = any(part.type == "call" for part in turn.parts)
    whole = shown is not None and (shown.form == Form.FULL or calls)
    thoughts = [n for n, item in enumerate(items) if item.get("type") == "reasoning"]
    assert [id(items[n]) in sent for n in thoughts] == [whole] * len(thoughts)
    for n in thoughts if whole else ():
        start = sent.index(id(items[n])) - n
        written = rendered[start : start + len(items)]
        assert [w.get("type") for w in written] == [item.get("type") for item in items]
        assert [w.get("call_id") for w in written] == [item.get("call_id") for item in items]


@given(responses_lists())
def test_a_dropped_exchange_leaves_nothing_and_takes_nothing_else(items: Messages) -> None:
    segments = responses.parse(items)
    pending = {s.exchange for s in segments if s.pending}
    for exchange in {s.exchange for s in segments if s.exchange} - pending:
        gone = [s for s in segments if s.exchange == exchange]
        assert [s.kind for s in gone][:2] == [Kind.TURN, Kind.RESULT]
        out = responses.render(show(segments, absent=[s.id for s in gone]))
        assert problems("responses", out) == ()
        left = sum(max(len(s.parts) - 1, 1) for s in gone if s.kind == Kind.TURN)
        assert len(out) == len(items) - left - (len(gone) - 1)


def test_forms() -> None:
    forms: dict[str, tuple[Form, str | None]] = {
        "s3": (Form.STUB, "ignored"),
        "s4": (Form.STUB, "[an image, id s4]"),
        "s5": (Form.OUTLINE, "[9 lines, id s5]"),
        "s6": (Form.SUMMARY, "D"),
    }
    out = responses.render(show(responses.parse(ITEMS), forms))
    arguments = {"path": "a.md", "text": "[… 500 chars hidden, id s3]"}
    assert json.loads(out[4]["arguments"]) == arguments
    assert wire([out[4]]) == wire([{**ITEMS[4], "arguments": out[4]["arguments"]}])
    assert out[5] == {**ITEMS[5], "input": "[… 500 chars hidden, id s3]"}
    assert out[6] == {**ITEMS[6], "output": "[an image, id s4]"}
    assert wire([out[7]]) == wire([{**ITEMS[7], "output": "[9 lines, id s5]"}])
    # without its reasoning an answer may not keep the id that the provider knows both under
    short = {"type": "message", "role": "assistant", "content": "D", "phase": "final_answer"}
    assert wire([out[8]]) == wire([short])
    assert [out[i] is ITEMS[i] for i in (0, 1, 2, 3)] == [True] * 4
    assert out[9] is ITEMS[10]
    assert problems("responses", out) == ()


def test_an_absent_exchange_takes_its_reasoning_along() -> None:
    out = responses.render(show(responses.parse(ITEMS), absent=["s3", "s4", "s5"]))
    assert out == [*ITEMS[:2], *ITEMS[8:]]
    out = responses.render(show(responses.parse(ITEMS), {"s6": (Form.STUB, " ")}))
    assert out == [*ITEMS[:8], ITEMS[10]]


@pytest.mark.parametrize(("asked", "answer"), PAIRS, ids=lambda item: str(item["type"]))
def test_a_call_for_the_providers_tool_stays_with_its_answer(
    asked: Message, answer: Message
) -> None:
    asked = {**asked, "call_id": "pair"}
    items = [user("go"), thought(), asked, answer, {"role": "assistant", "content": "ok"}]
    segments = responses.parse(items)
    assert problems("responses", items) == ()
    if answer["type"] == "function_call_output":
        assert [s.exchange for s in segments] == ["", "x2", "x2", ""]
        return
    # what follows the answer may need the reasoning at the start, so it is one turn
    assert [s.kind for s in segments] == [Kind.TEXT, Kind.TURN]
    out = responses.render(show(segments, {"s2": (Form.STUB, "clicked")}))
    assert out == [items[0], {"role": "assistant", "content": "clicked"}]
    later = responses.parse([*items[:4], thought("rs_2"), items[4]])
    assert [s.kind for s in later] == [Kind.TEXT, Kind.TURN, Kind.TURN]


def test_a_screenshot_behind_another_result_is_a_result_of_the_exchange() -> None:
    clicked, shot = PAIRS[0]
    clicked = {**clicked, "call_id": "pair", "id": "cu_1"}
    items = [user("go"), thought(), call("a"), clicked, output("a"), shot]
    segments = responses.parse(items)
    assert [s.exchange for s in segments] == ["", "x2", "x2", "x2"]
    assert segments[3].image_count == 1
    out = responses.render(show(segments, {"s4": (Form.STUB, "a screenshot has no text")}))
    assert wire(out) == wire(items)
    assert responses.render(show(segments, absent=["s2", "s3", "s4"])) == [items[0]]
    assert responses.parse(items[:4])[1].pending
    copied = responses.render([*full(segments), copy_of(segments[0])])
    assert copied[-2:] == [shot, {"type": "message", **user("[reloaded s1]\ngo")}]


def test_copies_in_an_open_tool_loop_are_part_of_the_last_output() -> None:
    segments = responses.parse(ITEMS)
    out = responses.render([*show(segments[:5]), copy_of(segments[1])])
    assert out[:7] == ITEMS[:7]
    text = f"{ITEMS[7]['output']}\n\n[reloaded s2]\nWrite notes."
    assert out[7] == {**ITEMS[7], "output": text}
    out = responses.render([*show(segments[:5]), copy_of(segments[3])])
    header = {"type": "input_text", "text": "[reloaded s4]\n"}
    first = {"type": "input_text", "text": ITEMS[7]["output"]}
    assert out[7]["output"] == [first, header, IMAGE]


def test_copies_behind_a_finished_turn_are_an_exchange() -> None:
    segments = responses.parse(ITEMS)
    out = responses.render([*full(segments), copy_of(segments[4]), note()])
    arguments = '{"id": "s5"}'
    made = {"type": "function_call", "call_id": "reload_m1", "name": "context_reload"}
    assert out[10:] == [
        {**made, "arguments": arguments},
        output("reload_m1", segments[4].text),
        ITEMS[10],
        {"type": "message", "role": "user", "content": "note"},
    ]
    assert problems("responses", out) == ()
    assert responses.render([*full(segments), copy_of(segments[3])])[11]["output"] == [IMAGE]


def test_a_copied_image_that_no_output_holds_is_told() -> None:
    drawn = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AA"}
    segments = responses.parse([user("draw"), drawn, SAID, user("on")])
    out = responses.render([*full(segments), copy_of(segments[1])])
    told = "Done.\n[1 image(s): only a reload in place shows them]"
    assert out[4] == output("reload_m1", told)


def test_segments_without_a_host_item_are_written_anew() -> None:
    asked = text_segment(
        "s1", Role.USER, Kind.TEXT, "Go.", source=Source.USER, trust=Trust.USER, pinned=True
    )
    result = Segment(
        "s3", Role.TOOL, Kind.RESULT, (Part("text", "r"),), Source.TOOL, Trust.UNTRUSTED,
        exchange="x2", call_id="c1", name="read",
    )  # fmt: skip
    turn = synthetic_turn("s2", "c1", '{"p": 1}', "x2")
    shown = show([asked, turn, result], {"s3": (Form.STUB, "short")})
    assert responses.render(shown) == [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "message", "role": "assistant", "content": "Looking."},
        call("c1", '{"p": 1}'),
        output("c1", "short"),
    ]
    hmm = Segment(
        "s4", Role.ASSISTANT, Kind.TURN, (Part("reasoning", "hm"),), Source.ASSISTANT, Trust.AGENT
    )
    assert responses.render(full([hmm])) == []


def test_refusals_of_render() -> None:
    with pytest.raises(MessageFormatError, match=r"contextpilot\.messages\.responses\.render"):
        openai.render(full(responses.parse(ITEMS)))
    with pytest.raises(MessageFormatError, match=r"contextpilot\.messages\.openai\.render"):
        responses.render(full(openai.parse([{"role": "assistant", "content": "x"}])))
    with pytest.raises(MessageFormatError, match="s4 has no text"):
        responses.render(show(responses.parse(ITEMS), {"s4": (Form.STUB, None)}))
