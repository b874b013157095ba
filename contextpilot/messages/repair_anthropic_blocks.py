"""Repairs the blocks of one Anthropic message, as far as they do not depend on other messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from contextpilot.messages.checks import string_at
from contextpilot.messages.repair_reading import object_of
from contextpilot.messages.repair_record import Repair

Blocks: TypeAlias = list[Mapping[str, Any]]

_THINKING = ("thinking", "redacted_thinking")
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def as_blocks(content: Any) -> Blocks:
    """Returns message content as a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


def with_blocks(message: Mapping[str, Any], blocks: Blocks) -> Mapping[str, Any]:
    """Returns the message with these blocks; the same message where it has them."""
    unchanged = "content" in message and as_blocks(message["content"]) == blocks
    return message if unchanged else {**message, "content": blocks}


def is_result(block: Mapping[str, Any]) -> bool:
    """True for the result of a call by the host."""
    return bool(block["type"] == "tool_result")


def is_silent(blocks: Blocks) -> bool:
    """True for blocks that no assistant message may consist of."""
    return all(block["type"] in _THINKING for block in blocks)


def without_blank_text(blocks: Blocks, index: int, repairs: list[Repair]) -> Blocks:
    """Returns the blocks but for blank text and empty compactions."""
    left = [block for block in blocks if not _is_blank(block)]
    if count := len(blocks) - len(left):
        text = f"{count} blank text {'block was' if count == 1 else 'blocks were'} left out"
        repairs.append(Repair(index, "empty_text", text))
    return left


def without_null_results(blocks: Blocks, index: int, repairs: list[Repair]) -> Blocks:
    """Returns the blocks; results that say nothing have no content, which may not be null."""
    nulls = sum(_has_null(block) for block in blocks)
    if not nulls:
        return blocks
    repairs.append(Repair(index, "empty_content", f"the null content of {nulls} result(s) left"))
    return [
        {key: value for key, value in block.items() if key != "content"}
        if _has_null(block)
        else block
        for block in blocks
    ]


def _has_null(block: Mapping[str, Any]) -> bool:
    return is_result(block) and block.get("content", "") is None


def _is_blank(block: Mapping[str, Any]) -> bool:
    if block["type"] == "text":
        return not str(block.get("text") or "").strip()
    return block["type"] == "compaction" and block.get("content") == ""


def with_whole_thinking(blocks: Blocks, index: int, is_open: bool, repairs: list[Repair]) -> Blocks:
    """Returns the blocks without signed thinking whose text was removed.

    Args:
        blocks: of an assistant message.
        index: of the message.
        is_open: inside the open tool loop the provider wants the turn's other thinking back as it
            signed it; behind it, a turn's thinking is whole or absent.
        repairs: receives what was left out.
    """
    if not any(map(_is_blanked, blocks)):
        return blocks
    what = "the thinking block without its text" if is_open else "the turn's thinking"
    repairs.append(Repair(index, "blank_thinking", f"{what} was left out"))
    if is_open:
        return [block for block in blocks if not _is_blanked(block)]
    return [block for block in blocks if block["type"] not in _THINKING]


def _is_blanked(block: Mapping[str, Any]) -> bool:
    is_signed = block["type"] == "thinking" and bool(block.get("signature"))
    return is_signed and not block.get("thinking")


def with_object_inputs(blocks: Blocks, index: int, repairs: list[Repair]) -> Blocks:
    """Returns the blocks with an object as the input of each call.

    Raises:
        MessageFormatError: at a call without an id.
    """
    return [
        _with_object_input(block, index, repairs) if block["type"] == "tool_use" else block
        for block in blocks
    ]


def _with_object_input(
    block: Mapping[str, Any], index: int, repairs: list[Repair]
) -> Mapping[str, Any]:
    call_id = string_at(block, "id", index, "Results refer to a call by its id.")
    if isinstance(block.get("input"), dict):
        return block
    repairs.append(Repair(index, "arguments", f"the input of {call_id!r} became an object"))
    return {**block, "input": object_of(block.get("input"))}


def with_server_pairs(blocks: Blocks, index: int, is_last: bool, repairs: list[Repair]) -> Blocks:
    """Returns the blocks of an assistant message without server-side calls or results alone.

    Args:
        blocks: of an assistant message.
        index: of the message.
        is_last: a call that ends the list is a turn that the server paused, and stays.
        repairs: receives what was left out.
    """
    answered = {block.get("tool_use_id") for block in blocks if _is_server_result(block)}
    if is_last and blocks and blocks[-1]["type"] in _SERVER_CALLS:
        answered.add(blocks[-1].get("id"))
    calls = {block.get("id") for block in blocks if block["type"] in _SERVER_CALLS}
    complete = (calls & answered) - {None}
    alone = [
        block
        for block in blocks
        if (block["type"] in _SERVER_CALLS and block.get("id") not in complete)
        or (_is_server_result(block) and block.get("tool_use_id") not in complete)
    ]
    if not alone:
        return blocks
    text = f"left out, since alone: {', '.join(block['type'] for block in alone)}"
    repairs.append(Repair(index, "server_pair", text))
    return [block for block in blocks if block not in alone]


def _is_server_result(block: Mapping[str, Any]) -> bool:
    return bool(block["type"].endswith("_tool_result"))
