"""What makes a message the one that it is: its content, without what changes from call to call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from contextpilot.messages.checks import malformed

VOLATILE_FIELDS = frozenset(
    {
        "cache_control",  # hosts move it to the end of every request
        "id",  # the server's name for a reply; some hosts keep it, some drop it
        # when it was made or stored
        "created",
        "created_at",
        "timestamp",
        # what a reply says of itself, and no later request needs
        "model",
        "usage",
        "stop_reason",
        "stop_sequence",
        "finish_reason",
    }
)
"""Fields of a message that do not make it another one. The ids of calls are not among them: those
stand inside `tool_calls` and `content`, where only `cache_control` is left out."""

_DIGEST_BYTES = 16
_CONVERT = "Convert SDK objects first, such as with message.model_dump(exclude_unset=True)."


def message_key(message: Mapping[str, Any], index: int = 0) -> str:
    """Returns the hash of a message's canonical JSON without its volatile fields, in hex.

    Left out are `VOLATILE_FIELDS`, fields that are None, and `cache_control` on content blocks and
    calls. Text is read as the one text block that it is short for, since hosts write it as a block
    to put a cache marker on it.

    Args:
        message: one message.
        index: its position, for the error.

    Raises:
        MessageFormatError: when it is no dict, or holds what JSON cannot.
    """
    if not isinstance(message, Mapping):
        raise malformed(index, "a message must be a dict", message, _CONVERT)
    try:
        stable = {
            name: _unmarked(value) if name in ("content", "tool_calls") else value
            for name, value in message.items()
            if name not in VOLATILE_FIELDS and value is not None
        }
        text = json.dumps(stable, sort_keys=True, separators=(",", ":"), default=_mapping)
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed(index, f"not plain JSON ({error})", message, _CONVERT) from error
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _unmarked(content: Any) -> Any:
    """Returns content, or calls, without cache markers. What is inside arguments stays."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple):
        return content
    return [
        {
            name: _unmarked(value) if name == "content" else value
            for name, value in block.items()
            if name != "cache_control"
        }
        if isinstance(block, Mapping)
        else block
        for block in content
    ]


def _mapping(value: object) -> dict[Any, Any]:
    """Lets JSON take any mapping; for everything else it does not take, TypeError."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} at some place")


def copied(value: Any) -> Any:
    """Returns a copy that shares no container with the value; texts and numbers do not change."""
    kind = type(value)
    if kind is str:  # what most values are
        return value
    if kind is dict or isinstance(value, Mapping):
        return {name: copied(inner) for name, inner in value.items()}
    if kind is list or isinstance(value, list):
        return [copied(inner) for inner in value]
    if isinstance(value, tuple):
        return tuple([copied(inner) for inner in value])
    return value
