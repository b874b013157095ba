"""Hypothesis strategies for lists of Responses items as hosts hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from messages.message_lists import CALL_IDS, INPUTS, WORDS, Message, Messages, maybe

SURROGATES = st.sampled_from(["half \ud83d of a pair", "\udc00\ud800", "\ud83d\ude00"])
NUMBERED = ""
"""Stands for an id of the provider's; ids are given out in list order at the end."""

IMAGE = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"}
FILE = {"type": "input_file", "filename": "a.pdf", "file_id": "file_1"}
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
SHELL = {"type": "exec", "command": ["ls"], "env": {}}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
SERVER_ITEMS: Messages = [
    {
        "type": "web_search_call",
        "id": NUMBERED,
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {
        "id": NUMBERED,
        "type": "file_search_call",
        "status": "completed",
        "queries": ["q"],
        "results": None,
    },
    {
        "type": "code_interpreter_call",
        "id": NUMBERED,
        "status": "completed",
        "code": "1",
        "container_id": "c",
        "outputs": [{"type": "logs", "logs": "1"}],
    },
    {
        "type": "mcp_call",
        "id": NUMBERED,
        "name": "f",
        "arguments": "not JSON",
        "server_label": "s",
        "output": "x",
    },
    {"type": "image_generation_call", "id": NUMBERED, "status": "completed", "result": "AAAA"},
    {"type": "item_reference", "id": NUMBERED},
    {"id": NUMBERED},
]
PAIRS: list[tuple[Message, Message]] = [
    (
        {
            "type": "computer_call",
            "id": NUMBERED,
            "call_id": "pair",
            "status": "completed",
            "action": CLICK,
            "pending_safety_checks": [],
        },
        {"type": "computer_call_output", "call_id": "pair", "output": SHOT},
    ),
    (
        {
            "type": "local_shell_call",
            "id": NUMBERED,
            "call_id": "pair",
            "status": "completed",
            "action": SHELL,
        },
        {"type": "local_shell_call_output", "id": "pair", "output": "{}"},
    ),
    (
        {
            "type": "local_shell_call",
            "id": NUMBERED,
            "call_id": "pair",
            "status": "completed",
            "action": SHELL,
        },
        {"type": "function_call_output", "call_id": "pair", "output": "a.md"},
    ),
    (
        {
            "type": "apply_patch_call",
            "call_id": "pair",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {"type": "apply_patch_call_output", "call_id": "pair", "status": "completed"},
    ),
]


def words(strange: bool) -> st.SearchStrategy[str]:
    """Texts; strange ones hold lone surrogates, which no encoder takes but hosts have."""
    return st.one_of(WORDS, SURROGATES) if strange else WORDS


def text_parts(strange: bool) -> st.SearchStrategy[Message]:
    return words(strange).map(lambda text: {"type": "input_text", "text": text})


@st.composite
def user_message(draw: st.DrawFn, strange: bool) -> Message:
    part = st.one_of(text_parts(strange), st.just(IMAGE), st.just(FILE))
    contents: st.SearchStrategy[Any] = st.one_of(
        words(strange), st.lists(part, min_size=1, max_size=3)
    )
    if strange:
        contents = st.one_of(contents, st.sampled_from(["", None, [], " "]))
    message: Message = {"type": "message"} if draw(st.booleans()) else {}
    message |= {"role": "user", "content": draw(contents)}
    if strange:
        maybe(draw, message, "x-host", st.just({"b": 1, "a": [None]}))
        if message["content"] is None and draw(st.booleans()):
            del message["content"]
    return message


@st.composite
def assistant_message(draw: st.DrawFn, strange: bool) -> Message:
    if draw(st.booleans()):
        easy: Message = {"role": "assistant", "content": draw(words(strange))}
        maybe(draw, easy, "type", st.just("message"))
        maybe(draw, easy, "phase", st.just("commentary"))
        return easy
    text: Message = {"type": "output_text", "text": draw(words(strange)), "annotations": []}
    parts: list[Message] = draw(
        st.sampled_from([[text], [text, text], [text, {"type": "refusal", "refusal": "no"}]])
    )
    if strange:
        parts = draw(st.sampled_from([parts, [], [{"type": "output_text", "text": ""}]]))
    message: Message = {"id": NUMBERED, "type": "message", "status": "completed"}
    message |= {"role": "assistant", "content": parts}
    maybe(draw, message, "phase", st.sampled_from(["commentary", "final_answer"]))
    return message


@st.composite
def reasoning(draw: st.DrawFn, strange: bool) -> Message:
    summary = draw(st.lists(words(strange), max_size=2))
    item: Message = {"type": "reasoning", "id": NUMBERED}
    item["summary"] = [{"type": "summary_text", "text": text} for text in summary]
    maybe(draw, item, "encrypted_content", st.sampled_from(["gAAAA", None]))
    maybe(draw, item, "content", st.just([{"type": "reasoning_text", "text": "hm"}]))
    return item


@st.composite
def call(draw: st.DrawFn, call_id: str, strange: bool) -> Message:
    if draw(st.integers(0, 3)) == 0:
        item: Message = {"type": "custom_tool_call", "call_id": call_id, "name": "patch"}
        item["input"] = draw(words(strange))
    else:
        inputs = draw(INPUTS) | ({"half": draw(SURROGATES)} if strange else {})
        arguments = json.dumps(inputs, ensure_ascii=draw(st.booleans()))
        item = {"type": "function_call", "name": "read", "arguments": arguments}
        item["call_id"] = call_id
        maybe(draw, item, "status", st.just("completed"))
    maybe(draw, item, "id", st.just(NUMBERED))
    return item


@st.composite
def output(draw: st.DrawFn, called: Message, strange: bool) -> Message:
    part = st.one_of(text_parts(strange), st.just(IMAGE), st.just(FILE))
    contents: st.SearchStrategy[Any] = st.one_of(
        words(strange), st.just(""), st.lists(part, min_size=1, max_size=3)
    )
    if strange:
        contents = st.one_of(contents, st.sampled_from([None, []]))
    item: Message = {"call_id": called["call_id"], "type": f"{called['type']}_output"}
    maybe(draw, item, "id", st.just(NUMBERED))
    return {**item, "output": draw(contents)}


@st.composite
def exchange(
    draw: st.DrawFn, ids: Sequence[str], strange: bool, pair: str = "", pending: bool = False
) -> Messages:
    """A turn, and the outputs of its calls; of a pending one some are missing.

    `pair` is the id for a call that the host runs for a tool of the provider's.
    """
    said: Messages = [draw(call(call_id, strange)) for call_id in ids]
    outputs: Messages = [draw(output(item, strange)) for item in said]
    for _ in range(draw(st.integers(0 if said else 1, 2))):
        server = st.sampled_from(SERVER_ITEMS)
        said.insert(0, draw(st.one_of(assistant_message(strange), server)))
    if pair and draw(st.integers(0, 3)) == 0:
        paired, answer = draw(st.sampled_from(PAIRS))
        said.append({**paired, "call_id": pair})
        outputs.append({**answer, "id" if "id" in answer else "call_id": pair})
    turn: Messages = []
    for item in said:
        turn += draw(st.lists(reasoning(strange), max_size=2))
        turn.append(item)
    outputs = draw(st.permutations(outputs))
    return turn + (outputs[: draw(st.integers(0, len(outputs) - 1))] if pending else outputs)


@st.composite
def responses_lists(draw: st.DrawFn, strange: bool = False) -> Messages:
    """Item lists; `strange` ones also hold what providers refuse but hosts have."""
    items: Messages = []
    if draw(st.booleans()):
        role = draw(st.sampled_from(["system", "developer"]))
        rules = st.one_of(WORDS, st.just([{"type": "input_text", "text": "rule"}]))
        items.append({"role": role, "content": draw(rules)})
    items.append({"role": "user", "content": draw(WORDS)})
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["user", "turn", "exchange", "exchange", "compaction"]))
        if kind == "user":
            items.append(draw(user_message(strange)))
        elif kind == "compaction":
            items.append({"type": "compaction", "id": NUMBERED, "encrypted_content": "gAAAA"})
        else:
            count = draw(st.integers(1, 3)) if kind == "exchange" else 0
            ids = draw(st.permutations(CALL_IDS))[:count]
            items += draw(exchange(ids, strange, f"pair_{len(items)}"))
    if draw(st.booleans()):
        items.append({"role": "developer", "content": "Go on."})
        items += draw(exchange(["call_1", "call_9"], strange, pending=True))
    return [numbered(item, n) for n, item in enumerate(items)]


def numbered(item: Message, number: int) -> Message:
    return {**item, "id": f"id_{number}"} if item.get("id") == NUMBERED else dict(item)
