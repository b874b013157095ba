"""How OpenAI chat messages are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.segment import Form, Kind, Part, Role
from contextpilot.messages.arguments import fold_arguments
from contextpilot.messages.envelope import content_parts, envelope_of, is_whole, replacement
from contextpilot.messages.frame import described
from contextpilot.messages.layout import RELOAD_TOOL, Group, Message, is_made, reload_id
from contextpilot.messages.rendered import RenderedSegment

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put reasoning, beside the content."""

_FIELDS = frozenset({*REASONING_KEYS, "refusal"})
"""Names of parts that are fields of the message; all other parts are content."""


class OpenAIWire:
    """Writes one message of a chat request."""

    shared_roles = frozenset({Role.USER})

    def __init__(self, nonce: str = "") -> None:
        """Takes what goes into the boundary around data, so that no text can know it."""
        self.nonce = nonce

    def message(self, group: Group) -> Message | None:
        """Returns the host's own message, one rebuilt from its parts, or a new one."""
        first = group[0].segment
        if is_made(group[0]) and (text := described(group[0], self.nonce)).strip():
            return self.data_message(text)
        envelope = envelope_of(first, "openai")
        if envelope is not None and is_whole(group, envelope):
            original: Message | None = getattr(envelope, "original", None)
            parts = [part for shown in group for part in content_parts(shown.segment)]
            return original if original is not None else _filled(envelope["fields"], parts)
        parts = [part for shown in group for part in _shown_parts(shown)]
        if first.kind != Kind.RESULT and not any(_speaks(part) for part in parts):
            return None
        return _filled(_edited_fields(group[0], envelope, parts), parts)

    def with_copy(self, results: Message, copy: RenderedSegment) -> Message:
        """Returns the tool message with the original behind its own content."""
        text = f"[reloaded {reload_id(copy)}]\n{_copy_text(copy)}"
        content = results.get("content")
        if isinstance(content, list | tuple):
            return {**results, "content": [*content, {"type": "text", "text": text}]}
        # a string stays a string: many servers take no blocks here
        return {**results, "content": f"{content}\n\n{text}" if content else text}

    def reload_exchange(self, copy: RenderedSegment) -> tuple[Message, Message]:
        """Returns the synthetic call and the tool message that answers it."""
        arguments = json.dumps({"id": reload_id(copy)})
        call = Part("call", arguments, RELOAD_TOOL, f"reload_{copy.segment.id}")
        return (
            {"role": "assistant", "content": None, "tool_calls": [_call_block(call)]},
            {"role": "tool", "tool_call_id": call.call_id, "content": _copy_text(copy)},
        )

    def data_message(self, text: str) -> Message:
        """Returns a user message."""
        return {"role": "user", "content": text}


def _shown_parts(shown: RenderedSegment) -> Sequence[Part]:
    """Returns the content parts that a form shows."""
    segment, parts = shown.segment, content_parts(shown.segment)
    if shown.form == Form.FULL:
        return parts
    if segment.kind == Kind.TURN and any(part.type == "call" for part in parts):
        return [_folded(part, segment.id) if part.type == "call" else part for part in parts]
    return (replacement(parts, shown.shown_text),)


def _folded(part: Part, segment_id: str) -> Part:
    """Returns a call with its long argument leaves hidden."""
    text = fold_arguments(part.text, segment_id)
    if text == part.text:
        return part
    block = _call_block(part)
    kind, key = ("custom", "input") if block.get("type") == "custom" else ("function", "arguments")
    value = json.loads(text) if kind == "custom" else text
    return replace(part, text=text, block={**block, kind: {**block[kind], key: value}})


def _call_block(part: Part) -> dict[str, Any]:
    if part.block is not None:
        block: dict[str, Any] = part.block
        return block
    function = {"name": part.name, "arguments": part.text}
    return {"id": part.call_id, "type": "function", "function": function}


def _speaks(part: Part) -> bool:
    """False for reasoning and blank text: no message may consist of them."""
    return part.type != "reasoning" and not (part.type == "text" and not part.text.strip())


def _edited_fields(
    first: RenderedSegment, envelope: Mapping[str, Any] | None, parts: Sequence[Part]
) -> dict[str, Any]:
    """Returns what stands around the content of an edited or a new message."""
    segment = first.segment
    if envelope is None:
        fields: dict[str, Any] = {"role": segment.role.name.lower(), "content": None}
        if segment.kind == Kind.RESULT:
            fields["tool_call_id"] = segment.call_id
        return fields
    fields = dict(envelope["fields"])
    if segment.kind == Kind.TURN:  # reasoning is whole or absent, never a key without its value
        shown = {part.name for part in parts}
        fields = {k: v for k, v in fields.items() if k not in REASONING_KEYS or k in shown}
    return fields


def _filled(fields: Mapping[str, Any], parts: Sequence[Part]) -> Message:
    """Returns the fields with the parts back in their places."""
    message = dict(fields)
    content: list[Part] = []
    calls: list[Any] = []
    for part in parts:
        if part.type == "call":
            calls.append(_call_block(part))
        elif part.name in _FIELDS:
            message[part.name] = part.text if part.block is None else part.block
        elif part.block is not None or part.type == "text":
            content.append(part)
    if any(part.block is not None for part in content):
        message["content"] = [part.block or {"type": "text", "text": part.text} for part in content]
    elif content:
        message["content"] = "\n".join(part.text for part in content)
    if calls:
        message["tool_calls"] = calls
    return message


def _copy_text(copy: RenderedSegment) -> str:
    """Returns a reloaded original as text: tool messages hold no images."""
    images = copy.segment.image_count if copy.form == Form.FULL else 0
    note = f"[{images} image(s): only a reload in place shows them]" if images else ""
    return "\n".join(line for line in (copy.shown_text, note) if line)
