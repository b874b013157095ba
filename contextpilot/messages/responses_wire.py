"""How OpenAI Responses items are written.

An assistant turn is several items. So what the layout takes for one message is a bundle here, a
dict that lists the items of one group under "items", and `items_of` takes the bundles apart again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.segment import Form, Kind, Part, Role
from contextpilot.messages.arguments import fold_arguments
from contextpilot.messages.envelope import content_parts, envelope_of, is_whole
from contextpilot.messages.frame import described
from contextpilot.messages.layout import RELOAD_TOOL, Group, Message, Outgoing, is_made, reload_id
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.responses_items import CALLS, OUTPUTS, item_type


class ResponsesWire:
    """Writes the items of one turn, or one other item."""

    shared_roles = frozenset({Role.USER})

    def __init__(self, nonce: str = "") -> None:
        """Takes what goes into the boundary around data, so that no text can know it."""
        self.nonce = nonce

    def message(self, group: Group) -> Message | None:
        """Returns a bundle of the host's own items, rebuilt ones, or new ones."""
        first = group[0]
        if is_made(first) and (text := described(first, self.nonce)).strip():
            return self.data_message(text)
        envelope = envelope_of(first.segment, "responses")
        if first.segment.kind == Kind.TURN:
            items = _turn_items(first)
            return _bundle(*items) if items else None
        item = _item(group, envelope)
        return None if item is None else _bundle(item)

    def with_copy(self, results: Message, copy: RenderedSegment) -> Message:
        """Returns the bundle whose last output also shows the original, its images included."""
        *before, last = results["items"]
        if item_type(last) not in OUTPUTS:  # a screenshot has no place for text
            text = f"[reloaded {reload_id(copy)}]\n{_copy_text(copy)}"
            return _bundle(*before, last, *self.data_message(text)["items"])
        header, images = f"[reloaded {reload_id(copy)}]\n", _copy_images(copy)
        output = last.get("output")
        if images or isinstance(output, list | tuple):
            output = [*_as_blocks(output), _text_block(header + _copy_text(copy)), *images]
        else:
            text = header + _copy_text(copy)
            output = f"{output}\n\n{text}" if output else text
        return _bundle(*before, {**last, "output": output})

    def reload_exchange(self, copy: RenderedSegment) -> tuple[Message, Message]:
        """Returns the synthetic call and the output that answers it."""
        arguments = json.dumps({"id": reload_id(copy)})
        call = Part("call", arguments, RELOAD_TOOL, f"reload_{copy.segment.id}")
        text, images = _copy_text(copy), _copy_images(copy)
        output = [*_as_blocks(text), *images] if images else text
        return _bundle(_call_item(call)), _bundle(_output_item(call.call_id, output))

    def data_message(self, text: str) -> Message:
        """Returns a bundle of one user message."""
        return _bundle({"type": "message", "role": "user", "content": text})


def items_of(outgoing: Iterable[Outgoing]) -> list[Message]:
    """Returns the items of all bundles, in order."""
    return [item for bundle in outgoing for item in bundle.message["items"]]


def _bundle(*items: Message) -> Message:
    return {"items": list(items)}


def _turn_items(shown: RenderedSegment) -> list[Message]:
    """Returns the items of a turn that a form shows; reasoning is never left by itself."""
    segment, parts = shown.segment, content_parts(shown.segment)
    if shown.form != Form.FULL:
        if not any(part.type == "call" for part in parts):
            return _shortened(parts, shown.shown_text)
        parts = tuple(_folded(part, segment.id) for part in parts)
    items = (part.block if part.block is not None else _new_item(part) for part in parts)
    return [item for item in items if item is not None]


def _shortened(parts: Sequence[Part], text: str) -> list[Message]:
    """Returns one message instead of a turn, with the fields of the turn's last message.

    Its id goes: under that id the provider knows the whole text, and the reasoning before it.
    """
    if not text.strip():
        return []
    own = [part.block for part in parts if part.block and item_type(part.block) == "message"]
    fields = own[-1] if own else {"type": "message", "role": "assistant"}
    kept = {key: value for key, value in fields.items() if key not in ("id", "status")}
    return [{**kept, "content": text}]


