"""Which sessions are trained on and which are held out: fixed in one file, hashed where not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean

SPLITS = ("train", "validation")
_VALIDATION_SHARE = 3
"""One session in so many is held out where nothing is fixed."""


class Splits:
    """The split of every session. A session is in one split with all its episodes and windows."""

    def __init__(self, fixed: Mapping[str, Mapping[str, str]]) -> None:
        """Takes the fixed part: data set -> session -> split."""
        self._fixed = fixed

    @classmethod
    def load(cls, path: Path | None = None) -> Splits:
        """Reads a split file; by default the one that ships with the package.

        Raises:
            ConfigurationError: when the file is missing or not a split file.
        """
        try:
            if path is None:
                text = resources.files(__package__).joinpath("splits.json").read_text("utf-8")
            else:
                text = path.read_text("utf-8")
            return cls(_checked(json.loads(text)))
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"The split file {str(path)!r} cannot be used: {error}. Write JSON of the form "
                '{"data set": {"session": "train" or "validation"}}.'
            ) from error

    def split_of(self, source: str, session: str) -> str:
        """Returns "train" or "validation"."""
        return self._fixed.get(source, {}).get(session) or hashed_split(session)


def hashed_split(session: str) -> str:
    """Returns the split of a session by its name alone: the same on every machine, forever."""
    digest = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return SPLITS[int.from_bytes(digest, "big") % _VALIDATION_SHARE == 0]


def check_split(split: str) -> str:
    """Returns `split`.

    Raises:
        ConfigurationError: when there is no such split.
    """
    if split not in SPLITS:
        raise ConfigurationError(
            f"There is no such split. Received {split!r}.{did_you_mean(split, SPLITS)}"
        )
    return split


def _checked(value: Any) -> Mapping[str, Mapping[str, str]]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, received {type(value).__name__}")
    for source, sessions in value.items():
        if not isinstance(sessions, dict):
            raise ValueError(f"{source!r} is not an object")
        for session, split in sessions.items():
            if split not in SPLITS:
                raise ValueError(f"{source!r} puts {session!r} into {split!r}")
    return value
