"""What both formats share when they build segments: numbering, matching results to calls, pins."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.messages.envelope import content_parts

_AUTHORITY: Mapping[Kind, tuple[Source, Trust]] = {
    Kind.TEXT: (Source.USER, Trust.USER),
    Kind.IMAGE: (Source.USER, Trust.USER),
    Kind.DOCUMENT: (Source.RETRIEVED, Trust.UNTRUSTED),
}
"""Of what a user message holds: a document is material to read, not the user's own words."""


@dataclass(slots=True)
class _OpenCalls:
    """The calls of one turn that share an id, and which of them have no result yet."""

    turn: int
    names: deque[str]


class SegmentBuilder:
    """Appends segments in host order and numbers them "s1", "s2", ...

    A result belongs to the nearest preceding unanswered call of its id, since some servers re-use
    ids; calls of one turn that share an id are answered in call order. A result that answers
    nothing becomes a segment without exchange: removing it is a repair, not a matter of reading.
    More may be appended after `finish`; what is the same then is the same object.
    """

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._open: dict[str, list[_OpenCalls]] = {}
        self._spoken: list[int] = []
        self._with_results: set[int] = set()
        self._shown: dict[int, list[int]] = {}
        self._finished: list[Segment] = []
        self._special: set[int] = set()

    def system(self, parts: tuple[Part, ...], index: int, name: str = "") -> None:
        """Appends a system or developer message; it is pinned."""
        self._segments.append(
            Segment(
                self._next_id(),
                Role.SYSTEM,
                Kind.TEXT,
                parts,
                Source.SYSTEM,
                Trust.SYSTEM,
                pinned=True,
                name=name,
                position=(index, 0),
            )
        )

    def user(
        self, kind: Kind, parts: tuple[Part, ...], position: tuple[int, int], name: str = ""
    ) -> None:
        """Appends one part of a user message."""
        source, trust = _AUTHORITY[kind]
        segment = Segment(
            self._next_id(), Role.USER, kind, parts, source, trust, name=name, position=position
        )
        if kind == Kind.TEXT and _says_something(segment):
            self._spoken.append(len(self._segments))
        if kind in (Kind.TEXT, Kind.IMAGE):
            self._shown.setdefault(position[0], []).append(len(self._segments))
        self._segments.append(segment)

    def turn(self, parts: tuple[Part, ...], index: int, name: str = "") -> None:
        """Appends an assistant turn; with calls it opens the exchange "x<number of the turn>"."""
        number = len(self._segments)
        calls = [part for part in parts if part.type == "call"]
        for call in calls:
            stack = self._open.setdefault(call.call_id, [])
            if not stack or stack[-1].turn != number:
                stack.append(_OpenCalls(number, deque()))
            stack[-1].names.append(call.name)
        self._segments.append(
            Segment(
                self._next_id(),
                Role.ASSISTANT,
                Kind.TURN,
                parts,
                Source.ASSISTANT,
                Trust.AGENT,
                exchange=f"x{number + 1}" if calls else "",
                name=name,
                position=(index, 0),
            )
        )

    def result(
        self, call_id: str, parts: tuple[Part, ...], position: tuple[int, int], name: str = ""
    ) -> None:
        """Appends a tool result; `name` is used where the call it answers is not known."""
        exchange = ""
        stack = self._open.get(call_id)
        if stack:
            calls = stack[-1]
            name = calls.names.popleft() or name
            exchange = self._segments[calls.turn].exchange
            if not calls.names:
                stack.pop()
            if not stack:
                del self._open[call_id]
        self._with_results.add(position[0])
        self._segments.append(
            Segment(
                self._next_id(),
                Role.TOOL,
                Kind.RESULT,
                parts,
                Source.TOOL,
                Trust.UNTRUSTED,
                exchange=exchange,
                call_id=call_id,
                name=name,
                position=position,
            )
        )

    def finish(self) -> tuple[Segment, ...]:
        """Returns the segments, with what must stay pinned and unanswered turns pending."""
        segments, finished = self._segments, self._finished
        finished += segments[len(finished) :]
        pending = {calls.turn for stack in self._open.values() for calls in stack}
        pins = self._pins()
        for number in self._special | pending | pins:
            segment, before = segments[number], finished[number]
            pinned = segment.pinned or number in pins
            if (before.pinned, before.pending) != (pinned, number in pending):
                finished[number] = replace(segment, pinned=pinned, pending=number in pending)
        self._special = pending | pins
        return tuple(finished)

    def _pins(self) -> set[int]:
        """Returns what `pins_of` the segments would, from what was noted of user messages."""
        said = (self._segments[number].position[0] for number in reversed(self._spoken))
        requests = _requests(said, self._with_results)
        latest = {number for message in requests for number in self._shown[message]}
        return latest.union(self._spoken[:1])

    def _next_id(self) -> str:
        return f"s{len(self._segments) + 1}"


def pins_of(segments: Sequence[Segment], *, goal: bool = True) -> set[int]:
    """Returns which segments hold the goal and the latest request of the user.

    The goal is the first user text, where `goal` is True. The latest request is the texts and
    images of the latest message with user text. Where that message also carries results, its text
    is often a harness's reminder: the latest one without results, which is the user's own
    request, counts too.
    """
    with_results = {s.position[0] for s in segments if s.kind == Kind.RESULT}
    spoken = [
        number
        for number, segment in enumerate(segments)
        if segment.role == Role.USER and segment.kind == Kind.TEXT and _says_something(segment)
    ]
    said = (segments[number].position[0] for number in reversed(spoken))
    requests = _requests(said, with_results)
    return {*spoken[:goal]} | {
        number
        for number, segment in enumerate(segments)
        if segment.position[0] in requests and segment.kind in (Kind.TEXT, Kind.IMAGE)
    }


def _requests(said: Iterable[int], with_results: Collection[int]) -> set[int]:
    """Returns the messages of the user's latest requests.

    Args:
        said: messages with user text, the latest first.
        with_results: messages that carry results too.
    """
    walked = []
    for message in said:
        walked.append(message)
        if message not in with_results:
            break
    return {*walked[:1], *walked[-1:]}  # reminders in between are history


def _says_something(segment: Segment) -> bool:
    return any(part.text.strip() for part in content_parts(segment))
