"""What a request cannot carry: values that JSON does not have, and halves of surrogate pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

_CONTAINERS = (dict, list, tuple, Mapping)  # the quick ones first

Fault: TypeAlias = Literal["", "not_json", "lone_surrogate"]


class Encodable(NamedTuple):
    """Messages whose text can be encoded.

    Attributes:
        messages: those in which nothing was replaced are the given objects.
        replaced: indices of the others.
    """

    messages: list[Mapping[str, Any]]
    replaced: tuple[int, ...]


def without_lone_surrogates(messages: Sequence[Mapping[str, Any]]) -> Encodable:
    """Returns the messages with each lone surrogate replaced by U+FFFD.

    Two surrogates that are a pair become their character. The given messages stay as they are.
    """
    out: list[Mapping[str, Any]] = []
    replaced: list[int] = []
    for index, message in enumerate(messages):
        if fault_of(message) == "lone_surrogate":
            replaced.append(index)
            message = encodable(message)
        out.append(message)
    return Encodable(out, tuple(replaced))


def fault_of(value: Any) -> Fault:
    """Returns why a value cannot be encoded as JSON in UTF-8; "" where it can.

    Mappings count as dicts. What is not JSON goes before surrogates.
    """
    fault: Fault = ""
    waiting, seen, shared = [value], set[int](), False
    while waiting:  # not recursive, since tools nest deep
        item = waiting.pop()
        if isinstance(item, str):
            if not (item.isascii() or _is_utf8(item)):
                fault = "lone_surrogate"
        elif isinstance(item, _CONTAINERS):
            shared = shared or id(item) in seen
            if id(item) not in seen:
                seen.add(id(item))
                waiting += item
            if isinstance(item, Mapping):
                for key in item:
                    if type(key) is not str and not (isinstance(key, str) or _is_scalar(key)):
                        return "not_json"
                waiting += item.values()
        elif not _is_scalar(item):
            return "not_json"
    return "not_json" if shared and _is_circular(value, ()) else fault


def _is_scalar(value: Any) -> bool:
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value is None or is_number


def _is_circular(value: Any, inside: tuple[int, ...]) -> bool:
    """True for a value that holds itself; deeper than Python calls, it cannot be encoded either."""
    if not isinstance(value, list | tuple | Mapping):
        return False
    if id(value) in inside:
        return True
    path = (*inside, id(value))
    try:
        return any(_is_circular(item, path) for item in _items(value))
    except RecursionError:
        return True


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encodable(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Returns the value as JSON in UTF-8 has it.

    Lone surrogates become U+FFFD, and two that are a pair one character. What an SDK returned
    becomes its dict, bytes their text, numbers that are not finite None, and what holds itself
    "[circular]". Everything else that JSON does not have becomes its text.

    Args:
        value: anything.
        inside: ids of the containers that hold it.
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if _is_scalar(value):
        return value
    if isinstance(value, float):
        return None
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if id(value) in inside:
        return "[circular]"
    path = (*inside, id(value))
    if isinstance(value, Mapping):
        return {_key(key): encodable(item, path) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item, path) for item in value]
    if can_dump(value):
        return encodable(value.model_dump(mode="json", exclude_unset=True), path)
    return encodable(str(value))


def can_dump(value: Any) -> bool:
    """True for what the providers' SDKs return, which is a message or a part of one."""
    return callable(getattr(value, "model_dump", None)) and not isinstance(value, type)


def _key(key: Any) -> Any:
    """Returns a key of a JSON object; numbers stay, since encoders write them as text."""
    return key if _is_scalar(key) else encodable(str(key))
