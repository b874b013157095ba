"""Checks of settings. Each takes the setting's full key, whose last part is the field's name."""

from __future__ import annotations

from math import inf
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean


def at_least(config: object, least: float, *keys: str) -> None:
    """Raises ConfigurationError where a field is smaller than `least`, or no finite number."""
    for key in keys:
        value = _value(config, key)
        if not least <= value < inf:  # so that NaN is refused too
            wanted = "finite" if value == inf else f"at least {least}"
            raise ConfigurationError(f"`{key}` must be {wanted}. Received {value}.")


def positive(config: object, *keys: str) -> None:
    """Raises ConfigurationError where a field is not above 0, or no finite number."""
    for key in keys:
        value = _value(config, key)
        if not 0 < value < inf:
            wanted = "finite" if value == inf else "positive"
            raise ConfigurationError(f"`{key}` must be {wanted}. Received {value}.")


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
