"""Segments after edits, and segments that no host message stands behind."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from messages.message_lists import WORDS

from contextpilot.core.segment import Form, Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.messages.rendered import RenderedSegment


def made(draw: st.DrawFn, number: int, segments: Sequence[Segment]) -> Segment:
    """Returns something that a manager puts into a context, and hosts never see."""
    kind = draw(st.sampled_from([Kind.SUMMARY, Kind.NOTE, Kind.DOCUMENT, Kind.COPY]))
    original = draw(st.sampled_from(list(segments)))
    trust = draw(st.sampled_from(list(Trust)))
    if kind == Kind.COPY:
        return Segment(
            f"m{number}", Role.USER, kind, original.parts, Source.MANAGER, original.trust,
            lineage=(original.id,),
        )  # fmt: skip
    return text_segment(
        f"m{number}", Role.USER, kind, draw(WORDS), source=Source.MANAGER, trust=trust,
        lineage=(original.id,),
    )  # fmt: skip


@st.composite
def edited(draw: st.DrawFn, segments: Sequence[Segment]) -> list[RenderedSegment]:
    """Returns the segments after edits as a policy may make them.

    Whole exchanges and unpinned standalone segments are dropped, others shown in another form,
    documents moved anywhere and manager-made segments put anywhere.
    """
    gone = {
        key
        for key in dict.fromkeys(s.exchange or s.id for s in segments if not s.pinned)
        if draw(st.booleans())
    }
    pending = {s.exchange for s in segments if s.pending}
    start = sum(s.role == Role.SYSTEM for s in segments)  # nothing is put before the system prompt
    shown = []
    for segment in segments:
        if (segment.exchange or segment.id) in gone - pending and not segment.pinned:
            continue
        form = draw(st.sampled_from([Form.FULL, Form.FULL, Form.STUB, Form.OUTLINE, Form.SUMMARY]))
        text = None if form == Form.FULL else draw(st.sampled_from(["folded", "文 folded", ""]))
        if segment.pinned or (text == "" and segment.kind == Kind.TEXT):
            form, text = Form.FULL, None
        shown.append(RenderedSegment(segment, form, text))
    for item in [s for s in shown if s.segment.kind == Kind.DOCUMENT]:
        if draw(st.booleans()):
            shown.remove(item)
            shown.insert(draw(st.integers(start, len(shown))), item)
    for number in range(draw(st.integers(0, 3))):
        place = draw(st.integers(start, len(shown)))
        shown.insert(place, RenderedSegment(made(draw, number, segments), Form.FULL))
    return shown


def synthetic_turn(segment_id: str, call_id: str, arguments: str, exchange: str) -> Segment:
    """Returns a turn that no host message stands behind."""
    parts = (
        Part("reasoning", "unsigned"),
        Part("text", "Looking."),
        Part("call", arguments, "read", call_id),
    )
    return Segment(
        segment_id, Role.ASSISTANT, Kind.TURN, parts, Source.ASSISTANT, Trust.AGENT,
        exchange=exchange,
    )  # fmt: skip
