"""Two short conversations, and the segments that tests put into them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from messages.message_lists import Messages

from contextpilot.core.segment import Form, Kind, Role, Segment, Source, Trust, text_segment
from contextpilot.messages.rendered import RenderedSegment

LONG = "pump " * 100


def show(
    segments: Sequence[Segment],
    forms: dict[str, tuple[Form, str | None]] | None = None,
    absent: Sequence[str] = (),
) -> list[RenderedSegment]:
    changed = forms or {}
    return [
        RenderedSegment(s, *changed.get(s.id, (Form.FULL, None)))
        for s in segments
        if s.id not in absent
    ]


def copy_of(segment: Segment, segment_id: str = "m1") -> RenderedSegment:
    made = Segment(
        segment_id, Role.USER, Kind.COPY, segment.parts, Source.MANAGER, segment.trust,
        lineage=(segment.id,),
    )  # fmt: skip
    return RenderedSegment(made, Form.FULL)


def note(text: str = "note", kind: Kind = Kind.NOTE) -> RenderedSegment:
    segment = text_segment("m9", Role.USER, kind, text, source=Source.MANAGER, trust=Trust.USER)
    return RenderedSegment(segment, Form.FULL)


OPENAI: Messages = [
    {"role": "system", "content": "rule"},
    {"role": "user", "content": "Write notes."},
    {
        "role": "assistant",
        "content": "Writing.",
        "reasoning_content": "think",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {
                    "name": "write",
                    "arguments": json.dumps({"path": "a.md", "text": LONG}),
                },
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "write", "content": "written\n" * 9},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Next."},
]
ANTHROPIC: Messages = [
    {"role": "user", "content": [{"type": "text", "text": "Write notes."}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "think", "signature": "sig"},
            {"type": "text", "text": "Writing."},
            {
                "type": "tool_use",
                "id": "c1",
                "name": "write",
                "input": {"path": "a.md", "text": LONG},
                "caller": {"type": "direct"},
            },
        ],
    },
    {
        "role": "user",
        "content": [
            {"tool_use_id": "c1", "type": "tool_result", "content": "written", "is_error": False}
        ],
    },
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Next."},
]
