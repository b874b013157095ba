"""Anthropic messages to segments and back.

`render(parse(messages))` with everything in full is `messages` again, byte for byte as JSON. A text
block of a user message is one segment, and so is an image, a document, a search result and each
tool result; an assistant message with its thinking and calls is one. The system prompt is not part
of the list. Server-side tools are kept inside their turn as they came, and never read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.core.segment import Kind, Part, Segment
from contextpilot.messages.anthropic_wire import AnthropicWire, merged
from contextpilot.messages.builder import SegmentBuilder
from contextpilot.messages.checks import (
    blocks_of,
    each_message,
    malformed,
    refuse_foreign,
    string_at,
    wrong_content,
)
from contextpilot.messages.envelope import RESULT, Envelope, hollow
from contextpilot.messages.layout import lay_out
from contextpilot.messages.rendered import RenderedSegment

__all__ = ["extend", "parse", "render"]

_ELSEWHERE = "Pass it as the request's own 'system' argument, outside the messages."
_RESULTS = "Write results as 'tool_result' blocks of a user message."
_ROLES = {
    "user": "",
    "assistant": "",
    "system": _ELSEWHERE,
    "developer": _ELSEWHERE,
    "tool": _RESULTS,
}
_KINDS = {"image": Kind.IMAGE, "document": Kind.DOCUMENT, "search_result": Kind.DOCUMENT}


def parse(messages: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """Returns the segments of a message list, in host order.

    Raises:
        MessageFormatError: naming the first message that is not in this format.
    """
    builder = SegmentBuilder()
    extend(builder, messages)
    return builder.finish()


def extend(builder: SegmentBuilder, messages: Sequence[Mapping[str, Any]], start: int = 0) -> None:
    """Appends the segments of the messages from `start` on; the builder has those before.

    Raises:
        MessageFormatError: as `parse`. The builder is of no more use then.
    """
    for index, message, role in each_message(messages, _ROLES, start):
        content = message.get("content")
        refuse_foreign(index, message, "anthropic")
        if role == "assistant":
            parts = tuple(_parts(content, index))
            builder.turn((_envelope(message, bool(parts), 1), *parts), index)
        elif isinstance(content, list | tuple) and content:
            _add_blocks(builder, message, content, index)
        else:
            parts = tuple(_parts(content, index))
            builder.user(Kind.TEXT, (_envelope(message, bool(parts), 1), *parts), (index, 0))


def render(segments: Sequence[RenderedSegment]) -> list[dict[str, Any]]:
    """Returns the messages that show the visible segments, in the order given.

    A message that an edit leaves empty, or with nothing but reasoning, is left out.
    Neighbours of one role that an absence left side by side become one message.

    Raises:
        MessageFormatError: when a segment is from another format, lacks the text of its form, or
            is a system segment.
    """
    return merged(lay_out(segments, AnthropicWire()))


def _envelope(message: Mapping[str, Any], has_content: bool, segments: int) -> Part:
    moved = ("content",) if has_content else ()
    return Envelope("anthropic", message, moved, segments).part()


def _add_blocks(
    builder: SegmentBuilder, message: Mapping[str, Any], content: Sequence[Any], index: int
) -> None:
    """Appends one segment for each block of a user message."""
    envelope = _envelope(message, True, len(content))
    for number, block in enumerate(blocks_of(content, index)):
        position = (index, number)
        if block["type"] == "tool_result":
            call_id = string_at(block, "tool_use_id", index, "Name the call that it answers.")
            inner = tuple(_parts(block.get("content"), index))
            wrapper = Part("opaque", name=RESULT, block=hollow(block, ["content"] if inner else ()))
            builder.result(call_id, (envelope, wrapper, *inner), position)
        else:
            kind = _KINDS.get(block["type"], Kind.TEXT)
            title = block.get("title")
            name = title if kind == Kind.DOCUMENT and isinstance(title, str) else ""
            builder.user(kind, (envelope, _block_part(block, index)), position, name)


def _parts(content: object, index: int) -> Iterator[Part]:
    """Yields the parts of some content; none where it is empty, so that its holder keeps it."""
    if isinstance(content, str):
        if content:
            yield Part("text", content)
    elif isinstance(content, list | tuple):
        for block in blocks_of(content, index):
            yield _block_part(block, index)
    elif content is not None:
        raise wrong_content(index, content)


def _block_part(block: Mapping[str, Any], index: int) -> Part:
    kind = block["type"]
    if kind == "text":
        return Part("text", string_at(block, "text", index, "Put the text there."), block=block)
    if kind == "tool_use":
        return _call(block, index)
    if kind == "thinking":
        thinking = block.get("thinking")
        return Part("reasoning", thinking if isinstance(thinking, str) else "", block=block)
    if kind == "redacted_thinking":
        return Part("reasoning", block=block)
    if kind == "image":
        return Part("image", block=block)
    text = _document_text(block) if _KINDS.get(kind) == Kind.DOCUMENT else ""
    return Part("text" if text else "opaque", text, block=block)


def _call(block: Mapping[str, Any], index: int) -> Part:
    arguments = block.get("input")
    if not isinstance(arguments, Mapping):
        raise malformed(index, "'input' of a 'tool_use' must be a dict", arguments, "Parse it.")
    call_id = string_at(block, "id", index, "Results refer to a call by its id.")
    name = string_at(block, "name", index, "Name the tool.")
    return Part("call", json.dumps(arguments, ensure_ascii=False), name, call_id, block)


def _document_text(block: Mapping[str, Any]) -> str:
    """Returns what can be read of a document without opening files: inline text."""
    source = block.get("source", block)
    if not isinstance(source, Mapping):
        source = block  # a search result's source is its address
    content = source.get("data") if source.get("type") == "text" else source.get("content")
    if isinstance(content, str):
        return content
    inner = content if isinstance(content, list | tuple) else ()
    texts = (b.get("text") for b in inner if isinstance(b, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
