"""Where originals go that leave a context: in memory, or in an SQLite file."""

from contextpilot.archives.base import Archive
from contextpilot.archives.codec import segment_from_json, segment_to_json
from contextpilot.archives.memory import MemoryArchive
from contextpilot.archives.sqlite import SqliteArchive

__all__ = [
    "Archive",
    "MemoryArchive",
    "SqliteArchive",
    "segment_from_json",
    "segment_to_json",
]
