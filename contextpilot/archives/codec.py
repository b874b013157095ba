"""Segments as JSON, exactly: what comes back equals what went in, or it is refused."""

from __future__ import annotations

import json
from typing import Any

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.errors import ArchiveError

_VERSION = 1


def segment_to_json(segment: Segment) -> str:
    """Returns a segment as one JSON object.

    Lone surrogates stand in it as they are: as escapes, two of them in a row would come back as
    one character. Encode the result with the error handler "surrogatepass".

    Raises:
        ArchiveError: when a part's block or the metadata holds what JSON cannot, such as bytes, a
            tuple or a provider's own class.
    """
    blocks = [part.block for part in segment.parts]
    _check_json(blocks, f"A block of segment {segment.id!r}")
    metadata = dict(segment.metadata)
    _check_json(metadata, f"The metadata of segment {segment.id!r}")
    record = {
        "version": _VERSION,
        "id": segment.id,
        "role": segment.role.name,
        "kind": segment.kind.name,
        "parts": [[p.type, p.text, p.name, p.call_id, p.block] for p in segment.parts],
        "source": segment.source.name,
        "trust": segment.trust.name,
        "pinned": segment.pinned,
        "exchange": segment.exchange,
        "call_id": segment.call_id,
        "name": segment.name,
        "pending": segment.pending,
        "lineage": segment.lineage,
        "position": segment.position,
        "metadata": metadata,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def segment_from_json(text: str) -> Segment:
    """Returns the segment that `segment_to_json` wrote.

    Raises:
        ArchiveError: when the text is damaged, or was written by a newer version.
    """
    try:
        record = json.loads(text)
        if record["version"] != _VERSION:
            raise ArchiveError(
                f"An archived segment has format version {record['version']!r}; this program reads "
                f"version {_VERSION}. Use the program version that wrote the archive."
            )
        message, block = record["position"]
        return Segment(
            id=record["id"],
            role=Role[record["role"]],
            kind=Kind[record["kind"]],
            parts=tuple(Part(*fields) for fields in record["parts"]),
            source=Source[record["source"]],
            trust=Trust[record["trust"]],
            pinned=record["pinned"],
            exchange=record["exchange"],
            call_id=record["call_id"],
            name=record["name"],
            pending=record["pending"],
            lineage=tuple(record["lineage"]),
            position=(message, block),
            metadata=record["metadata"],
        )
    except ArchiveError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(
            f"An archived segment is damaged ({type(error).__name__}: {error}). Received "
            f"{text[:60]!r}. Restore the archive from a backup, or take the segment from the "
            "host history again."
        ) from error


def _check_json(value: Any, where: str) -> None:
    """Raises `ArchiveError` unless JSON gives back an equal value."""
    if isinstance(value, list):
        for item in value:
            _check_json(item, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ArchiveError(
                    f"{where} has a key that is not a string. Received {key!r}. Use strings."
                )
            _check_json(item, where)
    elif value is not None and not isinstance(value, (str, bool, int, float)):
        raise ArchiveError(
            f"{where} cannot be archived as JSON. Received a {type(value).__name__}. Convert "
            "provider objects to plain dictionaries and lists first, bytes to base64 text."
        )
