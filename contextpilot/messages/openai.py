"""OpenAI chat messages to segments and back.

`render(parse(messages))` with everything in full is `messages` again, byte for byte as JSON. A text
part of a message is one segment, an image one, a file one; an assistant turn with its reasoning and
calls is one, and each tool message is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.core.segment import Kind, Part, Segment
from contextpilot.messages.arguments import fold_arguments
from contextpilot.messages.builder import SegmentBuilder
from contextpilot.messages.checks import (
    blocks_of,
    each_message,
    malformed,
    refuse_foreign,
    string_at,
    wrong_content,
)
from contextpilot.messages.envelope import Envelope
from contextpilot.messages.layout import lay_out
from contextpilot.messages.openai_wire import REASONING_KEYS, OpenAIWire
from contextpilot.messages.rendered import RenderedSegment

__all__ = ["extend", "fold_arguments", "parse", "render"]

_ROLES = {
    "system": "",
    "developer": "",
    "user": "",
    "assistant": "",
    "tool": "",
    "function": "Write the result as a 'tool' message that answers an entry of 'tool_calls'.",
}
_KINDS = {
    "image_url": Kind.IMAGE,
    "input_image": Kind.IMAGE,
    "file": Kind.DOCUMENT,
    "input_file": Kind.DOCUMENT,
}


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
        refuse_foreign(index, message, "openai")
        name = message.get("name")
        name = name if isinstance(name, str) else ""
        content = tuple(_content(message, index))
        if role == "user":
            _add_user(builder, message, content, index, name)
        elif role == "assistant":
            parts = (*_reasoning(message), *content, *_refusal(message), *_calls(message, index))
            builder.turn(_sealed(message, content, parts), index, name)
        elif role == "tool":
            call_id = string_at(message, "tool_call_id", index, "Name the call that it answers.")
            builder.result(call_id, _sealed(message, content, content), (index, 0), name)
        else:
            builder.system(_sealed(message, content, content), index, name)


def render(segments: Sequence[RenderedSegment]) -> list[dict[str, Any]]:
    """Returns the messages that show the visible segments, in the order given.

    A message that an edit leaves empty, or with nothing but reasoning, is left out.

    Raises:
        MessageFormatError: when a segment is from another format or lacks the text of its form.
    """
    return [outgoing.message for outgoing in lay_out(segments, OpenAIWire())]


def _add_user(
    builder: SegmentBuilder,
    message: Mapping[str, Any],
    content: tuple[Part, ...],
    index: int,
    name: str,
) -> None:
    """Appends one segment for each part of a user message, and one for an empty message."""
    if not content:
        builder.user(Kind.TEXT, _sealed(message, (), ()), (index, 0), name)
        return
    envelope, *parts = _sealed(message, content, content, len(content))
    for number, part in enumerate(parts):
        kind = Kind.TEXT if part.block is None else _KINDS.get(part.block["type"], Kind.TEXT)
        builder.user(kind, (envelope, part), (index, number), name or _file_name(part))


def _sealed(
    message: Mapping[str, Any], content: Sequence[Part], parts: tuple[Part, ...], segments: int = 1
) -> tuple[Part, ...]:
    """Returns a segment's parts behind the envelope of its message."""
    moved = {part.name for part in parts if part.name in message and part.type != "call"}
    if content:
        moved.add("content")
    if any(part.type == "call" for part in parts):
        moved.add("tool_calls")
    return (Envelope("openai", message, moved, segments).part(), *parts)


def _content(message: Mapping[str, Any], index: int) -> Iterator[Part]:
    """Yields the parts of `content`; none where it is empty, so that the envelope keeps it."""
    content = message.get("content")
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
    if kind in ("text", "input_text", "output_text"):
        return Part("text", string_at(block, "text", index, "Put the text there."), block=block)
    if kind == "refusal":
        return Part("text", string_at(block, "refusal", index, "Put the text there."), block=block)
    if kind in ("thinking", "reasoning"):
        return Part("reasoning", block=block)
    return Part("image" if _KINDS.get(kind) == Kind.IMAGE else "opaque", block=block)


def _file_name(part: Part) -> str:
    file = part.block.get("file") if part.block is not None else None
    name = file.get("filename") if isinstance(file, Mapping) else None
    return name if isinstance(name, str) else ""


def _reasoning(message: Mapping[str, Any]) -> Iterator[Part]:
    """Yields reasoning that servers put beside the content, named by its key."""
    for key in REASONING_KEYS:
        value = message.get(key)
        if isinstance(value, str) and value:
            yield Part("reasoning", value, name=key)
        elif value:
            yield Part("reasoning", name=key, block=value)


def _refusal(message: Mapping[str, Any]) -> Iterator[Part]:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield Part("text", refusal, name="refusal")


def _calls(message: Mapping[str, Any], index: int) -> Iterator[Part]:
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise malformed(index, "'tool_calls' must be a list", calls, "Leave it out or list calls.")
    for call in calls:
        if not isinstance(call, Mapping):
            raise malformed(index, "a tool call must be a dict", call, "Convert SDK objects first.")
        call_id = string_at(call, "id", index, "Results refer to a call by its id.")
        kind = "custom" if call.get("type") == "custom" else "function"
        body = call.get(kind)
        if not isinstance(body, Mapping):
            raise malformed(index, f"a tool call needs {kind!r}", call, "Name what was called.")
        name = string_at(body, "name", index, "Name the tool.")
        if kind == "custom":  # free text: its JSON form is one string leaf
            text = json.dumps(
                string_at(body, "input", index, "Put the text there."), ensure_ascii=False
            )
        else:
            text = string_at(body, "arguments", index, "Write them as JSON text (json.dumps).")
        yield Part("call", text, name, call_id, call)
