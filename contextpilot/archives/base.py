"""Where everything goes that leaves a context or loses its full form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contextpilot.core.segment import Segment


class Archive(Protocol):
    """Originals by (session, id). Sessions never see each other's segments."""

    def put(self, session: str, segment: Segment) -> None:
        """Stores a segment; storing the same id again replaces it. Durable on return."""
        ...

    def get(self, session: str, segment_id: str) -> Segment:
        """Returns the stored segment, equal to what was put.

        Raises:
            ArchiveError: when it is not there.
        """
        ...

    def ids(self, session: str) -> Sequence[str]:
        """Returns the stored ids in the order they were first put."""
        ...

    def purge(self, session: str) -> int:
        """Erases a session; returns how many segments were erased."""
        ...
