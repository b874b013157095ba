"""What a run needs beside the weights to go on: counters and the optimiser, never pickled.

trainer.json           counters, the best evaluation, the optimiser's numbers
optimizer.safetensors  its tensors
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from contextpilot.errors import ConfigurationError

STATE, TENSORS = "trainer.json", "optimizer.safetensors"
VERSION = 1
_TENSOR, _TUPLE = "tensor", "tuple"


@dataclass(frozen=True)
class TrainerState:
    """Where a run stands.

    Attributes:
        iteration: the last one that is done.
        environment_steps: edit steps played so far.
        best: what the algorithm noted about its best checkpoint.
        optimizer: the optimiser's state with references in place of its tensors; None without one.
    """

    iteration: int
    environment_steps: int
    best: dict[str, float]
    optimizer: dict[str, Any] | None = field(default=None, hash=False)

    def optimizer_state(self, folder: Path) -> dict[str, Any]:
        """Returns what `Optimizer.load_state_dict` takes, with the tensors of the folder.

        Raises:
            ConfigurationError: when there is none, or the tensors are damaged.
        """
        if self.optimizer is None:
            raise ConfigurationError(
                f"{folder} has no optimiser. Received a checkpoint that was saved without one."
            )
        try:
            tensors = load_file(folder / TENSORS)
            decoded = {name: _decoded(value, tensors) for name, value in self.optimizer.items()}
        except (OSError, SafetensorError, KeyError) as error:
            raise _damaged(folder / TENSORS, error) from error
        decoded["state"] = {int(index): value for index, value in decoded["state"].items()}
        return decoded


def write_state(
    folder: Path, state: TrainerState, optimizer_state: Mapping[str, Any] | None
) -> None:  # fmt: skip
    """Writes the state into a folder that nobody reads yet, and synchronises it with the disk."""
    tensors: dict[str, Tensor] = {}
    document = {"version": VERSION, **asdict(state)}
    if optimizer_state is not None:
        document["optimizer"] = _encoded(optimizer_state, "", tensors)
        save_file(tensors, folder / TENSORS)
        _synchronise(folder / TENSORS)
    (folder / STATE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    _synchronise(folder / STATE)
    _synchronise(folder)


def read_state(folder: Path) -> TrainerState:
    """Reads what `write_state` wrote, without the tensors.

    Raises:
        ConfigurationError: when it is missing, damaged, or of another version.
    """
    path = folder / STATE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version = document.pop("version")
        if version != VERSION:
            raise ConfigurationError(
                f"{path}: this version of contextpilot reads version {VERSION}. Received "
                f"{version!r}. Install the version that wrote it."
            )
        return TrainerState(**document)
    except ConfigurationError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, error) from error


class WholeFolder:
    """A folder that is replaced as a whole.

    A folder cannot be renamed onto one that has files: the old one steps aside first. Whoever is
    killed in between leaves a complete new one beside, which `recover` puts in place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new, self._old = (path.with_name(f".{path.name}.{kind}") for kind in ("new", "old"))

    @contextmanager
    def replacement(self) -> Iterator[Path]:
        """Gives a folder to fill, which does not exist yet; it takes the place at the end."""
        self.recover()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield self._new
        except BaseException:
            shutil.rmtree(self._new, ignore_errors=True)
            raise
        if self.path.exists():
            self.path.rename(self._old)
        self._new.rename(self.path)
        _synchronise(self.path.parent)
        shutil.rmtree(self._old, ignore_errors=True)

    def recover(self) -> None:
        """Ends what a kill interrupted: the old folder aside says that the new one is complete."""
        if self._old.exists() and not self.path.exists():
            (self._new if self._new.exists() else self._old).rename(self.path)
        for rest in (self._new, self._old, *self.path.parent.glob(f".{self._new.name}.*")):
            shutil.rmtree(rest, ignore_errors=True)


def _encoded(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Returns a value as JSON has it; tensors go into `tensors` under their place's name."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        return {
            str(key): _encoded(each, f"{name}.{key}".lstrip("."), tensors)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        items = [_encoded(item, f"{name}.{k}", tensors) for k, item in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    return value


def _decoded(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_TENSOR}:
        return tensors[value[_TENSOR]]
    if value.keys() == {_TUPLE}:
        return tuple(_decoded(item, tensors) for item in value[_TUPLE])
    return {key: _decoded(item, tensors) for key, item in value.items()}


def _damaged(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is missing or damaged. Received: {type(error).__name__}: {str(error)[:120]}. "
        "Restore the folder, or train anew."
    )


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
