"""Reading what is to be repaired: text that can be encoded, arguments that are JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from contextpilot.messages.checks import blocks_of, wrong_content
from contextpilot.messages.encodable import can_dump, encodable, fault_of
from contextpilot.messages.repair_record import Repair

Each: TypeAlias = Callable[[Sequence[Any]], Iterable[tuple[int, Mapping[str, Any]]]]
"""Yields (index, message) of a list, and raises at what is no message of the format."""

_REPLACED = MappingProxyType(
    {
        "lone_surrogate": "lone surrogates became U+FFFD",
        "not_json": "values that JSON does not have became text",
    }
)

UNPARSED = "unparsed_arguments"
"""The key under which arguments that are no JSON object keep their text."""


def read(entries: Sequence[Any], each: Each, repairs: list[Repair]) -> list[Mapping[str, Any]]:
    """Returns the messages as JSON in UTF-8 has them.

    Args:
        entries: the given list, which stays as it is.
        each: yields the messages with their indices, as far as they can be read.
        repairs: receives what was replaced.

    Raises:
        MessageFormatError: at the first message that is no dict of the format, and has not content
            that is text or blocks.
    """
    given: list[Mapping[str, Any]] = []
    for index, message in each(_encoded(entries, repairs)):
        content = message.get("content")
        if isinstance(content, list | tuple) and not is_result(message):
            for _ in blocks_of(content, index):
                pass
        elif not (content is None or isinstance(content, str) or is_result(message)):
            raise wrong_content(index, content)
        given.append(message)
    return given


def _encoded(entries: Any, repairs: list[Repair]) -> Any:
    """Returns a list whose entries JSON has, as far as they are messages; others as they are."""
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Sequence):
        return entries
    whole: list[Any] = []
    for index, entry in enumerate(entries):
        fault = fault_of(entry) if isinstance(entry, Mapping) or can_dump(entry) else ""
        if fault:
            repairs.append(Repair(index, fault, _REPLACED[fault]))
        whole.append(encodable(entry) if fault else entry)
    return whole


def is_result(message: Mapping[str, Any]) -> bool:
    """True for the result of a call: any content of it can be written as text."""
    return message.get("role") in ("tool", "function")


def json_text(arguments: Any) -> str:
    """Returns call arguments as JSON text; the same text where they are that."""
    if isinstance(arguments, str):
        try:
            json.loads(arguments)
        except (ValueError, RecursionError):
            pass
        else:
            return arguments
    return json.dumps(object_of(arguments), ensure_ascii=False, default=str)


def object_of(arguments: Any) -> dict[str, Any]:
    """Returns call arguments of any kind as a JSON object.

    Text that holds one is parsed, blank text or None is the empty one, and everything else is
    kept under the key "unparsed_arguments".
    """
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        parsed = None
    # parsing turns escaped surrogates into real ones
    return encodable(parsed) if isinstance(parsed, dict) else {UNPARSED: arguments}
