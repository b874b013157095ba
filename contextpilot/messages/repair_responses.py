"""Repairs Responses items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextpilot.messages.repair_pairs import Call, Pairing
from contextpilot.messages.repair_reading import read
from contextpilot.messages.repair_record import Repair, Repaired
from contextpilot.messages.repair_responses_items import (
    STAND_INS,
    Items,
    cleaned,
    with_key,
    without,
)
from contextpilot.messages.responses_items import (
    ANSWERED,
    ANSWERS,
    MAY_WAIT,
    answer_key,
    blocks,
    call_key,
    each_item,
    is_turn_item,
    item_type,
)


def repair_responses(items: Sequence[Mapping[str, Any]], pending_wait: int) -> Repaired:
    """Returns the repaired list.

    Calls for which no result can be made, such as those for a screenshot, are left out where they
    would go without, with the reasoning that led to them.

    Raises:
        MessageFormatError: at what cannot be read.
    """
    repairs: list[Repair] = []
    kept = cleaned(read(items, each_item, repairs), repairs)
    block_of = blocks(kept.items())
    pairing, stay = _paired(kept, block_of, repairs)
    turns = list(pairing.turns)
    pending = block_of[max(kept)] if kept else -1
    pairing.fill(turns, pending, pending_wait, without=(*MAY_WAIT, "computer_call"))
    calls = _calls_by_item(kept, block_of, pairing)
    unanswered = {
        index: call
        for index, call in calls.items()
        if call.kind == "computer_call" and call.result is None and call.turn != pending
    }
    for index, call in unanswered.items():
        text = f"left out: {call.given_id!r} has no result, and none can be made"
        repairs.append(Repair(index, "dangling_call", text))
    kept = without(kept, set(unanswered), repairs)
    return _repaired(_written(kept, block_of, pairing, calls, stay), repairs)


def _paired(
    kept: Items, block_of: Mapping[int, int], repairs: list[Repair]
) -> tuple[Pairing, set[int]]:
    """Returns which answer belongs to which call, and the answers of calls only referred to."""
    pairing, stay, follows = Pairing(repairs), set[int](), dict[int, int]()
    refers = False
    for index, item in kept.items():
        kind = item_type(item)
        refers = refers or kind == "item_reference"
        if index == block_of[index]:
            own = [kept[i] for i, b in block_of.items() if b == index and is_turn_item(kept[i])]
            calls = [call for call in own if _joins(call)]
            pairing.add_turn(index, [call_key(c) for c in calls], [item_type(c) for c in calls])
        if kind not in ANSWERS:
            continue
        key, kinds = answer_key(item), ANSWERS[kind]
        if key is None or (refers and not pairing.knows(key, kinds)):
            stay.add(index)
            continue
        pairing.add_result((index, 0), key, kinds)
        follows[index] = block_of[index]
    for (index, _), call in pairing.calls.items():
        if call.kind in MAY_WAIT:
            follows[index] = call.turn
    pairing.settle(follows)
    return pairing, stay


def _joins(item: Mapping[str, Any]) -> bool:
    """True for a call that something else in the list answers."""
    return item_type(item) in ANSWERED and call_key(item) is not None


def _calls_by_item(kept: Items, block_of: Mapping[int, int], pairing: Pairing) -> dict[int, Call]:
    """Returns the calls by the index of their item."""
    calls = {turn: iter(own) for turn, own in pairing.turns.items()}
    return {i: next(calls[block_of[i]]) for i, item in kept.items() if _joins(item)}


def _written(
    kept: Items,
    block_of: Mapping[int, int],
    pairing: Pairing,
    calls: Mapping[int, Call],
    stay: set[int],
) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns (index in the given list, item) in order; -1 for an item that is made."""
    out: list[tuple[int, Mapping[str, Any]]] = []
    turn = -1
    for index, item in kept.items():
        if item_type(item) in ANSWERS:
            call = pairing.calls.get((index, 0))
            if index in stay or (call is not None and call.is_home):
                out.append((index, item if call is None else with_key(item, call.sent_id)))
            continue
        if turn >= 0 and block_of[index] != turn:
            out += _moved(kept, pairing.turns[turn])
        turn = block_of[index]
        out.append((index, with_key(item, calls[index].sent_id) if index in calls else item))
    return [*out, *_moved(kept, pairing.turns[turn])] if turn >= 0 else out


def _moved(kept: Items, calls: Sequence[Call]) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns what comes behind the results of a turn that are at home."""
    out: list[tuple[int, Mapping[str, Any]]] = []
    for call in (call for call in calls if not call.is_home):
        if call.result is not None:
            at = call.result[0]
            out.append((at, with_key(kept[at], call.sent_id)))
        elif call.stand_in:
            out.append((-1, STAND_INS[call.kind](call.sent_id, call.stand_in)))
    return out


def _repaired(written: Sequence[tuple[int, Mapping[str, Any]]], repairs: list[Repair]) -> Repaired:
    """Returns the list without reasoning that answers now part from what it led to."""
    out: list[Any] = []
    synthetic: list[int] = []
    follows = False
    for index, item in reversed(written):
        if item_type(item) == "reasoning" and not follows:
            repairs.append(Repair(index, "reasoning_only", "left out: reasoning alone"))
            continue
        follows = is_turn_item(item)
        if index < 0:
            synthetic.append(len(out))
        out.append(item)
    ordered = tuple(sorted(repairs, key=lambda done: done.index))
    last = len(out) - 1
    return Repaired(out[::-1], ordered, frozenset(last - at for at in synthetic))
