"""Checks of settings. Each takes the setting's full key, whose last part is the field's name."""

from __future__ import annotations

from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean


def at_least(config: object, least: float, *keys: str) -> None:
    """Raises ConfigurationError where a field is smaller than `least`."""
    for key in keys:
        value = _value(config, key)
        if not value >= least:  # so that NaN is refused too
            raise ConfigurationError(f"`{key}` must be at least {least}. Received {value}.")


def positive(config: object, *keys: str) -> None:
    """Raises ConfigurationError where a field is not above 0."""
    for key in keys:
        value = _value(config, key)
        if not value > 0:
            raise ConfigurationError(f"`{key}` must be positive. Received {value}.")


def share(config: object, *keys: str) -> None:
    """Raises ConfigurationError where a field is not in [0, 1]."""
    for key in keys:
        value = _value(config, key)
        if not 0.0 <= value <= 1.0:
            raise ConfigurationError(f"`{key}` must lie in [0, 1]. Received {value}.")


def known(key: str, value: str, names: tuple[str, ...]) -> None:
    """Raises ConfigurationError, with the nearest known name, for an unknown one."""
    if value not in names:
        raise ConfigurationError(
            f"`{key}` has an unknown value. Received {value!r}.{did_you_mean(value, names)}"
        )


def _value(config: object, key: str) -> Any:
    return getattr(config, key.rpartition(".")[2])
