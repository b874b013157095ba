"""A run's settings as a file: every one of them resolved, so that nothing depends on defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml  # type: ignore[import-untyped]

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.storage import replace_text
from contextpilot.training.config import ALGORITHMS, TrainConfig


def save_config(path: Path, config: TrainConfig) -> None:
    """Writes all settings as YAML, replacing what was there in one step."""
    replace_text(path, yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True))


def load_config(path: Path) -> TrainConfig:
    """Reads settings that `save_config` wrote; no setting may be missing or of another type.

    Raises:
        ConfigurationError: naming file, setting and what was received.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}). Name the folder of a run."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} is damaged: not YAML. Received: {str(error).splitlines()[0]}. Restore it, or "
            "train anew."
        ) from error
    try:
        config: TrainConfig = _dataclass(TrainConfig, document, "")
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return config


def _dataclass(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"`{key or 'the file'}` must be a mapping. Received {value!r:.80}."
        )
    known = [field.name for field in fields(kind)]
    for name in value:
        if name not in known:
            full = f"{key}.{name}" if key else name
            raise ConfigurationError(
                f"unknown setting. Received {full!r}.{did_you_mean(str(name), known)}"
            )
    hints, found = get_type_hints(kind), {}
    for name in known:
        full = f"{key}.{name}" if key else name
        if name not in value:
            raise ConfigurationError(
                f"`{full}` is missing. Received {', '.join(map(str, value)) or 'nothing'}. "
                "The file is damaged, or of another version of contextpilot."
            )
        found[name] = _typed(_algorithm(value[name]) if full == "algorithm" else hints[name],
                             value[name], full)  # fmt: skip
    return kind(**found)


def _algorithm(value: Any) -> type:
    """Returns the dataclass that an algorithm's settings name."""
    name = str(value.get("name")) if isinstance(value, Mapping) else "nothing"
    if name not in ALGORITHMS:
        raise ConfigurationError(
            f"`algorithm.name` has an unknown value. Received {name!r}."
            f"{did_you_mean(name, ALGORITHMS)}"
        )
    return ALGORITHMS[name]


def _typed(kind: Any, value: Any, key: str) -> Any:
    if is_dataclass(kind):
        return _dataclass(kind, value, key)
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is list and isinstance(value, list):
        return [_typed(get_args(kind)[0], item, f"{key}[{k}]") for k, item in enumerate(value)]
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:  # bool is an int to isinstance
        wanted = getattr(kind, "__name__", str(kind))
        raise ConfigurationError(f"`{key}` must be of type {wanted}. Received {value!r:.80}.")
    return value
