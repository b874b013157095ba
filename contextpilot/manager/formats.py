"""The message formats as a session needs them: to segments, and back with what shows what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from contextpilot.core.segment import Kind, Segment
from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.messages import anthropic, openai, responses
from contextpilot.messages.anthropic_wire import AnthropicWire, merged
from contextpilot.messages.builder import SegmentBuilder
from contextpilot.messages.frame import described
from contextpilot.messages.layout import Message, Outgoing, Wire, lay_out
from contextpilot.messages.openai_wire import OpenAIWire
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.responses_wire import ResponsesWire, items_of

Piece: TypeAlias = tuple[list[Message], list[Outgoing]]
"""Messages as they go out, and the laid-out ones that they consist of."""


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format.

    Attributes:
        name: what hosts call it.
        parse: messages to segments.
        extend: appends those of the messages from a position on to a builder that has the ones
            before; None: such lists are always parsed from their beginning.
        wire: makes what writes one message, given the nonce of data boundaries.
        pieces: laid-out messages as they go out.
    """

    name: str
    parse: Callable[[Sequence[Mapping[str, Any]]], tuple[Segment, ...]]
    extend: Callable[[SegmentBuilder, Sequence[Mapping[str, Any]], int], None] | None
    wire: Callable[[str], Wire]
    pieces: Callable[[Sequence[Outgoing]], list[Piece]]


@dataclass(frozen=True, slots=True)
class Rendering:
    """A request's messages, and of each the positions in the host's history that it shows."""

    messages: list[Message]
    shows: list[tuple[int, ...]]


def format_of(name: str) -> Format:
    """Returns a format by its name.

    Raises:
        ConfigurationError: for an unknown one, with the nearest known name.
    """
    if name not in FORMATS:
        raise ConfigurationError(
            f"unknown message format. Received {name!r}.{did_you_mean(str(name), FORMATS)}"
        )
    return FORMATS[name]


def spans_of(segments: Sequence[Segment], messages: int) -> dict[int, range]:
    """Returns by position of a segment's message all the positions that the segment is made of.

    That is one message, but for a turn that the format writes as several items in a row.
    """
    starts = sorted({segment.position[0] for segment in segments})
    if not starts:
        return {}
    return {
        start: range(start, end) for start, end in zip(starts, [*starts[1:], messages], strict=True)
    }


def render(
    form: Format,
    shown: Sequence[RenderedSegment],
    history: Sequence[Mapping[str, Any]],
    spans: Mapping[int, range],
    covered: Mapping[str, Sequence[int]],
    wire: Wire | None = None,
) -> Rendering:
    """Returns the messages that show some segments.

    Args:
        form: of the messages.
        shown: the visible segments in order, with positions in `history`.
        history: the messages that they were parsed from.
        spans: as `spans_of` returns them.
        covered: by id of a summary, the positions of the messages that it stands for.
        wire: what writes a message; None: the format's, without a nonce.

    Raises:
        MessageFormatError: as `render` of the format.
    """
    wire = wire or form.wire("")
    summaries = [
        (
            wire.data_message(described(one, wire.nonce)),
            [p for at in covered[one.segment.id] for p in spans[at]],
        )
        for one in shown
        if one.segment.kind == Kind.SUMMARY
    ]
    result = Rendering([], [])
    for messages, laid_out in form.pieces(lay_out(shown, wire)):
        positions = dict[int, None]()
        for each in laid_out:
            found: Sequence[int] = spans.get(each.index, ())
            if each.index < 0:
                found = next((at for made, at in summaries if made == each.message), ())
            positions.update(dict.fromkeys(found))
        result.messages.extend(messages)
        result.shows.extend(_shared_out(messages, list(positions), history))
    return result


def _shared_out(
    messages: Sequence[Message], positions: Sequence[int], history: Sequence[Mapping[str, Any]]
) -> list[tuple[int, ...]]:
    """Returns what each of a piece's messages shows, of what all of them show together."""
    if len(positions) <= 1 == len(messages):
        return [tuple(positions)]
    own = {id(history[position]): position for position in positions}
    mine = [own.get(id(message), -1) for message in messages]
    left = [position for position in positions if position not in mine]
    edited = mine.count(-1)
    shares: list[tuple[int, ...]] = [(position,) for position in left]
    if edited != len(left):
        shares = [tuple(left), *[()] * max(0, edited - 1)]
    others = iter(shares)
    return [next(others) if at < 0 else (at,) for at in mine]


def _one_by_one(outgoing: Sequence[Outgoing]) -> list[Piece]:
    return [([each.message], [each]) for each in outgoing]


def _as_items(outgoing: Sequence[Outgoing]) -> list[Piece]:
    return [(items_of([each]), [each]) for each in outgoing]


def _merged(outgoing: Sequence[Outgoing]) -> list[Piece]:
    """Returns what Anthropic messages join: neighbours of one role that were none in the host's."""
    groups: list[list[Outgoing]] = []
    for each in outgoing:
        before = groups[-1][-1] if groups else None
        joins = (
            before is not None
            and before.message["role"] == each.message["role"]
            and not 0 <= before.index == each.index - 1
        )
        if joins:
            groups[-1].append(each)
        else:
            groups.append([each])
    return [(merged(group), group) for group in groups]


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "openai": Format("openai", openai.parse, openai.extend, OpenAIWire, _one_by_one),
        "anthropic": Format("anthropic", anthropic.parse, anthropic.extend, AnthropicWire, _merged),
        "responses": Format("responses", responses.parse, None, ResponsesWire, _as_items),
    }
)
"""By name."""
