"""What a provider reports of a request, whatever it calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextpilot.errors import ConfigurationError

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_LEAST_TOKENS = 200
"""Smaller requests say little about how a tokenizer counts."""

_SCALES = (0.5, 3.0)
"""Outside of these it is not the tokenizer that differs, but the request."""


def read_usage(usage: object) -> dict[str, int]:
    """Returns "input", "cached" and "output" tokens; input is the whole, its cached part included.

    Args:
        usage: a reply's usage, as a dict or an object: of OpenAI (`prompt_tokens` or
            `input_tokens` with details) or of Anthropic (`input_tokens`, to which
            `cache_read_input_tokens` and `cache_creation_input_tokens` are added).

    Raises:
        ConfigurationError: when it names no input tokens.
    """
    given = next((n for name in _INPUT if (n := _number(usage, name)) is not None), None)
    if given is None:
        raise ConfigurationError(
            f"this usage names no input tokens. Received {usage!r}. Pass the reply's `usage`, "
            f"which has one of {_INPUT}."
        )
    details = next((d for name in _DETAILS if (d := _field(usage, name)) is not None), None)
    read = _number(usage, "cache_read_input_tokens") or 0
    written = _number(usage, "cache_creation_input_tokens") or 0
    return {
        "input": given + read + written,
        "cached": read or _number(details, "cached_tokens") or 0,
        "output": next((n for name in _OUTPUT if (n := _number(usage, name)) is not None), 0),
    }


def token_scale(reported: int, counted: int, before: float) -> float:
    """Returns the agent's tokens per counted one, or what it was where this request says little."""
    if counted < _LEAST_TOKENS:
        return before
    low, high = _SCALES
    scale = reported / counted
    return scale if low <= scale <= high else before


def _field(usage: object, name: str) -> Any:
    if isinstance(usage, Mapping):
        return usage.get(name)
    return getattr(usage, name, None)


def _number(usage: object, name: str) -> int | None:
    value = _field(usage, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
