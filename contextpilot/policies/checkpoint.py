"""Checkpoints of pointer networks: a folder of safetensors, JSON and a model card; never pickle.

model.safetensors   the weights
config.json         format, observation and action version; the network's size
training.json       the settings and results of training
README.md           the model card
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from contextpilot.edits.codec import ACTION_VERSION
from contextpilot.errors import ConfigurationError
from contextpilot.observations.features import OBSERVATION_VERSION
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.encoder import segment_encoder
from contextpilot.policies.pointer.network import PointerNetwork

FORMAT = "contextpilot-pointer"
FORMAT_VERSION = 1

WEIGHTS, CONFIG, TRAINING, CARD = "model.safetensors", "config.json", "training.json", "README.md"

_VERSIONS = {
    "format_version": FORMAT_VERSION,
    "observation_version": OBSERVATION_VERSION,
    "action_version": ACTION_VERSION,
}


def save_checkpoint(
    folder: Path | str, network: PointerNetwork, *, training: Mapping[str, Any], card: str
) -> None:
    """Writes a checkpoint; a reader sees the old one or the new one, never a part.

    It is written beside `folder`, synchronised with the disk, and renamed. A checkpoint that is
    there already is replaced as a whole, whatever else lies in it; between its two renames, there
    is none for an instant.

    Args:
        folder: where to; folders above it are made.
        network: its weights may be on any device.
        training: settings and results, as JSON has them.
        card: the model card, Markdown.

    Raises:
        ConfigurationError: when `training` is not JSON, or `folder` holds something else.
    """
    folder = Path(folder)
    _require_replaceable(folder)
    config = {"format": FORMAT, **_VERSIONS, "network": asdict(network.config)}
    weights = {name: w.detach().cpu().contiguous() for name, w in network.state_dict().items()}
    texts = {CONFIG: _json(config), TRAINING: _json(training), CARD: card}
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new = beside / "new"
        new.mkdir()
        (new / WEIGHTS).write_bytes(save(weights))
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
        for path in (*new.iterdir(), new):
            _synchronise(path)
        _put_in_place(new, folder, beside / "old")
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load_network(folder: Path | str) -> PointerNetwork:
    """Reads a checkpoint's network, on the CPU and ready to play.

    Raises:
        ConfigurationError: when a file is missing or damaged, or its version is another one.
    """
    folder = Path(folder)
    config = _network_config(folder)
    network = PointerNetwork(config, segment_encoder(config.backbone))
    weights = _weights(folder / WEIGHTS)
    _require_same_shapes(folder / WEIGHTS, weights, network.state_dict())
    network.load_state_dict(weights)
    return network.eval()


def shared_network(folder: Path | str) -> PointerNetwork:
    """Returns a checkpoint's network, read once per process and state of its file.

    Raises:
        ConfigurationError: as `load_network`.
    """
    folder = Path(folder).resolve()
    try:
        found = (folder / WEIGHTS).stat()
    except OSError as error:
        raise _unreadable(folder / WEIGHTS, error) from error
    return _shared_network(folder, (found.st_ino, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _shared_network(folder: Path, _state: tuple[int, int]) -> PointerNetwork:
    if multiprocessing.parent_process() is not None:
        # Worker processes share the cores already, and OpenMP's threads do not survive a fork.
        torch.set_num_threads(1)
    return load_network(folder)


def _require_replaceable(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if folder.is_dir() and (folder / CONFIG).exists() and (folder / WEIGHTS).exists():
        return
    raise ConfigurationError(
        f"a checkpoint replaces its folder, and this one holds something else. "
        f"Received {str(folder)!r}. Name a new or empty folder."
    )


def _put_in_place(new: Path, folder: Path, old: Path) -> None:
    try:
        if folder.exists():  # a folder cannot be renamed onto one that has files
            folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    _synchronise(folder.parent)


def _json(document: Mapping[str, Any]) -> str:
    try:
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"`training` must hold only what JSON has ({error}). Received keys {list(document)}."
        ) from error


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _network_config(folder: Path) -> PointerConfig:
    path = folder / CONFIG
    document = _document(path)
    if document.get("format") != FORMAT:
        raise ConfigurationError(
            f"{path} is not of a pointer policy: `format` must be {FORMAT!r}. "
            f"Received {document.get('format')!r}."
        )
    for name, version in _VERSIONS.items():
        if document.get(name) != version:
            raise ConfigurationError(
                f"{path}: this version of contextpilot reads `{name}` {version}. "
                f"Received {document.get(name)!r}. Train the policy again, or install the "
                "version that wrote it."
            )
    network, known = document.get("network"), {field.name for field in fields(PointerConfig)}
    if not isinstance(network, dict) or network.keys() != known:
        raise ConfigurationError(
            f"{path}: `network` must have the keys {sorted(known)}. Received {network!r}."
        )
    try:
        return PointerConfig(**network)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{path} is not JSON ({error}). Copy the checkpoint again, or train it again."
        ) from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path} must hold a JSON object. Received {document!r:.80}.")
    return document


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    except SafetensorError as error:
        raise ConfigurationError(
            f"{path} is damaged: it is not a safetensors file ({error}). "
            "Copy the checkpoint again, or train it again."
        ) from error


def _unreadable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"a checkpoint is a folder with {CONFIG} and {WEIGHTS}. Received {str(path.parent)!r}, "
        f"where {path.name} cannot be read ({error.strerror or type(error).__name__}). "
        "Check the path."
    )


def _require_same_shapes(
    path: Path, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> None:
    shapes = {name: (tuple(w.shape), w.dtype) for name, w in found.items()}
    wanted = {name: (tuple(w.shape), w.dtype) for name, w in expected.items()}
    for name in sorted(shapes.keys() | wanted.keys()):
        if shapes.get(name) != wanted.get(name):
            raise ConfigurationError(
                f"{path} does not fit its {CONFIG}: {name!r} must be "
                f"{wanted.get(name, 'absent')}. Received {shapes.get(name, 'nothing')}. "
                "Copy the checkpoint again, or train it again."
            )
