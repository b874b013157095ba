"""OpenAI Responses items to segments and back.

`render(parse(items))` with everything in full is `items` again, byte for byte as JSON. A part of a
user message is one segment, and so is each output of a call. What the model wrote in a row is one
assistant turn: its reasoning, messages and calls. Server-side tools are kept inside their turn as
they came, and never read, and so are a computer's or a shell's calls with the outputs right behind
them. Items that steer the whole request, or stand for what was compacted, are pinned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.core.segment import Kind, Part, Segment
from contextpilot.messages.builder import SegmentBuilder
from contextpilot.messages.checks import blocks_of, string_at, wrong_content
from contextpilot.messages.envelope import Envelope
from contextpilot.messages.layout import lay_out
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    CALLS,
    OUTPUTS,
    SETTINGS,
    answer_key,
    answers,
    call_key,
    each_item,
    is_turn_item,
    item_type,
    runs,
)
from contextpilot.messages.responses_wire import ResponsesWire, items_of

__all__ = ["parse", "render"]

_KINDS = {"input_image": Kind.IMAGE, "input_file": Kind.DOCUMENT}


def parse(items: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """Returns the segments of an item list, in host order.

    Raises:
        MessageFormatError: naming the first item that is not in this format.
    """
    builder = SegmentBuilder()
    for index, run in runs(each_item(items)):
        item, kind = run[0], item_type(run[0])
        if is_turn_item(item):
            members = (_turn_part(member, run, index + n) for n, member in enumerate(run))
            builder.turn((Envelope("responses", {}, (), 1).part(), *members), index)
        elif kind in OUTPUTS:
            call_id = string_at(item, "call_id", index, "Name the call that it answers.")
            content = tuple(_content(item.get("output"), index))
            builder.result(call_id, _sealed(item, "output", content), (index, 0))
        elif kind in ANSWERS:
            image = (Part("image"),) if kind == "computer_call_output" else ()
            parts = (Envelope("responses", item, (), 1).part(), *image)
            builder.result(str(answer_key(item)), parts, (index, 0), kind)
        elif kind in SETTINGS:
            builder.system((Envelope("responses", item, (), 1).part(),), index, kind)
        elif item["role"] == "user":
            _add_user(builder, item, tuple(_content(item.get("content"), index)), index)
        else:
            content = tuple(_content(item.get("content"), index))
            builder.system(_sealed(item, "content", content), index)
    return builder.finish()


def render(segments: Sequence[RenderedSegment]) -> list[dict[str, Any]]:
    """Returns the items that show the visible segments, in the order given.

    A message that an edit leaves empty is left out, and a turn with nothing but reasoning too.

    Raises:
        MessageFormatError: when a segment is from another format or lacks the text of its form.
    """
    return items_of(lay_out(segments, ResponsesWire()))


def _sealed(
    item: Mapping[str, Any], key: str, content: tuple[Part, ...], segments: int = 1
) -> tuple[Part, ...]:
    """Returns a segment's parts behind the envelope of its item."""
    moved = (key,) if content else ()
    return (Envelope("responses", item, moved, segments).part(), *content)


def _add_user(
    builder: SegmentBuilder, item: Mapping[str, Any], content: tuple[Part, ...], index: int
) -> None:
    """Appends one segment for each part of a user message, and one for an empty message."""
    if not content:
        builder.user(Kind.TEXT, _sealed(item, "content", ()), (index, 0))
        return
    envelope, *parts = _sealed(item, "content", content, len(content))
    for number, part in enumerate(parts):
        block = part.block or {}
        name = block.get("filename") if block.get("type") == "input_file" else ""
        kind = _KINDS.get(block.get("type", ""), Kind.TEXT)
        builder.user(kind, (envelope, part), (index, number), name if isinstance(name, str) else "")


def _content(content: object, index: int) -> Iterator[Part]:
    """Yields the parts of some content; none where it is empty, so that the envelope keeps it."""
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
    if kind in ("input_text", "output_text", "text"):
        return Part("text", string_at(block, "text", index, "Put the text there."), block=block)
    if kind == "refusal":
        return Part("text", string_at(block, "refusal", index, "Put the text there."), block=block)
    return Part("image" if kind == "input_image" else "opaque", block=block)


def _turn_part(item: Mapping[str, Any], run: Sequence[Mapping[str, Any]], index: int) -> Part:
    """Returns the part that holds one item of a turn whole."""
    kind = item_type(item)
    if kind == "message":
        return Part("text", _read(item.get("content"), index), block=item)
    if kind == "reasoning":
        texts = (_texts(item.get(key)) for key in ("summary", "content"))
        return Part("reasoning", "\n".join(text for text in texts if text), block=item)
    if kind in CALLS:
        return _call(item, CALLS[kind], index)
    if kind in OUTPUTS:
        return Part("text", _read(item.get("output"), index), block=item)
    if kind in ANSWERED and not any(answers(other, item) for other in run):
        key = call_key(item)  # its answer comes later, or is awaited
        return Part("call", "", kind, key, item) if isinstance(key, str) else _opaque(item)
    return _opaque(item)


def _opaque(item: Mapping[str, Any]) -> Part:
    """Returns a part that is never read; a screenshot and a generated image cost as images."""
    kind = item_type(item)
    seen = kind == "computer_call_output" or (
        kind == "image_generation_call" and bool(item.get("result"))
    )
    return Part("image" if seen else "opaque", block=item)


def _call(item: Mapping[str, Any], key: str, index: int) -> Part:
    call_id = string_at(item, "call_id", index, "Outputs refer to a call by its id.")
    name = string_at(item, "name", index, "Name the tool.")
    text = string_at(item, key, index, "Write it as text (arguments with json.dumps).")
    if key == "input":  # free text: its JSON form is one string leaf
        text = json.dumps(text, ensure_ascii=False)
    return Part("call", text, name, call_id, item)


def _read(content: object, index: int) -> str:
    """Returns the text of content that stays in one piece."""
    return "\n".join(part.text for part in _content(content, index) if part.text)


def _texts(blocks: object) -> str:
    """Returns the texts of a reasoning item's summary or content."""
    listed = blocks if isinstance(blocks, list | tuple) else ()
    texts = (block.get("text") for block in listed if isinstance(block, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
