"""Repairs chat messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextpilot.messages.checks import each_message, malformed, refuse_foreign, string_at
from contextpilot.messages.openai_rules import openai_problems
from contextpilot.messages.repair_pairs import Call, Pairing
from contextpilot.messages.repair_reading import json_text, read
from contextpilot.messages.repair_record import Repair, Repaired

_ROLES = dict.fromkeys(("system", "developer", "user", "assistant", "tool"), "")
_SYSTEM = ("system", "developer")
_TALK = ("user", "assistant")
_SILENT = ("empty_content", "reasoning_only")


def _each(messages: Sequence[Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, message, _ in each_message(messages, _ROLES):
        refuse_foreign(index, message, "openai")
        yield index, message


def repair_openai(messages: Sequence[Mapping[str, Any]], pending_wait: int) -> Repaired:
    """Returns the repaired list.

    Raises:
        MessageFormatError: at what cannot be read.
    """
    repairs: list[Repair] = []
    given = read(messages, _each, repairs)
    kept = _speaking(given, repairs)
    system = [index for index, message in kept.items() if message["role"] in _SYSTEM]
    talk = [index for index, message in kept.items() if message["role"] in _TALK]
    _note_late_system(system, min(set(kept) - set(system), default=len(given)), repairs)
    pairing = _paired(kept, repairs)
    turns = [index for index, message in enumerate(given) if message["role"] == "assistant"]
    pairing.fill(turns, talk[-1] if talk else -1, pending_wait)
    out: list[Any] = [kept[index] for index in system]
    synthetic: set[int] = set()
    for index in talk:
        if kept[index]["role"] == "user":
            out.append(kept[index])
            continue
        out.append(_with_ids(kept[index], pairing.turns[index]))
        for call in pairing.answered(index):
            if call.result is None:
                synthetic.add(len(out))
                out.append({"role": "tool", "tool_call_id": call.sent_id, "content": call.stand_in})
            else:
                out.append(_answer(kept[call.result[0]], call.result[0], call, repairs))
    return Repaired(out, tuple(sorted(repairs, key=lambda r: r.index)), frozenset(synthetic))


def _speaking(
    given: Sequence[Mapping[str, Any]], repairs: list[Repair]
) -> dict[int, Mapping[str, Any]]:
    """Returns by index the messages that say something, with calls that can be read."""
    kept: dict[int, Mapping[str, Any]] = {}
    for index, message in enumerate(given):
        if message["role"] == "assistant":
            message = _with_calls(message, index, repairs)
        silent = [p for p in openai_problems([message]) if p.rule in _SILENT]
        if silent and message["role"] != "tool":
            repairs.append(Repair(index, silent[0].rule, f"left out: {silent[0].message}"))
        else:
            kept[index] = message
    return kept


def _with_calls(message: Mapping[str, Any], index: int, repairs: list[Repair]) -> Mapping[str, Any]:
    """Returns an assistant message whose calls have JSON arguments; without a list of no calls."""
    if message.get("tool_calls") == []:
        repairs.append(Repair(index, "empty_calls", "the key 'tool_calls' was left out"))
        return {key: value for key, value in message.items() if key != "tool_calls"}
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise malformed(index, "'tool_calls' must be a list", calls, "Leave it out or list calls.")
    whole = [_with_arguments(call, index, repairs) for call in calls]
    if all(new is old for new, old in zip(whole, calls, strict=True)):
        return message
    return {**message, "tool_calls": whole}


def _with_arguments(call: Any, index: int, repairs: list[Repair]) -> Any:
    """Returns a call whose arguments are JSON text; the same where they are."""
    if not isinstance(call, Mapping):
        raise malformed(index, "a tool call must be a dict", call, "Convert SDK objects first.")
    call_id = string_at(call, "id", index, "Results refer to a call by its id.")
    kind = "custom" if call.get("type") == "custom" else "function"
    body = call.get(kind)
    if not isinstance(body, Mapping):
        raise malformed(index, f"a tool call needs {kind!r}", call, "Name what was called.")
    arguments = body.get("arguments")
    if kind == "custom" or (text := json_text(arguments)) is arguments:
        return call
    repairs.append(Repair(index, "arguments", f"the arguments of {call_id!r} became JSON text"))
    return {**call, kind: {**body, "arguments": text}}


def _note_late_system(system: Sequence[int], first: int, repairs: list[Repair]) -> None:
    for index in system:
        if index > first:
            text = "moved to the front, behind the system messages there"
            repairs.append(Repair(index, "late_system", text))


def _paired(kept: Mapping[int, Mapping[str, Any]], repairs: list[Repair]) -> Pairing:
    """Returns which result answers which call."""
    pairing = Pairing(repairs)
    follows: dict[int, int] = {}
    before = -1
    for index, message in kept.items():
        if message["role"] == "tool":
            follows[index] = before
            pairing.add_result((index, 0), message.get("tool_call_id"))
        elif message["role"] not in _SYSTEM:
            before = index
            if message["role"] == "assistant":
                pairing.add_turn(index, [call["id"] for call in message.get("tool_calls") or ()])
    pairing.settle(follows)
    return pairing


def _with_ids(message: Mapping[str, Any], calls: Sequence[Call]) -> Mapping[str, Any]:
    """Returns a message whose calls have the ids that they are sent with."""
    if all(call.sent_id == call.given_id for call in calls):
        return message
    pairs = zip(message["tool_calls"], calls, strict=True)
    return {**message, "tool_calls": [{**body, "id": call.sent_id} for body, call in pairs]}


def _answer(
    message: Mapping[str, Any], index: int, call: Call, repairs: list[Repair]
) -> Mapping[str, Any]:
    """Returns a result as it is sent: under its call's id, and never without content."""
    if message.get("content") in (None, [], ()):
        repairs.append(Repair(index, "empty_content", "a missing result became empty text"))
        message = {**message, "content": ""}
    if call.sent_id != call.given_id:
        message = {**message, "tool_call_id": call.sent_id}
    return message
