"""Cache markers of the host: what an edit takes away moves to the nearest earlier block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contextpilot.manager.formats import Rendering

_MARKER = "cache_control"
_UNMARKABLE = ("thinking", "redacted_thinking", "reasoning")


def marker_of(value: Any) -> Any:
    """Returns the last cache marker in a message or a block; None where there is none."""
    if not isinstance(value, Mapping):
        return None
    if value.get(_MARKER) is not None:
        return value[_MARKER]
    content = value.get("content")
    if not isinstance(content, list | tuple):
        return None
    found = (marker_of(block) for block in reversed(content))
    return next((marker for marker in found if marker is not None), None)


def with_markers(
    out: Rendering,
    history: Sequence[Mapping[str, Any]],
    marker_at: Callable[[Any], Any] = marker_of,
) -> Rendering:
    """Returns a rendering that has a marker wherever the host ended a cached prefix.

    A marker whose block is gone stands on the last block before it, so that the provider's cached
    prefix ends as near to where the host wanted it as there is something to mark.

    Args:
        out: the request's messages, and the positions in `history` that each shows.
        history: the host's messages.
        marker_at: returns the marker of one of them, as `marker_of` does.
    """
    messages = list(out.messages)
    for at, message in enumerate(history):
        marker = marker_at(message)
        if marker is None:
            continue
        before = [i for i, shown in enumerate(out.shows) if shown and min(shown) <= at]
        shows = [i for i in before if at in out.shows[i]]
        if any(marker_of(messages[i]) is not None for i in shows):
            continue
        for i in reversed(shows or [i for i in before if max(out.shows[i]) <= at]):
            if marker_of(messages[i]) is not None:
                break  # the prefix before it ends here already
            marked = _marked(messages[i], marker)
            if marked is not None:
                messages[i] = marked
                break
    return Rendering(messages, out.shows)


def _marked(message: Mapping[str, Any], marker: Any) -> dict[str, Any] | None:
    """Returns a message with a marker on its last block that can have one, or None."""
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        block = {"type": "text", "text": content, _MARKER: marker}
        return {**message, "content": [block]}
    if not isinstance(content, list | tuple):
        return None
    for i in range(len(content) - 1, -1, -1):
        block = content[i]
        if isinstance(block, Mapping) and block.get("type") not in _UNMARKABLE:
            blocks = [*content[:i], {**block, _MARKER: marker}, *content[i + 1 :]]
            return {**message, "content": blocks}
    return None
