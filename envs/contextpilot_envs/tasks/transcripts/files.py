"""JSON files of any size: JSONL is streamed, and a broken line costs that line only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from contextpilot.errors import TranscriptError
from contextpilot_envs.tasks.transcripts.base import UnreadableFileError

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
HEAD_LINES = 50
"""How many lines are looked at to tell a file's format."""


@dataclass(frozen=True, slots=True)
class Line:
    """One decoded line: its 1-based number, and its value or why it has none."""

    number: int
    value: Any = None
    error: str = ""


def transcript_files(path: Path) -> list[Path]:
    """Returns the files to read at `path`, sorted: itself, or all JSON files below it.

    Raises:
        TranscriptError: when there is nothing at `path`, or no JSON file below it.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TranscriptError(
            f"There is no file or folder {str(path)!r}. Name an existing folder of transcripts."
        )
    files = [file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()]
    if not files:
        raise TranscriptError(
            f"The folder {str(path)!r} holds no transcripts. "
            f"Put files ending in {', '.join(sorted(SUFFIXES))} there."
        )
    return sorted(files)


def open_lines(path: Path) -> tuple[list[Line], Iterator[Line]]:
    """Returns the first lines of a file, to tell its format by, and all of its lines.

    A file that is one JSON document over several lines counts as one line.

    Raises:
        UnreadableFileError: when the file is empty, or broken JSON that is not JSONL either.
    """
    lines = _lines(path)
    head = list(islice(lines, HEAD_LINES))
    if not head:
        raise UnreadableFileError("the file is empty", "Delete it, or record a session into it.")
    if head[0].error and not any(isinstance(line.value, dict) for line in head):
        document = [Line(1, _document(path))]
        return document, iter(document)
    return head, chain(head, lines)


def _lines(path: Path) -> Iterator[Line]:
    # json.loads(bytes) lets lone surrogates through, which a text-mode file would not
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.isspace():
                continue
            try:
                yield Line(number, json.loads(raw))
            except (ValueError, RecursionError) as error:
                yield Line(number, error=f"no valid JSON ({error})")


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        raise UnreadableFileError(
            f"no valid JSON ({error.msg})",
            "Repair the file at this line, or export the session again.",
            error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(
            f"no valid JSON ({error})", "Save it as UTF-8, or export the session again."
        ) from error
