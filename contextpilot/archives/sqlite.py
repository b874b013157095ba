"""An archive in one SQLite file, which survives the process."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from contextpilot.archives.base import Archive
from contextpilot.archives.codec import segment_from_json, segment_to_json
from contextpilot.archives.memory import missing_segment
from contextpilot.core.segment import Segment
from contextpilot.errors import ArchiveError

_APPLICATION_ID = 0x43504152  # "CPAR": marks the file as an archive of ours
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that is writing."""

_TABLE = """
CREATE TABLE IF NOT EXISTS segments (
    position INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    id BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (session, id)
)
"""
_PUT = """
INSERT INTO segments (session, id, body) VALUES (?, ?, ?)
ON CONFLICT (session, id) DO UPDATE SET body = excluded.body
"""


class SqliteArchive(Archive):
    """Keeps segments in a file that only its owner can read (mode 0600).

    What `put` has returned from is on the disk: a killed process and a power cut lose none of it.
    Threads may share one archive, and processes one file. Close it, or use it in a `with`
    statement.
    """

    def __init__(self, path: str | Path) -> None:
        """Opens an archive, and makes the file where there is none; its folder must exist.

        Raises:
            ArchiveError: when the file cannot be opened or is not an archive.
        """
        self._path = Path(path).absolute()
        self._lock = threading.Lock()
        try:
            # Made here rather than by SQLite, so that it is private from its first byte on; the
            # write-ahead log inherits the mode.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._path.chmod(0o600)
        except OSError as error:
            raise ArchiveError(
                f"Cannot open the archive file. Received {str(self._path)!r}: {error.strerror}. "
                "Give a path in an existing folder that this user can write to."
            ) from error
        with self._readable():
            self._connection = sqlite3.connect(
                self._path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
            )
        try:
            with self._readable():
                self._prepare()
        except ArchiveError:
            self._connection.close()
            raise

    def put(self, session: str, segment: Segment) -> None:
        """Stores a segment; storing the same id again replaces it. Durable on return.

        Raises:
            ArchiveError: when the segment is not JSON, or the file cannot be written.
        """
        row = (_encoded(session), _encoded(segment.id), _encoded(segment_to_json(segment)))
        with self._lock, self._readable():
            self._connection.execute(_PUT, row)

    def get(self, session: str, segment_id: str) -> Segment:
        """Returns the stored segment.

        Raises:
            ArchiveError: when it is not there, or the file is damaged.
        """
        with self._lock, self._readable():
            row = self._connection.execute(
                "SELECT body FROM segments WHERE session = ? AND id = ?",
                (_encoded(session), _encoded(segment_id)),
            ).fetchone()
        if row is None:
            raise missing_segment(session, segment_id)
        return segment_from_json(_decoded(row[0]))

    def ids(self, session: str) -> Sequence[str]:
        """Returns the stored ids in the order they were first put."""
        with self._lock, self._readable():
            rows = self._connection.execute(
                "SELECT id FROM segments WHERE session = ? ORDER BY position", (_encoded(session),)
            ).fetchall()
        return tuple(_decoded(row[0]) for row in rows)

    def purge(self, session: str) -> int:
        """Erases a session from the file; returns how many segments were erased."""
        with self._lock, self._readable():
            erased = self._connection.execute(
                "DELETE FROM segments WHERE session = ?", (_encoded(session),)
            ).rowcount
            # Deleted rows are overwritten (secure_delete); the log still has their old pages.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return erased

    def close(self) -> None:
        """Closes the file; the archive cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> SqliteArchive:
        """Returns the archive, which the `with` statement will close."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the archive."""
        self.close()

    def _prepare(self) -> None:
        """Sets the connection up, and makes the table in a new file."""
        execute = self._connection.execute
        application_id = execute("PRAGMA application_id").fetchone()[0]
        if application_id != _APPLICATION_ID:
            if execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                raise self._error("It is an SQLite file of another program")
            execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA secure_delete = ON")
        execute(_TABLE)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turns every failure of SQLite into an `ArchiveError` with its remedy."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(str(error).capitalize()) from error

    def _error(self, cause: str) -> ArchiveError:
        return ArchiveError(
            f"The archive file cannot be used. Received {str(self._path)!r}: {cause}. If it is "
            "damaged, move it away (a new one is then made) or restore it from a backup; if it is "
            "locked or closed, let the other writer finish, or open it again."
        )


def _encoded(text: str) -> bytes:
    """Returns bytes for a column; SQLite's own text type refuses lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    """Returns the text of a column.

    Raises:
        ArchiveError: when it is not what `_encoded` wrote.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, AttributeError) as error:
        raise ArchiveError(
            f"An archived row is damaged ({error}). Received {repr(data)[:40]}. Restore the "
            "archive file from a backup, or take the segment from the host history again."
        ) from error
