"""The segments that edits make: copies of originals, and summaries that stand for several."""

from __future__ import annotations

from collections.abc import Sequence

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, text_segment


def copy_segment(original: Segment, segment_id: str) -> Segment:
    """Returns what a reload at the end shows: the original's content, naming where it is from."""
    parts = original.parts
    if original.kind == Kind.TURN:
        parts = tuple(Part("text", part.text) if part.type == "call" else part for part in parts)
    return Segment(
        segment_id, Role.TOOL, Kind.COPY, parts, original.source, original.trust,
        name=original.name, lineage=(original.id,),
    )  # fmt: skip


def summary_segment(segment_id: str, text: str, originals: Sequence[Segment]) -> Segment:
    """Returns a summary with the minimum trust of its sources, naming what it stands for."""
    lineage = dict.fromkeys(
        source for segment in originals for source in (segment.id, *segment.lineage)
    )
    return text_segment(
        segment_id, Role.USER, Kind.SUMMARY, text, source=Source.MANAGER,
        trust=min(segment.trust for segment in originals), lineage=tuple(lineage),
    )  # fmt: skip
