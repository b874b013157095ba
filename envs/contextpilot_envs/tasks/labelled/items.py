"""What the labelled data sets share: reading files with clear errors, splits, and the source."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from contextpilot.errors import TranscriptError, UnknownTaskError, did_you_mean
from contextpilot_envs.tasks.replay_source import DATA_VARIABLE
from contextpilot_envs.tasks.splits import SPLITS, check_split, hashed_split

Wanted = TypeVar("Wanted")


class LabelledSource:
    """A task source whose ids are known when it is made."""

    def __init__(self, name: str, ids: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self._ids = ids

    def ids(self, split: str) -> Sequence[str]:
        """Returns the task ids of a split.

        Raises:
            ConfigurationError: when there is no such split.
        """
        return self._ids[check_split(split)]

    def _require(self, task_id: str) -> None:
        """Raises `UnknownTaskError` when the id is none of this source's."""
        known = [known for ids in self._ids.values() for known in ids]
        if task_id not in known:
            raise UnknownTaskError(
                f"Task {task_id!r} does not belong to {self.name!r}.{did_you_mean(task_id, known)}"
            )


def data_folder(data: Path | None) -> Path:
    """Returns the data folder, by default the one that the environment names.

    Raises:
        TranscriptError: when neither is given.
    """
    if data is None and DATA_VARIABLE not in os.environ:
        raise TranscriptError(
            f"No data folder was given, and {DATA_VARIABLE} is not set. Set it to the folder that "
            "holds the data sets, or pass the folder."
        )
    return data if data is not None else Path(os.environ[DATA_VARIABLE])


def by_split(item_ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns the items of each split, by a hash of the id, in the order of the hashes.

    Which split an item is in depends on nothing but its id, so more data moves nothing.
    """
    ordered = sorted(item_ids, key=digest)
    return {split: [item for item in ordered if hashed_split(item) == split] for split in SPLITS}


def digest(text: str) -> int:
    """Returns a number that is the same for the same text on every machine."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def read_text(path: Path) -> str:
    """Returns the text of a file, line endings as they are.

    Raises:
        TranscriptError: when the file is missing or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be read: {error.strerror}. Point the source to the folder that holds "
            f"{path.name!r}."
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TranscriptError(
            f"{path}, line {line}: not UTF-8 (byte {error.object[error.start]:#04x}). "
            "Convert the file to UTF-8."
        ) from error


def read_records(path: Path) -> list[dict[str, Any]]:
    """Returns the records of a file that is one JSON array of objects.

    Raises:
        TranscriptError: when it is anything else.
    """
    try:
        records = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise TranscriptError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}). Download the file again."
        ) from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise TranscriptError(
            f"{path}, line 1: must be a JSON array of objects. Received "
            f"{type(records).__name__}. Use the data set's own file, not one line of it."
        )
    return records


def field(record: Mapping[str, Any], key: str, kind: type[Wanted], where: str) -> Wanted:
    """Returns `record[key]`.

    Raises:
        TranscriptError: when it is missing or not a `kind`; `where` names file and record.
    """
    value = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(value, kind):
        received = "nothing" if value is None else type(value).__name__
        raise TranscriptError(
            f"{where}: field {key!r} must be a {kind.__name__}. Received {received}. "
            "Use the data set's own format, or leave the record out."
        )
    return value
