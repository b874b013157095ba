"""Reading what is to be repaired: text that can be encoded, arguments that are JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from contextpilot.messages.checks import blocks_of, each_message, wrong_content
from contextpilot.messages.repair_record import Repair

UNPARSED = "unparsed_arguments"
"""The key under which arguments that are no JSON object keep their text."""


def read(
    messages: Sequence[Mapping[str, Any]], roles: Mapping[str, str], repairs: list[Repair]
) -> list[Mapping[str, Any]]:
    """Returns the messages, with text that can be encoded as UTF-8.

    Args:
        messages: the given list, which stays as it is.
        roles: the format's roles, as `each_message` takes them.
        repairs: receives what was replaced.

    Raises:
        MessageFormatError: at the first message that is no dict with such a role and with content
            that is text or blocks.
    """
    given: list[Mapping[str, Any]] = []
    for index, message, _ in each_message(messages, roles):
        content = message.get("content")
        if isinstance(content, list | tuple):
            for _ in blocks_of(content, index):
                pass
        elif content is not None and not isinstance(content, str):
            raise wrong_content(index, content)
        if not _is_encodable(message):
            repairs.append(Repair(index, "lone_surrogate", "lone surrogates became U+FFFD"))
            message = _encodable(message)
        given.append(message)
    return given


def _is_encodable(value: Any) -> bool:
    """True where no text in the value holds a surrogate; not recursive, since tools nest deep."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if not (value.isascii() or _is_utf8(value)):
                return False
        elif isinstance(value, Mapping):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
    return True


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encodable(value: Any) -> Any:
    """Returns the value with each lone surrogate replaced; two that are a pair become one char."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


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
    return _encodable(parsed) if isinstance(parsed, dict) else {UNPARSED: arguments}
