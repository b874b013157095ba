"""An archive that reads through to another one, and never writes to it."""

from __future__ import annotations

from collections.abc import Sequence

from contextpilot.archives.base import Archive
from contextpilot.archives.memory import MemoryArchive
from contextpilot.core.segment import Segment
from contextpilot.errors import ArchiveError


class OverlayArchive(Archive):
    """What is put here stays here; everything else is looked up in the archive below."""

    def __init__(self, below: Archive) -> None:
        self._below, self._own = below, MemoryArchive()

    def put(self, session: str, segment: Segment) -> None:
        """Stores a segment on top."""
        self._own.put(session, segment)

    def get(self, session: str, segment_id: str) -> Segment:
        """Returns a segment from here, or from below.

        Raises:
            ArchiveError: when neither has it.
        """
        try:
            return self._own.get(session, segment_id)
        except ArchiveError:
            return self._below.get(session, segment_id)

    def ids(self, session: str) -> Sequence[str]:
        """Returns the ids of both."""
        return tuple(dict.fromkeys([*self._below.ids(session), *self._own.ids(session)]))

    def purge(self, session: str) -> int:
        """Erases what is on top."""
        return self._own.purge(session)
