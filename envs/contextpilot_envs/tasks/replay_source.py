"""Recorded runs as a task source: known data sets, a user's own folder, or made-up sessions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contextpilot.errors import (
    ConfigurationError,
    MessageFormatError,
    TranscriptError,
    UnknownTaskError,
    did_you_mean,
)
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.replay import (
    MIN_REQUESTS,
    cut,
    parse_messages,
    replay_task,
    windows,
)
from contextpilot_envs.tasks.sample import sample_transcript
from contextpilot_envs.tasks.splits import Splits, check_split
from contextpilot_envs.tasks.transcripts import ReadResult, Skipped, Transcript, read_transcripts

DATA_VARIABLE = "CONTEXTPILOT_DATA"
SAMPLE_SESSIONS = 24
_FOLDERS = {
    "tau_bench": ("tau_bench",),
    "claude_code": ("claude_code", "agent_sessions/entireio_cli_claude_code"),
    "codex": ("agent_sessions/jdx_hk_codex", "agent_sessions/jdx_mise_codex"),
    "copilot": ("agent_sessions/azure_dev_copilot_cli",),
    "oh_my_pi": ("agent_sessions/preloop_oh_my_pi",),
    "swe_agent": ("swe_agent",),
}
"""Where each known data set lies below the data folder."""

NAMES = ("sample", *_FOLDERS, "transcripts")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a task comes from: requests `start` to `stop - 1` of a transcript."""

    transcript: Transcript
    start: int
    stop: int


class ReplaySource:
    """Implements `TaskSource` over recorded runs. Files are read at the first use.

    What could not be read, and runs too short to be a task, are listed in `skipped`.
    """

    def __init__(
        self,
        name: str,
        path: Path | None = None,
        *,
        quotes: bool = True,
        window: int | None = None,
        split_file: Path | None = None,
    ) -> None:
        """Makes a source.

        Args:
            name: "sample" (made-up sessions, needs no files), a known data set, or "transcripts"
                for a folder of one's own.
            path: the data folder (by default from CONTEXTPILOT_DATA); for "transcripts" the
                folder or file itself.
            quotes: whether values that the agent quotes in its text are demanded, too.
            window: cuts training runs into windows of so many requests; validation runs and None
                stay whole.
            split_file: JSON that fixes sessions' splits; by default the one in the package.

        Raises:
            ConfigurationError: for an unknown name, a window too short, or a bad split file.
            TranscriptError: when a path is needed and there is none.
        """
        if name not in NAMES:
            raise ConfigurationError(
                f"There is no such replay source. Received {name!r}.{did_you_mean(name, NAMES)}"
            )
        if window is not None and window < MIN_REQUESTS:
            raise ConfigurationError(
                f"A window needs at least {MIN_REQUESTS} requests. Received {window}."
            )
        self.name = name
        self._quotes = quotes
        self._window = window
        self._splits = Splits.load(split_file)
        self._folders = _folders(name, path)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Everything that is not a task, with file, line, reason and remedy."""
        return self._read.skipped

    def ids(self, split: str) -> Sequence[str]:
        """Returns the task ids of a split, in the order of their files.

        Raises:
            ConfigurationError: when there is no such split.
            TranscriptError: when the folder is missing or holds no transcript.
        """
        check_split(split)
        return [
            task_id
            for task_id, origin in self._origins.items()
            if self._splits.split_of(self.name, origin.transcript.session) == split
        ]

    def load(self, task_id: str) -> Task:
        """Returns a task.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
            TranscriptError: when the folder is missing or holds no transcript.
        """
        origin = self._origins.get(task_id)
        if origin is None:
            raise UnknownTaskError(
                f"{self.name!r} has no such task. Received {task_id!r}."
                f"{did_you_mean(task_id, self._origins)}"
            )
        task = replay_task(origin.transcript, source=self.name, quotes=self._quotes)
        return cut(task, origin.start, origin.stop)

    @cached_property
    def _read(self) -> ReadResult:
        if self.name == "sample":
            sessions = tuple(sample_transcript(seed) for seed in range(SAMPLE_SESSIONS))
            return ReadResult(sessions, ())
        results = [read_transcripts(folder) for folder in self._folders]
        usable: list[Transcript] = []
        skipped = [entry for result in results for entry in result.skipped]
        for transcript in (t for result in results for t in result.transcripts):
            problem = _problem(transcript)
            if problem is None:
                usable.append(transcript)
            else:
                skipped.append(problem)
        if not usable:
            reasons = f"The first of {len(skipped)} problems: {skipped[0]}" if skipped else ""
            raise TranscriptError(
                f"No transcript in {', '.join(map(str, self._folders))} can be used. {reasons}"
            )
        return ReadResult(tuple(usable), tuple(skipped))

    @cached_property
    def _origins(self) -> dict[str, _Origin]:
        origins: dict[str, _Origin] = {}
        for transcript in self._read.transcripts:
            split = self._splits.split_of(self.name, transcript.session)
            window = self._window if split == "train" else None
            base = f"{self.name}/{transcript.id}"
            for start, stop in windows(transcript.requests, window):
                whole = (start, stop) == (0, transcript.requests)
                task_id = base if whole else f"{base}@{start}-{stop}"
                origins[task_id] = _Origin(transcript, start, stop)
        return origins


def _folders(name: str, path: Path | None) -> tuple[Path, ...]:
    """Returns the folders that a source reads."""
    if name == "sample":
        return ()
    if name == "transcripts":
        if path is None:
            raise TranscriptError(
                "The source 'transcripts' reads a folder of one's own. Received no path. "
                "Pass path=..., a folder of session files."
            )
        return (path,)
    root = path or (Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None)
    if root is None:
        raise TranscriptError(
            f"The source {name!r} reads recorded data. Received no path. "
            f"Set {DATA_VARIABLE} to the data folder, or name the folder: task.data=FOLDER in "
            "training, data=FOLDER in evaluation, path=... in Python."
        )
    folders = tuple(root / folder for folder in _FOLDERS[name])
    for folder in folders:
        if not folder.is_dir():
            raise TranscriptError(
                f"The source {name!r} reads the folder {str(folder)!r}, which does not exist. "
                f"Set {DATA_VARIABLE} to the data folder, or name the folder: task.data=FOLDER in "
                "training, data=FOLDER in evaluation, path=... in Python."
            )
    return folders


def _problem(transcript: Transcript) -> Skipped | None:
    """Returns why a transcript cannot be a task, or None where it can."""
    where = transcript.metadata["file"]
    if transcript.requests < MIN_REQUESTS:
        return Skipped(
            where,
            0,
            f"{transcript.id} has {transcript.requests} requests, fewer than {MIN_REQUESTS}",
            "Nothing to do: so short a run has no context to manage.",
        )
    try:
        parse_messages(transcript)
    except MessageFormatError as error:
        return Skipped(where, 0, str(error), "Export the session again.")
    return None
