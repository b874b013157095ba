"""How Anthropic messages are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.segment import Form, Kind, Part, Role, Segment
from contextpilot.errors import MessageFormatError
from contextpilot.messages.arguments import fold_arguments
from contextpilot.messages.envelope import (
    RESULT,
    content_parts,
    envelope_of,
    is_whole,
    replacement,
)
from contextpilot.messages.frame import described
from contextpilot.messages.layout import (
    RELOAD_TOOL,
    Group,
    Message,
    Outgoing,
    is_made,
    reload_id,
)
from contextpilot.messages.rendered import RenderedSegment


class AnthropicWire:
    """Writes one message of a request."""

    shared_roles = frozenset({Role.USER, Role.TOOL})

    def __init__(self, nonce: str = "") -> None:
        """Takes what goes into the boundary around data, so that no text can know it."""
        self.nonce = nonce

    def message(self, group: Group) -> Message | None:
        """Returns the host's own message, one rebuilt from its parts, or a new one."""
        first = group[0].segment
        if is_made(group[0]) and (text := described(group[0], self.nonce)).strip():
            return self.data_message(text)
        envelope = envelope_of(first, "anthropic")
        if envelope is not None and is_whole(group, envelope):
            original: Message | None = getattr(envelope, "original", None)
            return original if original is not None else _rebuilt(group, envelope["fields"])
        contents = [item for shown in group for item in _shown(shown)]
        if not any(_speaks(item) for item in contents):
            return None
        contents = [item for item in contents if not _is_blank(item)]
        fields = envelope["fields"] if envelope is not None else {"role": _role(first)}
        return {**fields, "content": _content(contents)}

    def with_copy(self, results: Message, copy: RenderedSegment) -> Message:
        """Returns the message with the original behind the content of its last result."""
        blocks = list(results["content"])
        at = max(i for i, block in enumerate(blocks) if block["type"] == "tool_result")
        copied = _copy_blocks(copy)
        header = {"type": "text", "text": f"[reloaded {reload_id(copy)}]"}
        own = _as_blocks(blocks[at].get("content"))
        blocks[at] = {**blocks[at], "content": [*own, header, *copied]}
        return {**results, "content": blocks}

    def reload_exchange(self, copy: RenderedSegment) -> tuple[Message, Message]:
        """Returns the synthetic call and the message with its result."""
        arguments = json.dumps({"id": reload_id(copy)})
        call = Part("call", arguments, RELOAD_TOOL, f"reload_{copy.segment.id}")
        result = {
            "type": "tool_result",
            "tool_use_id": call.call_id,
            "content": _copy_blocks(copy),
        }
        return (
            {"role": "assistant", "content": [_call_block(call, copy.segment.id)]},
            {"role": "user", "content": [result]},
        )

    def data_message(self, text: str) -> Message:
        """Returns a user message."""
        return {"role": "user", "content": [{"type": "text", "text": text}]}


def merged(outgoing: Sequence[Outgoing]) -> list[Message]:
    """Returns the messages, neighbours of one role joined where the host had something between."""
    out: list[Message] = []
    previous = -1
    for item in outgoing:
        neighbours = previous >= 0 and item.index == previous + 1
        if out and out[-1]["role"] == item.message["role"] and not neighbours:
            content = [
                *_as_blocks(out[-1].get("content")),
                *_as_blocks(item.message.get("content")),
            ]
            out[-1] = {**item.message, **out[-1], "content": content}
        else:
            out.append(item.message)
        previous = item.index
    return out


def _rebuilt(group: Group, fields: Mapping[str, Any]) -> Message:
    """Returns a whole message from its parts, byte for byte."""
    contents = [item for shown in group for item in _full(shown.segment)]
    return {**fields, "content": _content(contents)} if contents else dict(fields)


def _full(segment: Segment) -> list[Any]:
    """Returns the blocks of a segment in full (a string where the content is plain text)."""
    if segment.kind == Kind.RESULT:
        return [_result_block(segment, content_parts(segment))]
    blocks = []
    for part in content_parts(segment):
        if part.block is not None:
            blocks.append(part.block)
        elif part.type == "call":
            blocks.append(_call_block(part, segment.id))
        elif part.type == "text":
            blocks.append(part.text)
    return blocks


def _shown(shown: RenderedSegment) -> list[Any]:
    """Returns the blocks that a form shows."""
    segment, parts = shown.segment, content_parts(shown.segment)
    if shown.form == Form.FULL:
        return _full(segment)
    if segment.kind == Kind.TURN and any(part.type == "call" for part in parts):
        folded = (_folded(part, segment.id) if part.type == "call" else part for part in parts)
        return _full(replace(segment, parts=tuple(folded)))
    part = replacement(parts, shown.shown_text)
    if segment.kind == Kind.RESULT:
        return [_result_block(segment, (part,))]
    return [part.text if part.block is None else part.block]


def _folded(part: Part, segment_id: str) -> Part:
    """Returns a call with its long argument leaves hidden."""
    text = fold_arguments(part.text, segment_id)
    if text == part.text:
        return part
    block = {**_call_block(part, segment_id), "input": json.loads(text)}
    return replace(part, text=text, block=block)


def _call_block(part: Part, segment_id: str) -> dict[str, Any]:
    if part.block is not None:
        block: dict[str, Any] = part.block
        return block
    try:
        arguments = json.loads(part.text or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise MessageFormatError(
            f"call {part.call_id!r} of segment {segment_id} needs a JSON object as arguments. "
            f"Received {part.text[:80]!r}. Write them with json.dumps of a dict."
        )
    return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}


def _result_block(segment: Segment, parts: Sequence[Part]) -> dict[str, Any]:
    """Returns a tool_result block with `parts` as its content."""
    wrapper = next((part.block for part in segment.parts if part.name == RESULT), None)
    if wrapper is None:
        wrapper = {"type": "tool_result", "tool_use_id": segment.call_id}
    if not parts:
        return dict(wrapper)
    return {**wrapper, "content": _content([p.text if p.block is None else p.block for p in parts])}


def _content(contents: Sequence[Any]) -> Any:
    """Returns message content: one string stays a string, everything else a list of blocks."""
    if len(contents) == 1 and isinstance(contents[0], str):
        return contents[0]
    return [block for item in contents for block in _as_blocks(item)]


def _as_blocks(content: Any) -> list[Any]:
    """Returns content as a list of blocks; blank text is none, since providers refuse it."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    if isinstance(content, Mapping):
        return [content]
    return list(content or ())


def _is_blank(item: Any) -> bool:
    if isinstance(item, str):
        return not item.strip()
    return item["type"] == "text" and not item["text"].strip()


def _speaks(item: Any) -> bool:
    """False for thinking and blank text: no message may consist of them."""
    if isinstance(item, Mapping) and item["type"] in ("thinking", "redacted_thinking"):
        return False
    return not _is_blank(item)


def _role(segment: Segment) -> str:
    if segment.role == Role.SYSTEM:
        raise MessageFormatError(
            f"segment {segment.id} cannot be a message. Received a system segment. "
            "Pass its text as the request's own 'system' argument."
        )
    return "assistant" if segment.role == Role.ASSISTANT else "user"


def _copy_blocks(copy: RenderedSegment) -> list[Any]:
    """Returns a reloaded original as result content, its images included."""
    images = [p.block for p in copy.segment.parts if p.type == "image" and p.block is not None]
    return [*_as_blocks(copy.shown_text), *(images if copy.form == Form.FULL else [])]
