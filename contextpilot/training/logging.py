"""Where an iteration's numbers go: metrics.jsonl always, Weights & Biases and a bar on request."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.storage import replace_text
from contextpilot.training.config import LoggerConfig

METRICS, EPISODES, WANDB_ID = "metrics.jsonl", "episodes.jsonl", "wandb_id"
EPISODE_COLUMNS = ("iteration", "task", "return", "success", "billed_share", "edits")
"""Of sampled episodes; "edits" is the edit log as text."""

Row = Mapping[str, float | None]
"""One iteration; None stands for a number that is not finite."""

_SHOWN = (
    ("return", "episode/return"),
    ("demands", "episode/demand_success"),
    ("keep", "actions/keep"),
    ("steps/s", "speed/steps_per_second"),
)


class MetricLogger(Protocol):
    """Takes what a run logs."""

    def log(self, row: Row) -> None:
        """Takes the metrics of an iteration."""
        ...

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Takes sampled episodes, each with the keys EPISODE_COLUMNS."""
        ...

    def close(self) -> None:
        """Writes what is pending; nothing is logged afterwards."""
        ...


class JsonlLogger:
    """Appends rows to metrics.jsonl and episodes.jsonl of a run folder, and flushes each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def log(self, row: Row) -> None:
        """Appends one line."""
        self._append(METRICS, [row])

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends one line an episode."""
        self._append(EPISODES, rows)

    def close(self) -> None:
        """Has nothing pending."""

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(text)


class WandbLogger:
    """Sends rows to Weights & Biases; offline mode writes into the run folder and nowhere else.

    Args:
        api: the module `wandb`, or what stands for it in a test.
        settings: mode, project, entity, tags.
        folder: the run's; its name is the W&B run's, and it keeps the id, so that a resumed run
            goes on with the same one.
        config: the run's settings, as W&B shows them.

    Raises:
        ConfigurationError: when W&B refuses, for instance because nobody is logged in.
    """

    def __init__(
        self, api: Any, settings: LoggerConfig, folder: Path, config: Mapping[str, Any]
    ) -> None:
        self._api = api
        self._episodes: list[Mapping[str, Any]] = []
        try:
            self._run = api.init(
                project=settings.project, entity=settings.entity, tags=list(settings.tags),
                name=folder.name, group=config["name"], id=_wandb_id(folder), resume="allow",
                mode=settings.wandb, dir=str(folder), config=dict(config),
                # The remote's URL may hold a token, and the console what others print.
                settings=api.Settings(
                    disable_git=True, save_code=False, console="off", silent=True
                ),
            )  # fmt: skip
        except api.Error as error:
            raise ConfigurationError(
                f"W&B cannot begin the run: {error}. Received logger.wandb={settings.wandb!r}. "
                "Run `wandb login`, or take logger=wandb_offline or logger=jsonl."
            ) from error
        self._run.define_metric("environment_steps")
        self._run.define_metric("*", step_metric="environment_steps")

    def log(self, row: Row) -> None:
        """Sends the finite numbers, with the episodes that were sampled meanwhile as a table.

        The iteration is W&B's own step: iterations that a resumed run plays again come out the
        same, and W&B leaves out what is behind the step that it has.
        """
        sent: dict[str, Any] = {key: value for key, value in row.items() if value is not None}
        if self._episodes:
            data = [[episode[name] for name in EPISODE_COLUMNS] for episode in self._episodes]
            sent["episodes"] = self._api.Table(columns=list(EPISODE_COLUMNS), data=data)
            self._episodes = []
        self._run.log(sent, step=int(row["iteration"] or 0) + 1)  # the warm start is -1

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keeps episodes for the next row, so that they share its place on the x axis."""
        self._episodes += rows

    def close(self) -> None:
        """Ends the W&B run; resuming goes on with it."""
        self._run.finish()


class ProgressLogger:
    """A bar with iteration, return, demand success, keep share and steps per second.

    Args:
        iterations: of the whole run.
        done: iterations that a resumed run already has.
        enabled: False draws nothing; True draws on a terminal only.
    """

    def __init__(self, iterations: int, done: int, *, enabled: bool) -> None:
        hidden = None if enabled else True  # None: tqdm hides itself where there is no terminal
        self._bar = tqdm(
            total=iterations, initial=done, desc="training", unit="iteration", disable=hidden
        )

    def log(self, row: Row) -> None:
        """Moves the bar."""
        values = {name: row[key] for name, key in _SHOWN if row.get(key) is not None}
        if not self._bar.disable and values:
            self._bar.set_postfix(
                {name: f"{value:.3g}" for name, value in values.items()}, refresh=False
            )
        self._bar.update(max(0, int(row["iteration"] or 0) + 1 - self._bar.n))

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Draws nothing."""

    def close(self) -> None:
        """Leaves the bar as it stands."""
        self._bar.close()


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Returns the metrics as floats, None for those that are not finite."""
    numbers = {key: float(value) for key, value in metrics.items()}
    return {key: value if math.isfinite(value) else None for key, value in numbers.items()}


def cut_rows(folder: Path, done: int) -> None:
    """Keeps the rows of iterations up to `done`; a last line that was cut off goes too.

    Raises:
        ConfigurationError: when another line is not a row.
    """
    for path in (folder / METRICS, folder / EPISODES):
        if path.exists():
            text = path.read_text(encoding="utf-8")
            lines = text.removesuffix("\n").split("\n") if text else []
            kept = "".join(f"{line}\n" for line in _rows_until(done, lines, path))
            if kept != text:
                replace_text(path, kept)


def _rows_until(done: int, lines: Sequence[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            iteration = int(json.loads(line)["iteration"])
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                return
            raise ConfigurationError(
                f"{path}, line {number}: not a row of a run. Received {line[:80]!r}. "
                "Remove the line, or restore the file."
            ) from error
        if iteration <= done:
            yield line


def load_wandb() -> Any:
    """Returns the module `wandb`, which nothing else imports.

    Raises:
        ConfigurationError: when it is not installed.
    """
    # Reports of W&B's own errors would go over the network, even in offline mode.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb
    except ImportError as error:
        raise ConfigurationError(
            f"logger.wandb needs the package wandb, which cannot be imported ({error}). "
            "Run pip install wandb, or take logger=jsonl."
        ) from error
    return wandb


def _wandb_id(folder: Path) -> str:
    """Returns the run's id: that of the folder, made at the first call."""
    path = folder / WANDB_ID
    if not path.exists():
        replace_text(path, os.urandom(6).hex() + "\n")
    return path.read_text(encoding="utf-8").strip()
