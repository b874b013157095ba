"""Segments of a history that grows: what has been read once is not read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextpilot.core.segment import Segment
from contextpilot.manager.formats import Format
from contextpilot.manager.tails import alike
from contextpilot.messages.builder import SegmentBuilder


class Reader:
    """Parses the histories of one conversation, of which each is mostly the one before and more.

    The messages must be objects that nobody changes: which ones were read is told by that.
    """

    def __init__(self, form: Format) -> None:
        self._format = form
        self._messages: Sequence[Mapping[str, Any]] = ()
        self._builder = SegmentBuilder()
        self._segments: tuple[Segment, ...] = ()

    def read(self, messages: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
        """Returns what the format's `parse` returns; what is unchanged is the same object.

        Raises:
            MessageFormatError: naming the first message that is not in this format.
        """
        known, before = alike(messages, self._messages), len(self._messages)
        if known == before == len(messages):
            return self._segments
        self._messages = ()  # in case that what follows fails
        if self._format.extend is None:
            self._segments = self._format.parse(messages)
        else:
            if known < before or not before:
                self._builder, known = SegmentBuilder(), 0
            self._format.extend(self._builder, messages, known)
            self._segments = self._builder.finish()
        self._messages = tuple(messages)
        return self._segments
