"""The front door: tells what each file is, reads it, and accounts for what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from contextpilot.errors import TranscriptError
from contextpilot_envs.tasks.transcripts import plain, swe_agent, tau_bench
from contextpilot_envs.tasks.transcripts.base import (
    Episode,
    LineReader,
    ReadResult,
    Skipped,
    Transcript,
    UnreadableFileError,
)
from contextpilot_envs.tasks.transcripts.claude_code import ClaudeCodeReader
from contextpilot_envs.tasks.transcripts.codex import CodexReader
from contextpilot_envs.tasks.transcripts.copilot import CopilotReader
from contextpilot_envs.tasks.transcripts.files import Line, open_lines, transcript_files
from contextpilot_envs.tasks.transcripts.oh_my_pi import OhMyPiReader

_LINE_READERS = (
    ClaudeCodeReader, CodexReader, CopilotReader, OhMyPiReader, plain.PlainMessageReader
)  # fmt: skip
_SHAPE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_REMEDY = "Remove the line, or export the session again."
_UNKNOWN = (
    "no known transcript format",
    "Known are sessions of Claude Code, Codex, Copilot CLI and Oh My Pi, SWE-agent and tau-bench "
    "runs, and OpenAI or Anthropic messages: convert the file into one of these, or move it away.",
)


def read_transcripts(path: Path) -> ReadResult:
    """Reads a file, or every JSON file below a folder; what is broken is skipped and counted.

    Args:
        path: a file or a folder. Formats are told by content, for each file on its own.

    Returns:
        The transcripts, in the order of their files, and what was skipped.

    Raises:
        TranscriptError: when there is nothing at `path`, or no JSON file below it.
    """
    files = transcript_files(path)
    names = [file.relative_to(path if path.is_dir() else path.parent) for file in files]
    stems = Counter(name.with_suffix("") for name in names)
    transcripts: list[Transcript] = []
    skipped: list[Skipped] = []
    for file, name in zip(files, names, strict=True):
        short = name.with_suffix("")
        source = _SourceFile(file, short if stems[short] == 1 else name)
        transcripts.extend(source.read())
        skipped.extend(source.skipped)
    return ReadResult(tuple(transcripts), tuple(skipped))


def read_transcript(path: Path) -> tuple[Transcript, ...]:
    """Reads one file, all or nothing; a compacted session gives several transcripts.

    Raises:
        TranscriptError: at the first thing that cannot be read, naming file, line and remedy.
    """
    if path.is_dir():
        raise TranscriptError(
            f"Expected a file. Received the folder {str(path)!r}. "
            "Read folders with read_transcripts."
        )
    result = read_transcripts(path)
    if result.skipped:
        raise TranscriptError(str(result.skipped[0]))
    return result.transcripts


class _SourceFile:
    """One file being read. `name` is its path below the folder, which its ids begin with."""

    def __init__(self, path: Path, name: PurePath) -> None:
        self.skipped: list[Skipped] = []
        self._path = path
        self._name = name.as_posix()

    def read(self) -> list[Transcript]:
        """Returns every transcript in the file, and keeps account of the rest in `skipped`."""
        try:
            head, lines = open_lines(self._path)
            reader = _line_reader(head)
            if reader is not None:
                return self._finish(self._read_lines(reader, lines), shared=True)
            if not any(_is_run(entry) for line in head for entry in _entries(line.value)):
                raise UnreadableFileError(*_UNKNOWN)
            return self._finish(self._read_runs(lines), shared=False)
        except UnreadableFileError as error:
            self._skip(error.line, error.reason, error.remedy)
        except OSError as error:
            reason = f"the file cannot be opened ({error.strerror})"
            self._skip(0, reason, "Check its permissions.")
        return []

    def _skip(self, line: int, reason: str, remedy: str = _REMEDY) -> None:
        self.skipped.append(Skipped(str(self._path), line, reason, remedy))

    def _read_lines(self, reader: LineReader, lines: Iterator[Line]) -> list[Episode]:
        """Reads a file whose lines together are one session."""
        for line in lines:
            if line.error:
                self._skip(line.number, line.error)
                continue
            try:
                reader.add(line.value)
            except _SHAPE_ERRORS as error:
                self._skip(line.number, f"no {reader.agent} line ({error!r:.120})")
        return reader.finish()

    def _read_runs(self, lines: Iterator[Line]) -> list[Episode]:
        """Reads a file whose entries are whole runs or conversations."""
        episodes: list[Episode] = []
        for line in lines:
            if line.error:
                self._skip(line.number, line.error)
                continue
            for entry in _entries(line.value):
                try:
                    episodes.append(_read_run(entry))
                except _SHAPE_ERRORS as error:
                    self._skip(line.number, f"no run or conversation ({error!r:.120})")
        return episodes

    def _finish(self, episodes: list[Episode], *, shared: bool) -> list[Transcript]:
        """Names the episodes. Those of a session share its split; runs side by side do not."""
        session = self._name.split("/subagents/")[0]
        if self._path.suffix == ".traj":  # named after the issue, of which there are many runs
            session = self._path.stem
        if not shared and len(episodes) > 1:
            sessions = [f"{session}#{number}" for number in range(len(episodes))]
        else:
            sessions = [session] * len(episodes)
        names = [episode.name or str(number) for number, episode in enumerate(episodes)]
        if len(set(names)) < len(names):  # several runs of one task, with nothing to tell them by
            names = [f"{name}-{number}" for number, name in enumerate(names)]
        return [
            Transcript(
                id=f"{self._name}#{names[number]}",
                format=episode.format,
                messages=tuple(episode.messages),
                usage=tuple(episode.usage),
                metadata={"session": sessions[number], "file": str(self._path)} | episode.metadata,
                agent=episode.agent,
            )
            for number, episode in enumerate(episodes)
        ]


def _line_reader(head: list[Line]) -> LineReader | None:
    """Returns a reader for the first line whose format is known, or None where no line tells."""
    for line in head:
        if isinstance(line.value, dict):
            for reader in _LINE_READERS:
                if reader.matches(line.value):
                    return reader()
    return None


def _entries(value: Any) -> list[Any]:
    """Returns the runs in a document: a conversation is one, and so is an object."""
    return value if isinstance(value, list) and not plain.matches(value) else [value]


def _is_run(entry: Any) -> bool:
    is_object = isinstance(entry, dict)
    known = is_object and (swe_agent.matches(entry) or tau_bench.matches(entry))
    return known or plain.matches(entry)


def _read_run(entry: Any) -> Episode:
    if plain.matches(entry):
        return plain.read(entry)
    if swe_agent.matches(entry):
        return swe_agent.read(entry)
    if tau_bench.matches(entry):
        return tau_bench.read(entry)
    raise TypeError(f"received {entry!r:.60}")
