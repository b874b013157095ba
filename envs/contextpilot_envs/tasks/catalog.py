"""Task sources by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from contextpilot.errors import ConfigurationError, UnknownTaskError, did_you_mean
from contextpilot_envs.tasks.base import Task, TaskSource
from contextpilot_envs.tasks.labelled import CiLogSource, LocomoSource, MultihopSource
from contextpilot_envs.tasks.replay_source import NAMES as REPLAYS
from contextpilot_envs.tasks.replay_source import ReplaySource
from contextpilot_envs.tasks.synthetic import FAMILIES, SyntheticConfig, SyntheticSource

LABELLED: Mapping[str, Callable[[Path | None], TaskSource]] = MappingProxyType(
    {"multihop": MultihopSource, "ci_logs": CiLogSource, "locomo": LocomoSource}
)
"""Data sets with their own ground truth; they need the data folder. LoCoMo is for tests only."""


class MixedSource:
    """Several sources as one; ids keep their own form."""

    def __init__(self, sources: Sequence[TaskSource], name: str = "mixed") -> None:
        self.name, self._sources = name, tuple(sources)
        self._ids: dict[str, Sequence[str]] = {}

    def ids(self, split: str) -> Sequence[str]:
        """Returns the ids of all sources, one of each in turn."""
        if split not in self._ids:  # asked for at every reset
            self._ids[split] = self._interleaved(split)
        return self._ids[split]

    def _interleaved(self, split: str) -> Sequence[str]:
        columns = [source.ids(split) for source in self._sources]
        longest = max(len(ids) for ids in columns)
        return [ids[k] for k in range(longest) for ids in columns if k < len(ids)]

    def load(self, task_id: str) -> Task:
        """Returns a task of whichever source has it."""
        for source in self._sources:
            if task_id.startswith(source.name):
                return source.load(task_id)
        names = [source.name for source in self._sources]
        raise UnknownTaskError(
            f"no source has a task {task_id!r}.{did_you_mean(task_id.rpartition('/')[0], names)}"
        )


def load_source(
    name: str,
    *,
    horizon: int = 20,
    language: str = "en",
    data: Path | None = None,
    quotes: bool = True,
) -> TaskSource:
    """Returns the task source of a name.

    Args:
        name: a generated family, "mixed" (all families), a replay source, or a labelled data set.
        horizon: requests of generated tasks; other sources have their own.
        language: of generated tasks.
        data: the data folder, by default from CONTEXTPILOT_DATA; for "transcripts" the user's own.
        quotes: for replays, whether values quoted in the agent's text are demanded too.

    Raises:
        ConfigurationError: for an unknown name, with the nearest known one.
        TranscriptError: when a data set needs a folder that is not there.
    """
    if name in FAMILIES:
        return SyntheticSource(SyntheticConfig(name, language, horizon))
    if name == "mixed":
        return MixedSource(
            [SyntheticSource(SyntheticConfig(f, language, horizon)) for f in FAMILIES]
        )
    if name in LABELLED:
        return LABELLED[name](data)
    if name in REPLAYS:
        return ReplaySource(name, data, quotes=quotes)
    known = ("mixed", *FAMILIES, *REPLAYS, *LABELLED)
    raise ConfigurationError(
        f"There is no task source of this name. Received {name!r}.{did_you_mean(name, known)}"
    )
