"""Every exception that ContextPilot raises on purpose, and how to name a remedy.

One tree: catch `ContextPilotError` to catch all of them. Each class also inherits the built-in
that a caller would expect, so `except ValueError` works where it should.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ContextPilotError(Exception):
    """Base of every error raised on purpose."""


class IllegalEditError(ContextPilotError, ValueError):
    """An edit that an invariant forbids. `invariant` names it."""

    def __init__(self, message: str, invariant: str) -> None:
        super().__init__(message)
        self.invariant = invariant


class ConfigurationError(ContextPilotError, ValueError):
    """A setting that is unknown, of the wrong type, or out of range."""


class TranscriptError(ContextPilotError, ValueError):
    """A transcript that cannot be read. The message names file, line and remedy."""


class UnknownTaskError(ContextPilotError, KeyError):
    """A task id or task source that does not exist."""

    def __str__(self) -> str:
        """The message itself; `KeyError` would show its repr."""
        return str(self.args[0]) if self.args else ""


class MessageFormatError(ContextPilotError, ValueError):
    """A message list that is not in the format it is said to be in."""


class ArchiveError(ContextPilotError, KeyError):
    """An archived segment that is missing or unreadable."""

    def __str__(self) -> str:
        """The message itself; `KeyError` would show its repr."""
        return str(self.args[0]) if self.args else ""


class SummarizerError(ContextPilotError, RuntimeError):
    """A summarizer that failed. Nothing is replaced by its output."""


class ReaderError(ContextPilotError, RuntimeError):
    """A reader's model that is not there, cannot be reached, or takes no context of this length."""


def did_you_mean(received: str, known: Iterable[str]) -> str:
    """Returns `" Did you mean 'x'?"` for the nearest known name, or a list of all names."""
    names = sorted(known)
    near = difflib.get_close_matches(received, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(names)}."
