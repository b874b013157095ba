"""Failing CI runs, read piece by piece; the lines that show the error have to be quoted.

The end of the log is read first, as one does, and then the rest from the start. So what was seen
first is needed last, under everything that was read to find the cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contextpilot.errors import ConfigurationError, TranscriptError
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.labelled.items import (
    LabelledSource,
    data_folder,
    digest,
    read_text,
)
from contextpilot_envs.tasks.splits import SPLITS
from contextpilot_envs.tasks.synthetic.stream import Call, Stream

_LINE_END = re.compile(r"\r\n|\r|\n")
_LABEL = re.compile(r"([EC]) (\d+)(?:-(\d+))?")
_GOAL = "The build failed. Read its log, and then quote the lines of each error."
_VALIDATION_SHARE = 3
_GAP = 2
"""Ranges that are nearer to each other are one error."""


@dataclass(frozen=True, slots=True)
class _Log:
    """A log's lines, and the 0-based (start, stop) of each error in it."""

    lines: tuple[str, ...]
    errors: tuple[tuple[int, int], ...]


class CiLogSource(LabelledSource):
    """Tasks "ci_logs/jimfs_1890", one for each folder in `cidiff/` of the data folder."""

    def __init__(
        self, data: Path | None = None, lines_per_read: int = 120, tail_first: bool = True
    ) -> None:
        """Finds the logs; they are read when they are loaded.

        Args:
            data: the folder that holds `cidiff/`; by default from CONTEXTPILOT_DATA.
            lines_per_read: how many lines one call returns.
            tail_first: the agent looks at the end of the log before it reads on from the start.

        Raises:
            TranscriptError: when there is no log.
        """
        if lines_per_read < 1:
            raise ConfigurationError(
                f"`lines_per_read` must be 1 or more. Received {lines_per_read}."
            )
        self._folder = data_folder(data) / "cidiff"
        self._lines_per_read = lines_per_read
        self._tail_first = tail_first
        items = [path.parent.name for path in self._folder.glob("*/fail.log")]
        if not items:
            raise TranscriptError(
                f"{self._folder} holds no logs. Point the source to the folder above `cidiff/`, "
                "which has a folder with `fail.log` and `groundtruth` for each run."
            )
        super().__init__("ci_logs", _splits(items))

    def load(self, task_id: str) -> Task:
        """Returns a task.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
            TranscriptError: when the log or its labels are missing or malformed.
        """
        self._require(task_id)
        item = task_id.partition("/")[2]
        log = _read(self._folder / item)
        pieces = self._pieces(len(log.lines))
        stream = Stream()
        stream.user(
            0,
            "The build failed. Read its log, and then quote the lines of each error.",
            pinned=True,
        )
        for request, (start, stop) in enumerate(pieces, 1):
            head = f"lines {start + 1}-{stop} of {len(log.lines)}"
            text = "\n".join([head, *log.lines[start:stop]])
            arguments = {"first": str(start + 1), "last": str(stop)}
            stream.turn(request, "I read this part.", [Call("read_log", arguments, text)])
        facts: list[KeyFact] = []
        demands = []
        for number, (start, stop) in enumerate(log.errors, 1):
            request = len(pieces) + number
            stream.turn(request, "I have it.")
            stream.user(request, f"Quote error {number} of {len(log.errors)}, please.")
            values = _values(log.lines[start:stop])
            places = tuple(range(len(facts), len(facts) + len(values)))
            facts += [KeyFact(value, "line", stream.stating(value)) for value in values]
            query = f"error failure exception lines {_around(pieces, start)} of {len(log.lines)}"
            demands.append(Demand(request, places, query, final=True))
        stream.bill("This is the last of the errors.")
        return Task(
            id=task_id,
            source=self.name,
            cluster=_project(item),
            goal=stream.segments[0].text,
            segments=tuple(stream.segments),
            arrivals=tuple(stream.arrivals),
            requests=len(stream.output_tokens),
            output_tokens=tuple(stream.output_tokens),
            facts=tuple(facts),
            demands=tuple(demands),
            metadata={"lines": str(len(log.lines))},
        )

    def _pieces(self, lines: int) -> list[tuple[int, int]]:
        """Returns (start, stop) of each read, in the order of reading."""
        step = self._lines_per_read
        pieces = [(start, min(start + step, lines)) for start in range(0, lines, step)]
        return [pieces[-1], *pieces[:-1]] if self._tail_first else pieces


def _splits(items: Sequence[str]) -> dict[str, list[str]]:
    """Returns the task ids of each split: every third project is for validation.

    Runs of one project resemble each other line by line, so they stay together; and a dozen runs
    are too few to leave the shares to chance.
    """
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    projects = sorted({_project(item) for item in items}, key=digest)
    for item in sorted(items):
        held_out = projects.index(_project(item)) % _VALIDATION_SHARE == 0
        splits["validation" if held_out else "train"].append(f"ci_logs/{item}")
    return splits


def _project(item: str) -> str:
    """Returns the name of a run without its number."""
    return item.rpartition("_")[0] or item


def log_lines(text: str) -> list[str]:
    """Returns the lines of a log, which end at a line feed, a carriage return, or both.

    `str.splitlines` would also end them at form feeds and the like, and shift the labels.
    """
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def _read(folder: Path) -> _Log:
    lines = log_lines(read_text(folder / "fail.log"))
    path = folder / "groundtruth"
    errors: list[tuple[int, int]] = []
    for number, line in enumerate(log_lines(read_text(path))[1:], 2):
        if not line.strip():
            continue
        match = _LABEL.fullmatch(line.strip())
        start, stop = (int(match[2]) - 1, int(match[3] or match[2])) if match else (-1, -1)
        if match is None or not 0 <= start < stop <= len(lines):
            raise TranscriptError(
                f"{path}, line {number}: must be `E 10-12`, `E 10` or `C 10` within the "
                f"{len(lines)} lines of the log. Received {line!r}. Correct the label."
            )
        if match[1] == "E":
            errors.append((start, stop))
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(errors):
        if joined and start - joined[-1][1] < _GAP:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    told = tuple(error for error in joined if _values(lines[slice(*error)]))
    if not told:
        raise TranscriptError(
            f"{path}: no error line is labelled. Add a line such as `E 10-12` for the failure."
        )
    return _Log(tuple(lines), told)


def _values(lines: Sequence[str]) -> list[str]:
    """Returns the distinct lines that say something, without the white space around them."""
    stripped = (line.strip() for line in lines)
    return list(dict.fromkeys(line for line in stripped if any(map(str.isalnum, line))))


def _around(pieces: Sequence[tuple[int, int]], line: int) -> str:
    """Returns the 1-based lines of the piece that `line` is in, as its head names them."""
    start, stop = next(piece for piece in pieces if piece[0] <= line < piece[1])
    return f"{start + 1}-{stop}"
