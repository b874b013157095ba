"""From Hydra to plain dataclasses, with errors that name file, line and remedy."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import hydra
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from contextpilot.errors import ConfigurationError, ContextPilotError, did_you_mean

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
_OVERRIDE = re.compile(r"^[+~]{0,2}([\w.]+)=")
_HYDRA_KEYS = {"hydra", "defaults"}

Schema = TypeVar("Schema")


def run(name: str, schema: type[Schema], main: Callable[[Schema], None]) -> None:
    """Composes `configs/<name>.yaml` over a schema and calls `main`; bad input exits with 2."""
    try:
        _check_file(CONFIGS / f"{name}.yaml", schema)
        _check_overrides(sys.argv[1:], schema)
    except ConfigurationError as error:
        _fail(error)
    ConfigStore.instance().store(name=f"{name}_schema", node=schema)

    @hydra.main(config_path=str(CONFIGS), config_name=name, version_base="1.3")
    def entry(config: object) -> None:
        try:
            typed = OmegaConf.to_object(config)  # type: ignore[arg-type]
        except (ContextPilotError, OmegaConfBaseException) as error:
            _fail(error)
        try:
            main(typed)  # type: ignore[arg-type]
        except ContextPilotError as error:
            _fail(error)
        except KeyboardInterrupt:
            print("\nstopped; nothing was written", file=sys.stderr)
            sys.exit(130)

    entry()


def _check_overrides(arguments: list[str], schema: type) -> None:
    known = {field.name for field in fields(schema)}
    for argument in arguments:
        match = _OVERRIDE.match(argument)
        if match is None:
            continue
        key = match.group(1).split(".")[0]
        if key not in known | _HYDRA_KEYS:
            raise ConfigurationError(
                f"command line: unknown setting. Received {argument!r}.{did_you_mean(key, known)}"
            )


def _check_file(path: Path, schema: type) -> None:
    if not path.exists():
        raise ConfigurationError(f"{path} is missing; restore it from the repository.")
    known = {field.name for field in fields(schema)}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r"^([A-Za-z_]\w*)\s*:", line)
        if match and match.group(1) not in known | _HYDRA_KEYS:
            raise ConfigurationError(
                f"{path}, line {number}: unknown setting. Received {match.group(1)!r}."
                f"{did_you_mean(match.group(1), known)}"
            )


def _fail(error: Exception) -> None:
    message = str(error).split("\n    full_key")[0]
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
