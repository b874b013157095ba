"""What every transcript reader produces, whatever format it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Message = dict[str, Any]
Entry = Mapping[str, Any]
WireFormat = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider reported for one request, in tokens; None where it reported nothing.

    Attributes:
        input_tokens: the whole input, cached part included.
        cached_tokens: the part of the input that was read from the provider's cache.
        output_tokens: what the model wrote, reasoning included.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Transcript:
    """One recorded run of an agent, or the part of it between two compactions.

    Attributes:
        id: the file's path below the folder that was read, without suffix, "#", the episode.
        format: the wire format of `messages`.
        messages: in host-history order, ready for the parser of that format.
        usage: per assistant message; None where nothing was reported.
        metadata: "session" (what must stay in one split), "file" and, where known, "goal" and more.
        agent: the program that wrote it, such as "claude_code".
    """

    id: str
    format: WireFormat
    messages: tuple[Message, ...]
    usage: tuple[Usage | None, ...]
    metadata: Mapping[str, str]
    agent: str

    @property
    def session(self) -> str:
        """The session: both halves of a compacted run and its sub-agents share it."""
        return self.metadata["session"]

    @property
    def requests(self) -> int:
        """How many requests of the agent's model were recorded."""
        return len(self.usage)


@dataclass(frozen=True, slots=True)
class Skipped:
    """What could not be read: the file, its 1-based line (0: all of it), and what to do."""

    file: str
    line: int
    reason: str
    remedy: str

    def __str__(self) -> str:
        """The same on one line, as `file:line: reason. remedy`."""
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.reason}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Everything that was read, and everything that was not."""

    transcripts: tuple[Transcript, ...]
    skipped: tuple[Skipped, ...]


@dataclass
class Episode:
    """What a reader has collected so far of one transcript. `name` follows the "#" of its id."""

    agent: str
    format: WireFormat = "openai"
    messages: list[Message] = field(default_factory=list)
    usage: list[Usage | None] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    name: str = ""

    def add_turn(self, message: Message, usage: Usage | None = None) -> None:
        """Appends an assistant message with what its request reported."""
        self.messages.append(message)
        self.usage.append(usage)


class UnreadableFileError(Exception):
    """A file that is no transcript of an agent: says why, and what to do. Never reaches callers."""

    def __init__(self, reason: str, remedy: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.line = line


class LineReader(Protocol):
    """Reads one JSONL format: fed entry by entry, so that no file is ever in memory twice."""

    agent: str

    def add(self, entry: Entry) -> None:
        """Takes the next line.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: when the line has not the shape that
                its type promises; nothing of it is kept.
            UnreadableFileError: when the file as a whole is not to be read.
        """
        ...

    def finish(self) -> list[Episode]:
        """Returns the episodes: one, and one more for each compaction."""
        ...


def as_count(value: object) -> int | None:
    """Returns a reported token count, or None where there is none (providers send 0 or null)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
