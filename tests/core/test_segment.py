"""What is readable of a segment, and what kind of thing it is."""

import dataclasses

import pytest
from tiny_tasks import document_segment, exchange, goal_segment

from contextpilot.core.segment import Form, Kind, Part, Role, Segment, Source, Trust


def turn(*parts: Part) -> Segment:
    return Segment("t", Role.ASSISTANT, Kind.TURN, parts, Source.ASSISTANT, Trust.AGENT)


def test_text_has_every_readable_part_in_order():
    segment = turn(
        Part("reasoning", "because"),
        Part("text", ""),
        Part("image"),
        Part("text", "Now."),
        Part("call", '{"a": 1}', name="read", call_id="c"),
    )
    assert segment.text == 'because\nNow.\nread {"a": 1}'


def test_a_call_without_arguments_still_shows_its_name():
    assert turn(Part("call", "", name="list", call_id="c")).text == "list "


def test_images_are_counted_and_not_read():
    segment = turn(Part("image"), Part("text", "x"), Part("image"))
    assert (segment.image_count, segment.text) == (2, "x")


def test_reasoning_is_known():
    assert turn(Part("reasoning", "why"), Part("text", "x")).has_reasoning
    assert not turn(Part("text", "reasoning")).has_reasoning


def test_what_no_message_order_depends_on_is_standalone():
    call, result = exchange(0, "x")
    assert document_segment("d", "x").is_standalone
    assert not any(s.is_standalone for s in (goal_segment(), call, result))


def test_segments_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        goal_segment().id = "other"  # type: ignore[misc]


def test_forms_fit_their_column():
    """Masks and observations rely on these numbers; checkpoints carry them."""
    assert [form.value for form in Form] == [0, 1, 2, 3, 4]
    assert (Form.ABSENT, Form.FULL) == (0, 1)


def test_trust_can_be_compared():
    assert min(Trust.SYSTEM, Trust.UNTRUSTED, Trust.USER) == Trust.UNTRUSTED
    assert Trust.UNTRUSTED < Trust.AGENT < Trust.USER < Trust.SYSTEM
