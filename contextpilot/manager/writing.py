"""What a desk shows, written as messages: what was written for the last request is not again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from contextpilot.core.segment import Segment
from contextpilot.manager.desk import Desk
from contextpilot.manager.formats import Format, Rendering, render
from contextpilot.manager.history import Said
from contextpilot.manager.markers import marker_of, with_markers
from contextpilot.manager.memory import Memory
from contextpilot.manager.showing import Shown, covered
from contextpilot.messages.layout import Group, Message, Wire
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import segment_tokens

Spans = Mapping[int, range]


class RememberingWire:
    """A format's wire that returns the message of a group that it wrote for the last request."""

    def __init__(self, wire: Wire, memory: Memory[Message | None]) -> None:
        self.nonce, self.shared_roles = wire.nonce, wire.shared_roles
        self._wire, self._memory = wire, memory

    def message(self, group: Group) -> Message | None:
        """Returns the message of a group, as the wire does."""
        return self._memory.of(tuple(group), lambda: self._wire.message(group))

    def with_copy(self, results: Message, copy: RenderedSegment) -> Message:
        """Returns results that show a reloaded original too, as the wire does."""
        return self._wire.with_copy(results, copy)

    def reload_exchange(self, copy: RenderedSegment) -> tuple[Message, Message]:
        """Returns a call and its result, as the wire does."""
        return self._wire.reload_exchange(copy)

    def data_message(self, text: str) -> Message:
        """Returns a user-role message, as the wire does."""
        return self._wire.data_message(text)


class Writer:
    """Writes the requests of one desk.

    Messages are shared from request to request: who hands them out hands out copies.
    """

    def __init__(self, form: Format, nonce: str, desk: Desk, tokenizer: Tokenizer) -> None:
        self._format, self._desk, self._tokenizer = form, desk, tokenizer
        self._written = Memory[Message | None]()
        self._markers, self._tokens = Memory[Any](), Memory[int]()
        self._wire = RememberingWire(form.wire(nonce), self._written)
        self._shown = Shown(desk)

    def begin(self) -> None:
        """Begins a request; what the last one did not have is forgotten."""
        for memory in (self._written, self._markers, self._tokens):
            memory.begin()

    def write(self, history: Sequence[Message], spans: Spans) -> Rendering:
        """Returns the messages that show the desk's visible segments.

        Args:
            history: the messages that the segments were parsed from.
            spans: as `spans_of` returns them.
        """
        shown = self._shown.segments()
        out = render(self._format, shown, history, spans, covered(self._desk), self._wire)
        return with_markers(out, history, self._marker_of)

    def uncounted(self, out: Rendering, said: Sequence[Said], spans: Spans) -> int:
        """Returns what a request's messages take beyond what the context counts."""
        desk = self._desk
        hosts = {id(one.message): at for at, one in enumerate(said)}
        places = [hosts.get(id(message), -1) for message in out.messages]
        sent = set(places)
        whole = {at: 0 for span in spans.values() if sent.issuperset(span) for at in span}
        for index in desk.present.indices:
            entry = desk.entries.all[index]
            if entry.segment.position[0] in whole:
                whole[entry.segment.position[0]] += entry.full_tokens
        tokens = sum(whole.values())
        pairs = zip(places, out.messages, strict=True)
        for is_whole, run in groupby(pairs, lambda pair: pair[0] in whole):
            if not is_whole:
                tokens += self._tokens_of(tuple(message for _, message in run))
        return tokens - desk.context.total

    def _tokens_of(self, messages: tuple[Message, ...]) -> int:
        def counted() -> int:
            parsed: tuple[Segment, ...] = self._format.parse(messages)
            return sum(segment_tokens(self._tokenizer, segment) for segment in parsed)

        return self._tokens.of(messages, counted)

    def _marker_of(self, message: Message) -> Any:
        return self._markers.of((message,), lambda: marker_of(message))
