"""Collects the segments of a task in host-history order, in roles that every provider accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.tokenizers.estimate import EstimateTokenizer


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the agent with its result."""

    tool: str
    arguments: Mapping[str, str]
    result: str


class Stream:
    """The growing history: segments, their arrivals, and what each turn cost as output."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.arrivals: list[int] = []
        self.output_tokens: list[int] = []
        self._tokenizer = EstimateTokenizer()
        self._calls = 0

    def user(self, request: int, text: str, pinned: bool = False) -> None:
        """Adds a user text."""
        self._add(
            request, Role.USER, Kind.TEXT, (Part("text", text),), Source.USER, Trust.USER,
            pinned=pinned,
        )  # fmt: skip

    def document(self, request: int, text: str, name: str) -> None:
        """Adds a retrieved document."""
        self._add(
            request, Role.USER, Kind.DOCUMENT, (Part("text", text),), Source.RETRIEVED,
            Trust.UNTRUSTED, name=name,
        )  # fmt: skip

    def turn(self, request: int, text: str, calls: Sequence[Call] = ()) -> None:
        """Adds the turn that answers the request before, and the results that it called for."""
        exchange = f"x{len(self.segments) + 1}" if calls else ""
        ids = [f"call_{self._calls + number}" for number in range(1, len(calls) + 1)]
        self._calls += len(calls)
        parts = [Part("text", text)]
        for call, call_id in zip(calls, ids, strict=True):
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            parts.append(Part("call", arguments, name=call.tool, call_id=call_id))
        self._add(
            request, Role.ASSISTANT, Kind.TURN, tuple(parts), Source.ASSISTANT, Trust.AGENT,
            exchange=exchange,
        )  # fmt: skip
        self.bill(self.segments[-1].text)
        for call, call_id in zip(calls, ids, strict=True):
            self._add(
                request, Role.TOOL, Kind.RESULT, (Part("text", call.result, call_id=call_id),),
                Source.TOOL, Trust.UNTRUSTED, exchange=exchange, call_id=call_id, name=call.tool,
            )  # fmt: skip

    def bill(self, text: str) -> None:
        """Notes what the agent wrote at one request, in estimated tokens."""
        self.output_tokens.append(self._tokenizer.count(text))

    def stating(self, value: str) -> tuple[int, ...]:
        """Returns the indices of all segments whose full form has `value`, verbatim."""
        return tuple(index for index, segment in enumerate(self.segments) if value in segment.text)

    def _add(
        self,
        request: int,
        role: Role,
        kind: Kind,
        parts: tuple[Part, ...],
        source: Source,
        trust: Trust,
        *,
        pinned: bool = False,
        exchange: str = "",
        call_id: str = "",
        name: str = "",
    ) -> None:
        number = len(self.segments)
        segment = Segment(
            id=f"s{number + 1}",
            role=role,
            kind=kind,
            parts=parts,
            source=source,
            trust=trust,
            pinned=pinned,
            exchange=exchange,
            call_id=call_id,
            name=name,
            position=(number, 0),
        )
        self.segments.append(segment)
        self.arrivals.append(request)
