"""Repairs Anthropic messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.messages.checks import each_message, refuse_foreign
from contextpilot.messages.repair_anthropic_blocks import (
    Blocks,
    as_blocks,
    is_result,
    is_silent,
    with_blocks,
    with_object_inputs,
    with_server_pairs,
    with_whole_thinking,
    without_blank_text,
    without_null_results,
)
from contextpilot.messages.repair_pairs import Call, Pairing
from contextpilot.messages.repair_reading import read
from contextpilot.messages.repair_record import Repair, Repaired

_ROLES = dict.fromkeys(("user", "assistant"), "")
_OPENING = "[ContextPilot, not the user: what came before this is not part of the request]"


def _each(messages: Sequence[Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, message, _ in each_message(messages, _ROLES):
        refuse_foreign(index, message, "anthropic")
        yield index, message


def repair_anthropic(messages: Sequence[Mapping[str, Any]], pending_wait: int) -> Repaired:
    """Returns the repaired list.

    What stands in for results is a message of its own where no result of the turn is there: to
    the provider, neighbours with one role are one message.

    Raises:
        MessageFormatError: at what cannot be read.
    """
    repairs: list[Repair] = []
    given = read(messages, _each, repairs)
    blocks = _cleaned(given, repairs)
    pairing = _paired(blocks, given, repairs)
    kept = _speaking(blocks, given, pairing, repairs)
    last = _settle(kept, given, pairing)
    carriers = _carriers(pairing, repairs)
    pending = -1 if last in carriers else last
    turns = [index for index, message in enumerate(given) if message["role"] == "assistant"]
    pairing.fill(turns, pending, pending_wait)
    out: list[Any] = []
    synthetic: set[int] = set()
    carrying = {index for indices in carriers.values() for index in indices}
    for index, own in kept.items():
        if given[index]["role"] == "assistant":
            out.append(with_blocks(given[index], _with_ids(own, pairing.turns[index])))
            if calls := pairing.answered(index):
                if not any(call.result for call in calls):
                    synthetic.add(len(out))
                out.append(_answers(calls, carriers.get(index, ()), kept, given))
        elif index not in carrying and (rest := _rest(own)):
            out.append(with_blocks(given[index], rest))
    if out and out[0]["role"] != "user":
        repairs.append(Repair(min(kept), "first_user", "a note was put before the first message"))
        out.insert(0, {"role": "user", "content": _OPENING})
        synthetic = {0, *(index + 1 for index in synthetic)}
    return Repaired(out, tuple(sorted(repairs, key=lambda r: r.index)), frozenset(synthetic))


def _cleaned(given: Sequence[Mapping[str, Any]], repairs: list[Repair]) -> list[Blocks]:
    """Returns the blocks of each message, as far as they can be sent; results come first."""
    cleaned = [
        without_null_results(
            without_blank_text(as_blocks(message.get("content")), index, repairs), index, repairs
        )
        for index, message in enumerate(given)
    ]
    texts = [i for i, own in enumerate(cleaned) if given[i]["role"] == "user" and _rest(own)]
    latest_text = max(texts, default=-1)
    for index, message in enumerate(given):
        blocks = cleaned[index]
        if message["role"] == "assistant":
            blocks = with_whole_thinking(blocks, index, index > latest_text, repairs)
            cleaned[index] = with_object_inputs(blocks, index, repairs)
            continue
        cleaned[index] = sorted(blocks, key=lambda block: not is_result(block))
        if cleaned[index] != blocks:
            repairs.append(Repair(index, "result_order", "results were moved to the front"))
    return cleaned


def _rest(blocks: Blocks) -> Blocks:
    """Returns what a user message holds besides results."""
    return [block for block in blocks if not is_result(block)]


def _paired(
    blocks: Sequence[Blocks], given: Sequence[Mapping[str, Any]], repairs: list[Repair]
) -> Pairing:
    """Returns which result answers which call."""
    pairing = Pairing(repairs)
    for index, message in enumerate(given):
        if message["role"] == "assistant":
            calls = [block for block in blocks[index] if block["type"] == "tool_use"]
            pairing.add_turn(index, [call["id"] for call in calls])
            continue
        for number, block in enumerate(blocks[index]):
            if is_result(block):
                pairing.add_result((index, number), block.get("tool_use_id"))
    return pairing


def _speaking(
    blocks: Sequence[Blocks],
    given: Sequence[Mapping[str, Any]],
    pairing: Pairing,
    repairs: list[Repair],
) -> dict[int, Blocks]:
    """Returns by index the blocks of messages that say something."""
    kept: dict[int, Blocks] = {}
    answering = {index for index, _ in pairing.calls}
    for index in reversed(range(len(given))):
        own = blocks[index]
        if given[index]["role"] == "assistant":
            own = with_server_pairs(own, index, not kept, repairs)
            speaks = not is_silent(own)
        else:
            speaks = index in answering or bool(_rest(own))
        if speaks:
            kept[index] = own
        elif not own:
            repairs.append(Repair(index, "empty_content", "left out: a message without content"))
        elif given[index]["role"] == "assistant":
            repairs.append(Repair(index, "reasoning_only", "left out: thinking alone"))
    return dict(reversed(kept.items()))


def _settle(
    kept: Mapping[int, Blocks], given: Sequence[Mapping[str, Any]], pairing: Pairing
) -> int:
    """Settles the pairing; returns the last message that stays and is not results alone."""
    follows: dict[int, int] = {}
    before = -1
    for index, own in kept.items():
        follows[index] = before
        if given[index]["role"] == "assistant" or _rest(own):
            before = index
    pairing.settle(follows)
    return before


def _carriers(pairing: Pairing, repairs: list[Repair]) -> dict[int, list[int]]:
    """Returns by turn the messages with results that stand right behind it, which become one."""
    carriers: dict[int, list[int]] = {}
    for index, turn in sorted({(at[0], c.turn) for at, c in pairing.calls.items() if c.is_home}):
        if turn in carriers:
            text = "moved into one message with the results before"
            repairs.append(Repair(index, "late_result", text))
        carriers.setdefault(turn, []).append(index)
    return carriers


def _answers(
    calls: Sequence[Call],
    carriers: Sequence[int],
    kept: Mapping[int, Blocks],
    given: Sequence[Mapping[str, Any]],
) -> Mapping[str, Any]:
    """Returns the message behind a turn: its results, then what else the last carrier holds."""
    blocks = [_answer(call, kept) for call in calls]
    if carriers:
        return with_blocks(given[carriers[-1]], [*blocks, *_rest(kept[carriers[-1]])])
    moved = [call.result[0] for call in calls if call.result is not None]
    whole = moved and not _rest(kept[moved[0]])
    return with_blocks(given[moved[0]] if whole else {"role": "user"}, blocks)


def _answer(call: Call, kept: Mapping[int, Blocks]) -> Mapping[str, Any]:
    """Returns the block that answers a call, under the id that the call is sent with."""
    if call.result is None:
        return {"type": "tool_result", "tool_use_id": call.sent_id, "content": call.stand_in}
    block = kept[call.result[0]][call.result[1]]
    return block if call.sent_id == call.given_id else {**block, "tool_use_id": call.sent_id}


def _with_ids(blocks: Blocks, calls: Sequence[Call]) -> Blocks:
    """Returns the blocks of a turn with the ids that its calls are sent with."""
    ids = iter([call.sent_id for call in calls])
    return [
        {**block, "id": call_id}
        if block["type"] == "tool_use" and (call_id := next(ids)) != block["id"]
        else block
        for block in blocks
    ]
