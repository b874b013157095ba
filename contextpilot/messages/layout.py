"""From visible segments to a list of messages: what belongs together, and in which order.

Both formats share this; a `Wire` says how one message is written. Two rules apply everywhere:

- A message whose segments are all there, in full and in order is the host's own object.
- A message that an edit leaves empty, or an assistant message that it leaves with nothing but
  reasoning, is left out: providers refuse both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Protocol, TypeAlias

from contextpilot.core.segment import Kind, Role
from contextpilot.messages.frame import framed
from contextpilot.messages.rendered import RenderedSegment

Message: TypeAlias = dict[str, Any]
Group: TypeAlias = Sequence[RenderedSegment]

RELOAD_TOOL = "context_reload"
"""Name of the tool in synthetic exchanges that show a reloaded original."""


class Stage(Enum):
    """What a message is for the question where a reloaded original may stand."""

    SYSTEM = auto()
    USER = auto()
    TURN = auto()
    CALLS = auto()
    RESULTS = auto()
    RELOADED = auto()
    MADE = auto()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way out, and its index in the host's list (-1 where it has none)."""

    message: Message
    index: int
    stage: Stage


_ANCHORS = frozenset({Stage.USER, Stage.TURN, Stage.RESULTS, Stage.RELOADED})
"""Stages beside which a reloaded original may stand."""


class Wire(Protocol):
    """How one format writes messages."""

    nonce: str
    """Part of the boundary around data; "" for none."""

    shared_roles: frozenset[Role]
    """Roles whose segments may stand together in one message."""

    def message(self, group: Group) -> Message | None:
        """Returns one message, or None where nothing is left to say."""
        ...

    def with_copy(self, results: Message, copy: RenderedSegment) -> Message:
        """Returns a message of results whose last result also shows a reloaded original."""
        ...

    def reload_exchange(self, copy: RenderedSegment) -> tuple[Message, Message]:
        """Returns a synthetic call and its result that shows a reloaded original."""
        ...

    def data_message(self, text: str) -> Message:
        """Returns a user-role message of manager-made text."""
        ...


def lay_out(segments: Sequence[RenderedSegment], wire: Wire) -> list[Outgoing]:
    """Returns the messages that show the segments, in order."""
    out: list[Outgoing] = []
    ordered = _pending_last(_exchanges_together(segments))
    for group in _groups(ordered, wire.shared_roles):
        first = group[0].segment
        if first.kind == Kind.COPY:
            _place_copy(out, group[0], wire)
            continue
        message = wire.message(group)
        if message is not None:
            out.append(Outgoing(message, _host_index(group[0]), _stage(group)))
    return out


def reload_id(copy: RenderedSegment) -> str:
    """Returns the id of the original that a copy shows."""
    return ", ".join(copy.segment.lineage) or copy.segment.id


def is_made(shown: RenderedSegment) -> bool:
    """True for what the manager wrote itself and shows with the user's role."""
    kind = shown.segment.kind
    return kind == Kind.SUMMARY or (
        kind in (Kind.NOTE, Kind.DOCUMENT) and shown.segment.position[0] < 0
    )


def _host_index(shown: RenderedSegment) -> int:
    """Returns the index in the host's list; copies and summaries stand where they were put."""
    made = shown.segment.kind in (Kind.COPY, Kind.SUMMARY)
    return -1 if made else shown.segment.position[0]


def _exchanges_together(segments: Sequence[RenderedSegment]) -> Sequence[RenderedSegment]:
    """Moves what was put between a call and its results behind the last result.

    What the host itself had there stays. Nothing moves in a list that was not reordered.
    """
    last = {s.segment.exchange: i for i, s in enumerate(segments) if s.segment.exchange}
    out: list[RenderedSegment] = []
    waiting: list[RenderedSegment] = []
    end, exchange = -1, ""
    low = high = (-1, -1)
    for i, shown in enumerate(segments):
        segment = shown.segment
        if i > end and segment.kind == Kind.TURN and segment.exchange:
            exchange, end = segment.exchange, last[segment.exchange]
            low, high = segment.position, segments[end].segment.position
        inside = segment.exchange == exchange or low < segment.position < high
        (out if i > end or inside else waiting).append(shown)
        if i == end:
            out += waiting
            waiting.clear()
    return out


def _pending_last(segments: Sequence[RenderedSegment]) -> Sequence[RenderedSegment]:
    """Moves what was put behind a turn whose calls are pending before it: nothing may follow it."""
    at = len(segments) - 1
    while at >= 0 and segments[at].segment.kind != Kind.TURN:
        at -= 1
    if at < 0 or not segments[at].segment.pending:
        return segments
    turn, tail = segments[at].segment, segments[at:]
    others = [shown for shown in tail if shown.segment.exchange != turn.exchange]
    if any(shown.segment.position > turn.position for shown in others):
        return segments  # the host itself went on: a dangling call, which is not ours to hide
    members = [shown for shown in tail if shown.segment.exchange == turn.exchange]
    return [*segments[:at], *others, *members]


def _groups(
    segments: Sequence[RenderedSegment], shared_roles: frozenset[Role]
) -> list[list[RenderedSegment]]:
    """Returns the segments of each message: neighbours from the same host message."""
    groups: list[list[RenderedSegment]] = []
    previous = -1
    for shown in segments:
        index = _host_index(shown)
        joins = (
            index == previous >= 0
            and shown.segment.role in shared_roles
            and groups[-1][0].segment.role in shared_roles
        )
        if joins:
            groups[-1].append(shown)
        else:
            groups.append([shown])
        previous = index
    return groups


def _stage(group: Group) -> Stage:
    first = group[0].segment
    if first.role == Role.SYSTEM:
        return Stage.SYSTEM
    if first.kind == Kind.TURN:
        return Stage.CALLS if first.exchange else Stage.TURN
    if any(shown.segment.kind == Kind.RESULT for shown in group):
        return Stage.RESULTS
    return Stage.MADE if is_made(group[0]) else Stage.USER


def _place_copy(out: list[Outgoing], copy: RenderedSegment, wire: Wire) -> None:
    """Shows a reloaded original, as near to the end of `out` as the message order allows.

    Inside an open tool loop it is appended to the last result; behind a finished turn it is an
    exchange of its own; otherwise that exchange stands just before the latest user message, or,
    where nothing precedes that message, the text follows it as framed data: an assistant turn that
    the provider did not write must neither open a conversation nor stand at its end.
    The place depends on what precedes the copy only, so it is the same at every later request.
    """
    at = len(out) - 1
    while at >= 0 and out[at].stage not in _ANCHORS:
        at -= 1
    stage = out[at].stage if at >= 0 else Stage.SYSTEM
    behind = at + 1
    while behind < len(out) and out[behind].stage in (Stage.SYSTEM, Stage.MADE):
        behind += 1
    if stage == Stage.RESULTS:
        out[at] = replace(out[at], message=wire.with_copy(out[at].message, copy))
    elif stage in (Stage.TURN, Stage.RELOADED):
        out[behind:behind] = _reloaded(copy, wire)
    elif any(before.stage != Stage.SYSTEM for before in out[: max(at, 0)]):
        out[at:at] = _reloaded(copy, wire)
    else:
        text = framed(
            copy.shown_text, f"reloaded {reload_id(copy)}", copy.segment.trust, wire.nonce
        )
        out.insert(behind, Outgoing(wire.data_message(text), -1, Stage.MADE))


def _reloaded(copy: RenderedSegment, wire: Wire) -> list[Outgoing]:
    return [Outgoing(message, -1, Stage.RELOADED) for message in wire.reload_exchange(copy)]