def _folded(part: Part, segment_id: str) -> Part:
    """Returns a call with its long argument leaves hidden; other parts as they are."""
    text = fold_arguments(part.text, segment_id) if part.type == "call" else part.text
    if text == part.text:
        return part
    item = part.block if part.block is not None else _call_item(part)
    key = CALLS[item_type(item)]
    return replace(
        part, text=text, block={**item, key: json.loads(text) if key == "input" else text}
    )


def _new_item(part: Part) -> Message | None:
    """Returns the item for a part without one; reasoning that no provider signed has none."""
    if part.type == "call":
        return _call_item(part)
    if part.type == "text" and part.text.strip():
        return {"type": "message", "role": "assistant", "content": part.text}
    return None


def _call_item(part: Part) -> Message:
    return {
        "type": "function_call",
        "call_id": part.call_id,
        "name": part.name,
        "arguments": part.text,
    }


def _output_item(call_id: str, output: Any) -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _item(group: Group, envelope: Mapping[str, Any] | None) -> Message | None:
    """Returns the item of a message or of one output."""
    first = group[0].segment
    if envelope is not None and (is_whole(group, envelope) or _is_fixed(envelope["fields"])):
        original: Message | None = getattr(envelope, "original", None)
        parts = [part for shown in group for part in content_parts(shown.segment)]
        return original if original is not None else _filled(envelope["fields"], parts)
    parts = [part for shown in group for part in _shown_parts(shown)]
    if first.kind != Kind.RESULT and not any(_speaks(part) for part in parts):
        return None
    if envelope is not None:
        return _filled(envelope["fields"], parts)
    if first.kind == Kind.RESULT:
        return _filled(_output_item(first.call_id, ""), parts)
    return _filled({"type": "message", "role": first.role.name.lower(), "content": None}, parts)


def _is_fixed(fields: Mapping[str, Any]) -> bool:
    """True for an item that has one form only: no text can stand for a screenshot."""
    return item_type(fields) not in ("message", *OUTPUTS)


def _shown_parts(shown: RenderedSegment) -> Sequence[Part]:
    """Returns the content parts that a form shows."""
    parts = content_parts(shown.segment)
    if shown.form == Form.FULL:
        return parts
    text = shown.shown_text
    listed = shown.segment.kind != Kind.RESULT and any(part.block is not None for part in parts)
    return (Part("text", text, block=_text_block(text) if listed else None),)


def _speaks(part: Part) -> bool:
    """False for blank text: no message may consist of it."""
    return part.type != "text" or bool(part.text.strip())


def _filled(fields: Mapping[str, Any], parts: Sequence[Part]) -> Message:
    """Returns the fields with the parts back in their place."""
    content = [part for part in parts if part.block is not None or part.type == "text"]
    if not content:
        return dict(fields)
    key = "output" if item_type(fields) in OUTPUTS else "content"
    if all(part.block is None for part in content):
        return {**fields, key: "\n".join(part.text for part in content)}
    return {**fields, key: [part.block or _text_block(part.text) for part in content]}


def _text_block(text: str) -> Message:
    return {"type": "input_text", "text": text}


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [_text_block(content)] if content else []
    return list(content or ())


def _copy_images(copy: RenderedSegment) -> list[Any]:
    """Returns the images of a reloaded original that an output can hold."""
    blocks = [p.block for p in copy.segment.parts if p.type == "image" and p.block is not None]
    shown = blocks if copy.form == Form.FULL else []
    return [block for block in shown if block.get("type") == "input_image"]


def _copy_text(copy: RenderedSegment) -> str:
    """Returns the text of a reloaded original, and how many images only their own item shows."""
    images = copy.segment.image_count if copy.form == Form.FULL else 0
    hidden = images - len(_copy_images(copy))
    note = f"[{hidden} image(s): only a reload in place shows them]" if hidden else ""
    return "\n".join(line for line in (copy.shown_text, note) if line)
