"""Reading host messages with errors that say where, what came, and what to do."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.errors import MessageFormatError, did_you_mean


def malformed(index: int, problem: str, received: object, remedy: str) -> MessageFormatError:
    """Returns the error for one message; the caller raises it."""
    return MessageFormatError(
        f"messages[{index}]: {problem}. Received {reprlib.repr(received)}. {remedy}"
    )


def each_message(
    messages: Sequence[Mapping[str, Any]], roles: Mapping[str, str], start: int = 0
) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    """Yields (index, message, role).

    Args:
        messages: the host's list.
        roles: the format's roles; those it does not take map to a remedy, the others to "".
        start: the first index to yield.

    Raises:
        MessageFormatError: at the first entry that is not a mapping with such a role.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageFormatError(
            f"messages must be a list of dicts. Received {type(messages).__name__}. "
            "Pass the whole conversation, oldest message first."
        )
    for index, message in enumerate(messages[start:] if start else messages, start):
        if not isinstance(message, Mapping):
            raise malformed(
                index, "a message must be a dict", message,
                "Convert SDK objects first, such as with message.model_dump(exclude_unset=True).",
            )  # fmt: skip
        role = message.get("role")
        if not isinstance(role, str) or role not in roles:
            taken = [name for name, remedy in roles.items() if not remedy]
            raise malformed(index, "unknown role", role, _role_remedy(role, taken))
        if roles[role]:
            raise malformed(index, "a role that this format does not take", role, roles[role])
        yield index, message, role


def _role_remedy(role: object, taken: list[str]) -> str:
    return f"Set 'role'.{did_you_mean(role if isinstance(role, str) else '', taken)}"


def blocks_of(content: Sequence[Any], index: int) -> Iterator[Mapping[str, Any]]:
    """Yields the blocks of a content list.

    Raises:
        MessageFormatError: at a block that is not a dict with a string type.
    """
    for block in content:
        if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
            raise malformed(
                index, "a content block must be a dict with a 'type'", block,
                "Write text as {'type': 'text', 'text': ...}.",
            )  # fmt: skip
        yield block


def string_at(mapping: Mapping[str, Any], key: str, index: int, remedy: str) -> str:
    """Returns the string under a key.

    Raises:
        MessageFormatError: when it is missing or not a string.
    """
    value = mapping.get(key)
    if not isinstance(value, str):
        kind = mapping.get("type") or mapping.get("role") or "mapping"
        raise malformed(index, f"{key!r} of a {kind!r} must be a string", value, remedy)
    return value


def wrong_content(index: int, content: object) -> MessageFormatError:
    """Returns the error for content that is neither text nor blocks."""
    return malformed(
        index, "content must be a string or a list of blocks", content,
        "Pass text as a string, anything else as a list of dicts.",
    )  # fmt: skip


def refuse_foreign(index: int, message: Mapping[str, Any], format: str) -> None:
    """Raises MessageFormatError for blocks or calls that are another format's.

    Args:
        index: of the message.
        message: whose content may be anything.
        format: that it is said to be in, "openai" or "anthropic".
    """
    found = foreign_part(message, format)
    if found is not None:
        other = "anthropic" if format == "openai" else "openai"
        raise malformed(
            index, f"this belongs to the format {other!r}, not to {format!r}", found,
            f"Name the format that these messages are in: format={other!r}.",
        )  # fmt: skip


def foreign_part(message: Mapping[str, Any], format: str) -> Any:
    """Returns what of a message is another format's; None where nothing is."""
    if format == "anthropic":
        return message.get("tool_calls") or None
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    kinds = ("tool_use", "tool_result")
    return next((b for b in blocks if isinstance(b, Mapping) and b.get("type") in kinds), None)
