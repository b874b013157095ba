"""What a message is besides its content: carried by each of its segments, to rebuild it from.

The first part of a parsed segment is opaque and holds an `Envelope`. Its `fields` are the message
with the same keys in the same order; the keys whose values became parts of segments hold None and
are filled again from the parts. It is plain JSON data, so that an archive can store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from contextpilot.core.segment import Form, Part, Segment
from contextpilot.errors import MessageFormatError
from contextpilot.messages.rendered import RenderedSegment

MESSAGE = "envelope:message"
RESULT = "envelope:result"


class Envelope(dict[str, Any]):
    """`format`, `fields`, and `segments`: how many segments the message has.

    `original` is the host's own object. It is not data: it does not take part in equality, and an
    archive that stores the envelope as JSON gives back a plain mapping without it.
    """

    __slots__ = ("original",)

    def __init__(
        self,
        wire_format: str,
        original: Mapping[str, Any],
        moved: Iterable[str],
        segments: int,
    ) -> None:
        super().__init__(format=wire_format, fields=hollow(original, moved), segments=segments)
        self.original = original

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Copies and pickles as a plain mapping: an identity does not survive either."""
        return dict, (dict(self),)

    def part(self) -> Part:
        """Returns the opaque part that carries this envelope."""
        return Part("opaque", name=MESSAGE, block=self)


def hollow(mapping: Mapping[str, Any], moved: Iterable[str]) -> dict[str, Any]:
    """Returns a copy with the same key order, and None where the value moved into parts."""
    fields = dict(mapping)
    for key in moved:
        fields[key] = None
    return fields


def envelope_of(segment: Segment, wire_format: str) -> Mapping[str, Any] | None:
    """Returns the envelope of a parsed segment, or None for one made elsewhere.

    Raises:
        MessageFormatError: when the segment was parsed from another format.
    """
    parts = segment.parts
    if not parts or parts[0].name != MESSAGE or parts[0].type != "opaque":
        return None
    envelope: Mapping[str, Any] = parts[0].block
    if envelope["format"] != wire_format:
        raise MessageFormatError(
            f"segment {segment.id} cannot be rendered as {wire_format!r} messages. Received a "
            f"segment parsed from {envelope['format']!r} messages. Render it with "
            f"contextpilot.messages.{envelope['format']}.render."
        )
    return envelope


def content_parts(segment: Segment) -> tuple[Part, ...]:
    """Returns the parts that are content, without envelopes."""
    parts = segment.parts
    envelopes = 0
    while envelopes < len(parts) and parts[envelopes].name in (MESSAGE, RESULT):
        envelopes += 1
    return parts[envelopes:]


def is_whole(group: Sequence[RenderedSegment], envelope: Mapping[str, Any] | None) -> bool:
    """True where a message's segments are all there, in full, and in their own order."""
    if envelope is None or envelope["segments"] != len(group):
        return False
    blocks = [shown.segment.position[1] for shown in group]
    return all(shown.form == Form.FULL for shown in group) and all(
        a < b for a, b in pairwise(blocks)
    )


def replacement(parts: Sequence[Part], text: str) -> Part:
    """Returns the text part shown instead of `parts`: plain text stays plain, blocks a block.

    A host's cache marker on the replaced blocks stays, or its cached prefix would end there.
    """
    blocks = [part.block for part in parts if isinstance(part.block, Mapping)]
    if not blocks:
        return Part("text", text)
    block: dict[str, Any] = {"type": "text", "text": text}
    markers = [b["cache_control"] for b in blocks if b.get("cache_control") is not None]
    if markers:
        block["cache_control"] = markers[-1]
    return Part("text", text, block=block)
