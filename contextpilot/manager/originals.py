"""The host's messages as they were, of those that a request does not show as they are."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.segment import Form, Segment
from contextpilot.edits.services import Services
from contextpilot.errors import ArchiveError
from contextpilot.manager.entries import Entries, Present
from contextpilot.manager.formats import Format, render
from contextpilot.manager.history import Message, Said
from contextpilot.manager.message_key import copied
from contextpilot.messages.envelope import envelope_of
from contextpilot.messages.rendered import RenderedSegment

_logger = logging.getLogger(__name__)


class Originals:
    """Copies by message number; after a restart they come from the archive, which has them too.

    Attributes:
        places: by number, the number of the last message of its segment, and which of the
            segment's messages it is; a restarted session needs it.
    """

    def __init__(self, form: Format, entries: Entries, services: Services) -> None:
        self._format, self._entries, self._services = form, entries, services
        self._copies: dict[int, Message] = {}
        self.places: dict[int, tuple[int, int]] = {}

    def get(self, number: int) -> Message | None:
        """Returns the message of a number, or None where it was never kept."""
        if number not in self._copies and number >= 0:
            message = self._from_archive(number)
            if message is not None:
                self._copies[number] = message
        return self._copies.get(number)

    def keep(
        self,
        history: Sequence[Said],
        request: Sequence[Mapping[str, Any]],
        present: Present,
        spans: Mapping[int, range],
    ) -> None:
        """Keeps what a request does not show as it is, here and in the archive.

        Args:
            history: what the request was rendered from.
            request: its messages.
            present: the history's segments.
            spans: by position of a segment's message, all the positions it is made of.
        """
        sent = {id(message) for message in request}
        starts = set()
        for start, span in spans.items():
            for at in span:
                number, message = history[at]
                if id(message) not in sent and number >= 0 and number not in self._copies:
                    self._copies[number] = copied(message)
                    self.places[number] = history[span[-1]].number, at - start
                    starts.add(start)
        for index in present.indices if starts else ():
            segment = self._entries.all[index].segment
            if segment.position[0] in starts:
                self._save(segment)

    def _save(self, segment: Segment) -> None:
        """Archives an original; where that fails, the copy of this process must do."""
        try:
            self._services.archive.put(self._services.session, segment)
        except Exception:  # the archive may be anybody's; the request goes out all the same
            _logger.exception("Segment %s could not be archived.", segment.id)

    def _from_archive(self, number: int) -> Message | None:
        """Returns a message made again from its archived segments, if all of them are there."""
        archive, session = self._services.archive, self._services.session
        last, offset = self.places.get(number, (number, 0))
        try:
            segments = [
                archive.get(session, self._entries.id(index))
                for index, key in enumerate(self._entries.keys)
                if key is not None and key[0] == last
            ]
        except ArchiveError:
            return None
        envelope = envelope_of(segments[0], self._format.name) if segments else None
        if envelope is None or envelope["segments"] != len(segments):
            return None
        messages = self._render(segments)
        return messages[offset] if offset < len(messages) else None

    def _render(self, segments: Sequence[Segment]) -> list[dict[str, Any]]:
        shown = [
            RenderedSegment(replace(segment, position=(0, segment.position[1])), Form.FULL)
            for segment in segments
        ]
        return render(self._format, shown, (), {}, {}).messages
