"""What a context is made of: immutable segments, and the forms they are shown in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any


class Role(IntEnum):
    """Who a segment speaks as on the wire."""

    SYSTEM = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3


class Kind(IntEnum):
    """What a segment is. `TURN` is an assistant turn: reasoning, text and calls together."""

    TEXT = 0
    TURN = 1
    RESULT = 2
    DOCUMENT = 3
    IMAGE = 4
    NOTE = 5
    SUMMARY = 6
    COPY = 7
    """A reloaded original, appended at the end of the context."""


class Source(IntEnum):
    """Where a segment's content comes from."""

    SYSTEM = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3
    RETRIEVED = 4
    MANAGER = 5


class Trust(IntEnum):
    """How much authority content has; a summary has the minimum over its sources."""

    UNTRUSTED = 0
    AGENT = 1
    USER = 2
    SYSTEM = 3


class Form(IntEnum):
    """How a segment is shown. A fold leaves a bare `STUB` or an `OUTLINE`, by its preset."""

    ABSENT = 0
    FULL = 1
    STUB = 2
    OUTLINE = 3
    SUMMARY = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One content part of a segment.

    `type` is "text", "reasoning", "call", "image" or "opaque" (kept, never read). `text` is what a
    reader sees: for a call its argument JSON, for an image and an opaque part nothing. `block` is
    the provider's own object, verbatim, or None where the wire form is plain text.
    """

    type: str
    text: str = ""
    name: str = ""
    call_id: str = ""
    block: Any = None


@dataclass(frozen=True)
class Segment:
    """The smallest addressable unit of a context.

    Attributes:
        id: short and stable within a conversation, such as "s17".
        parts: content, in wire order.
        exchange: the id shared by an assistant turn with calls and all their results, else "".
        call_id: for a result, the call that it answers.
        name: tool name, document title or author; may be empty.
        pending: for a turn, some call has no result yet.
        lineage: for a summary or a copy, the ids that it stands for.
        position: (message, block) in the host history; (-1, -1) for manager-made segments.
    """

    id: str
    role: Role
    kind: Kind
    parts: tuple[Part, ...]
    source: Source
    trust: Trust
    pinned: bool = False
    exchange: str = ""
    call_id: str = ""
    name: str = ""
    pending: bool = False
    lineage: tuple[str, ...] = ()
    position: tuple[int, int] = (-1, -1)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """Everything that the agent's model can read in this segment, in order."""
        return "\n".join(
            f"{part.name} {part.text}" if part.type == "call" else part.text
            for part in self.parts
            if part.text or part.type == "call"
        )

    @cached_property
    def has_reasoning(self) -> bool:
        """True where a part is provider reasoning, which is kept whole or left out."""
        return any(part.type == "reasoning" for part in self.parts)

    @cached_property
    def image_count(self) -> int:
        """How many images the parts hold; each is charged a vision price."""
        return sum(part.type == "image" for part in self.parts)

    @property
    def is_standalone(self) -> bool:
        """True for documents, notes and copies: what no message order depends on."""
        return self.kind in (Kind.DOCUMENT, Kind.NOTE, Kind.COPY)


def text_segment(
    segment_id: str,
    role: Role,
    kind: Kind,
    text: str,
    *,
    source: Source,
    trust: Trust,
    pinned: bool = False,
    name: str = "",
    lineage: tuple[str, ...] = (),
) -> Segment:
    """Returns a segment with one text part."""
    return Segment(
        segment_id, role, kind, (Part("text", text),), source, trust, pinned, name=name,
        lineage=lineage,
    )  # fmt: skip
