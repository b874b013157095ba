"""A training run is a folder: settings, versions, metrics, checkpoints, and its evaluation.

runs/train/<UTC date and time>-<name>-seed<k>[-n]/
  config.yaml        every setting, resolved
  versions.json      packages, Python, platform, commit, layout versions
  metrics.jsonl      one row an iteration; docs/metrics.md explains the keys
  episodes.jsonl     sampled episodes with their edit logs
  checkpoints/last   policy and optimiser, to resume from
  checkpoints/best   the policy that did best on the inner fold
  checkpoints/warm   the policy after the warm start, where there was one
  evaluation/        the comparison on the validation split
  finished.json      there once the last iteration is done

No state of a random generator is saved: every draw is made by a generator that is derived from the
seed and the iteration's number, so that a run that was killed and resumed equals an unbroken one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.storage import replace_text
from contextpilot.policies.checkpoint import load_network, save_checkpoint
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.config import TrainConfig
from contextpilot.training.config_file import load_config, save_config
from contextpilot.training.glossary import describe
from contextpilot.training.logging import (
    EPISODE_COLUMNS,
    JsonlLogger,
    MetricLogger,
    ProgressLogger,
    WandbLogger,
    cut_rows,
    finite,
    load_wandb,
)
from contextpilot.training.trainer_state import TrainerState, WholeFolder, read_state, write_state
from contextpilot.training.versions import versions

CONFIG, VERSIONS, FINISHED = "config.yaml", "versions.json", "finished.json"
LAST, NAMED = "last", ("best", "warm")


class Run:
    """One run: where it stands, and everything that it writes. See `create` and `resume`.

    Attributes:
        folder: the run's folder.
        config: its settings.
        iteration: the next one to do; 0 for a new run.
        environment_steps: edit steps played in the iterations before.
        best: what the algorithm noted about its best checkpoint; empty before there is one.
    """

    def __init__(self, folder: Path, config: TrainConfig, state: TrainerState | None) -> None:
        """Takes a folder that exists; `create` and `resume` do the rest."""
        self.folder, self.config = folder, config
        self.iteration = state.iteration + 1 if state else 0
        self.environment_steps = state.environment_steps if state else 0
        self.best: dict[str, float] = dict(state.best) if state else {}
        self._loggers: list[MetricLogger] = []

    @classmethod
    def create(cls, config: TrainConfig, wandb: Any = None) -> Run:
        """Makes a folder of its own for a new run.

        Args:
            config: the settings.
            wandb: what stands for the module `wandb`; None imports it where it is asked for.

        Raises:
            ConfigurationError: when the folder cannot be made, or W&B refuses.
        """
        folder = _new_folder(Path(config.output), f"{config.name}-seed{config.seed}")
        save_config(folder / CONFIG, config)
        replace_text(folder / VERSIONS, json.dumps(versions(), indent=2) + "\n")
        run = cls(folder, config, None)
        try:
            run._open(wandb)
        except ConfigurationError:
            run.close()
            shutil.rmtree(folder)  # of a run that never began
            raise
        return run

    @classmethod
    def resume(cls, path: Path | str, wandb: Any = None) -> Run:
        """Goes on with a run from its last checkpoint, or from the start where there is none yet.

        Rows of iterations that the checkpoint does not have are cut from the logs: they are played
        again, and come out the same.

        Raises:
            ConfigurationError: when the folder is not a run's, or damaged.
        """
        folder = Path(path)
        if not (folder / CONFIG).is_file():
            raise ConfigurationError(
                f"there is no run to resume: {CONFIG} is missing. Received {str(folder)!r}. "
                "Name the folder of a run, as training printed it."
            )
        config = load_config(folder / CONFIG)
        for name in (LAST, *NAMED):
            WholeFolder(folder / "checkpoints" / name).recover()
        last = folder / "checkpoints" / LAST
        run = cls(folder, config, read_state(last) if last.exists() else None)
        done = run.iteration - 1
        if done < 0 and not run.checkpoint("warm").exists():
            done = -2  # the warm start, iteration -1, is made again too
        cut_rows(folder, done)
        if not run.finished:
            run._open(wandb)
        return run

    @property
    def finished(self) -> bool:
        """True once the last iteration is done."""
        return (self.folder / FINISHED).exists()

    def checkpoint(self, name: str) -> Path:
        """Returns the folder of a checkpoint: "last", "best" or "warm"; it need not exist."""
        return self.folder / "checkpoints" / name

    def log(
        self, iteration: int, environment_steps: int, metrics: Mapping[str, float]
    ) -> None:  # fmt: skip
        """Writes one row; numbers that are not finite become null.

        Raises:
            ConfigurationError: for a metric that the glossary does not explain.
        """
        for key in metrics:
            describe(key)
        row = {
            "iteration": iteration, "environment_steps": environment_steps, **finite(metrics),
        }  # fmt: skip
        for logger in self._loggers:
            logger.log(row)

    def log_episodes(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes sampled episodes, each with the keys `EPISODE_COLUMNS`.

        Raises:
            ConfigurationError: for rows with other keys.
        """
        for row in rows:
            if set(row) != set(EPISODE_COLUMNS):
                raise ConfigurationError(
                    f"a sampled episode has the keys {', '.join(EPISODE_COLUMNS)}. "
                    f"Received {', '.join(row)}."
                )
        for logger in self._loggers:
            logger.log_episodes(rows)

    def save(
        self,
        iteration: int,
        environment_steps: int,
        network: PointerNetwork,
        optimizer: torch.optim.Optimizer | None,
        best: Mapping[str, float],
    ) -> None:
        """Writes checkpoints/last in one step: a reader sees the old one or the new one.

        Args:
            iteration: the last one that is done.
            environment_steps: played so far.
            network: as it stands after it.
            optimizer: likewise; without one, none can be restored.
            best: what is to be known of the best checkpoint after resuming.
        """
        state = TrainerState(iteration, environment_steps, dict(best))
        with WholeFolder(self.checkpoint(LAST)).replacement() as folder:
            save_checkpoint(
                folder, network, training=asdict(self.config),
                card=f"# {self.config.name}\n\nAfter iteration {iteration} of a training run.\n",
            )  # fmt: skip
            write_state(folder, state, optimizer.state_dict() if optimizer else None)
        self.iteration, self.environment_steps = iteration + 1, environment_steps
        self.best = dict(best)

    def load(self, network: PointerNetwork, optimizer: torch.optim.Optimizer | None) -> None:
        """Puts weights and optimiser back as the last checkpoint has them, bit for bit.

        Raises:
            ConfigurationError: when it is missing, damaged, or of a network of another size.
        """
        folder = self.checkpoint(LAST)
        found = load_network(folder)
        if found.config != network.config:
            raise ConfigurationError(
                f"{folder} is of another network. Received {network.config}; it has "
                f"{found.config}. Resume with the settings that the run was begun with."
            )
        network.load_state_dict(found.state_dict())
        if optimizer is not None:
            optimizer.load_state_dict(read_state(folder).optimizer_state(folder))

    def save_named(self, name: str, network: PointerNetwork, card: str) -> None:
        """Writes the checkpoint "best" or "warm", replacing what was there.

        Raises:
            ConfigurationError: for another name.
        """
        if name not in NAMED:
            raise ConfigurationError(
                f"there is no checkpoint of this name. Received {name!r}."
                f"{did_you_mean(name, NAMED)}"
            )
        with WholeFolder(self.checkpoint(name)).replacement() as folder:
            save_checkpoint(
                folder, network, training=asdict(self.config),
                card=f"# {self.config.name}: {name}\n\n{card}\n",
            )  # fmt: skip

    def finish(self) -> None:
        """Notes that the last iteration is done, and closes the logs."""
        if not self.finished:
            note = {"iterations": self.iteration, "environment_steps": self.environment_steps}
            replace_text(self.folder / FINISHED, json.dumps(note) + "\n")
        self.close()

    def close(self) -> None:
        """Closes the logs, finished or not; a second call does nothing."""
        while self._loggers:
            self._loggers.pop().close()

    def _open(self, wandb: Any) -> None:
        settings = self.config.logger
        self._loggers.append(JsonlLogger(self.folder))
        if settings.wandb != "disabled":
            api = wandb or load_wandb()
            self._loggers.append(WandbLogger(api, settings, self.folder, asdict(self.config)))
        self._loggers.append(
            ProgressLogger(
                self.config.algorithm.iterations, self.iteration, enabled=settings.progress
            )
        )


def _new_folder(output: Path, name: str) -> Path:
    """Makes a folder that nothing else has; a number is added where two begin in one second."""
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"
    try:
        output.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = output / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                number += 1
    except OSError as error:
        raise ConfigurationError(
            f"the run's folder cannot be made ({error.strerror}). Received {str(output)!r}. "
            "Set output=FOLDER to one that can be written."
        ) from error
