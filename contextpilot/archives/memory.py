"""An archive that lives as long as the process."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from contextpilot.archives.base import Archive
from contextpilot.core.segment import Segment
from contextpilot.errors import ArchiveError


class MemoryArchive(Archive):
    """Keeps segments in a dictionary per session. Thread-safe."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Segment]] = {}
        self._lock = threading.Lock()

    def put(self, session: str, segment: Segment) -> None:
        """Stores a segment; storing the same id again replaces it."""
        stored = self._sessions.get(session)
        if stored is not None and stored.get(segment.id) == segment:
            return
        segment = _detached(segment)
        with self._lock:
            self._sessions.setdefault(session, {})[segment.id] = segment

    def get(self, session: str, segment_id: str) -> Segment:
        """Returns the stored segment.

        Raises:
            ArchiveError: when it is not there.
        """
        with self._lock:
            segment = self._sessions.get(session, {}).get(segment_id)
        if segment is None:
            raise missing_segment(session, segment_id)
        return _detached(segment)

    def ids(self, session: str) -> Sequence[str]:
        """Returns the stored ids in the order they were first put."""
        with self._lock:
            return tuple(self._sessions.get(session, ()))

    def purge(self, session: str) -> int:
        """Erases a session; returns how many segments were erased."""
        with self._lock:
            return len(self._sessions.pop(session, ()))


def missing_segment(session: str, segment_id: str) -> ArchiveError:
    """Returns the error for an id that a session did not archive."""
    return ArchiveError(
        f"Nothing is archived under this id in session {session!r}. Received {segment_id!r}. "
        "List what there is with ids(session); a purged session is gone."
    )


def _detached(segment: Segment) -> Segment:
    """Returns the segment with its own copies of provider objects.

    Hosts change their messages in place; an original must not change with them.
    """
    for part in segment.parts:
        if part.block is not None:
            break
    else:
        return segment
    parts = [
        part if part.block is None else replace(part, block=_copied(part.block))
        for part in segment.parts
    ]
    return replace(segment, parts=tuple(parts))


def _copied(value: Any) -> Any:
    """Returns a copy that shares no container with the value, many times faster than `deepcopy`."""
    kind = type(value)
    if kind is str:
        return value
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    if kind is list:
        return [_copied(inner) for inner in value]
    return copy.deepcopy(value)
