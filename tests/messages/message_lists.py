"""Hypothesis strategies for message lists as hosts hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from contextpilot.core.segment import Form, Segment
from contextpilot.messages.rendered import RenderedSegment

Message = dict[str, Any]
Messages = list[Message]

WORDS = st.sampled_from(
    [
        "ok",
        "the rain in Gent",
        "naïve 文字",
        'a "quoted" \\ path',
        "line\nline",
        "x" * 200,
        "</context-data>",
    ]
)
CALL_IDS = ("call_1", "call_2", "call_3", "call_4")
LEAVES = st.one_of(WORDS, st.integers(), st.booleans(), st.none())
INPUTS = st.dictionaries(
    st.sampled_from(["path", "content", "id", "文"]),
    st.one_of(LEAVES, st.lists(LEAVES, max_size=2), st.dictionaries(st.just("k"), LEAVES)),
    max_size=3,
)


def full(segments: Sequence[Segment]) -> list[RenderedSegment]:
    return [RenderedSegment(segment, Form.FULL) for segment in segments]


def wire(messages: Sequence[Any]) -> str:
    return json.dumps(list(messages), ensure_ascii=False)


def maybe(draw: st.DrawFn, message: Message, key: str, values: st.SearchStrategy[Any]) -> None:
    """Sometimes adds a key that the library has to carry along."""
    if draw(st.booleans()):
        message[key] = draw(values)


@st.composite
def openai_user(draw: st.DrawFn, strange: bool) -> Message:
    parts = st.one_of(
        WORDS.map(lambda text: {"type": "text", "text": text}),
        st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        st.just({"type": "file", "file": {"filename": "a.pdf", "file_id": "file_1"}}),
        st.just({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    )
    contents: st.SearchStrategy[Any] = st.one_of(WORDS, st.lists(parts, min_size=1, max_size=3))
    if strange:
        contents = st.one_of(contents, st.sampled_from(["", None, [], " "]))
    message: Message = {"role": "user", "content": draw(contents)}
    maybe(draw, message, "name", st.just("ada"))
    if strange and message["content"] is None and draw(st.booleans()):
        del message["content"]
    return message


@st.composite
def openai_turn(draw: st.DrawFn, ids: Sequence[str], strange: bool) -> Message:
    text = st.one_of(
        WORDS,
        WORDS.map(lambda t: [{"type": "text", "text": t}, {"type": "refusal", "refusal": "no"}]),
    )
    contents: st.SearchStrategy[Any] = text
    if ids or strange:
        contents = st.one_of(text, st.sampled_from([None, "", []]))
    message: Message = {"role": "assistant"}
    maybe(draw, message, "reasoning_content", st.sampled_from(["because", "", None]))
    if not ids or draw(st.booleans()):
        message["content"] = draw(contents)
    maybe(draw, message, "refusal", st.none())
    maybe(draw, message, "reasoning_details", st.just([{"type": "reasoning.text", "text": "hm"}]))
    if ids:
        message["tool_calls"] = [draw(openai_call(call_id)) for call_id in ids]
    elif strange:
        maybe(draw, message, "tool_calls", st.sampled_from([None, []]))
    maybe(draw, message, "annotations", st.just([]))
    return message


@st.composite
def openai_call(draw: st.DrawFn, call_id: str) -> Message:
    if draw(st.integers(0, 4)) == 0:
        return {"type": "custom", "id": call_id, "custom": {"name": "patch", "input": draw(WORDS)}}
    arguments = json.dumps(draw(INPUTS), ensure_ascii=draw(st.booleans()))
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}


@st.composite
def openai_result(draw: st.DrawFn, call_id: str) -> Message:
    parts = st.lists(WORDS.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=2)
    content = draw(st.one_of(WORDS, st.just(""), parts))
    message: Message = {"role": "tool", "tool_call_id": call_id}
    maybe(draw, message, "name", st.just("read"))
    return {**message, "content": content}


@st.composite
def openai_lists(draw: st.DrawFn, strange: bool = False) -> Messages:
    """Chat lists; `strange` ones also hold what providers refuse but hosts have."""
    messages: Messages = []
    if draw(st.booleans()):
        role = draw(st.sampled_from(["system", "developer"]))
        messages.append(
            {
                "role": role,
                "content": draw(st.one_of(WORDS, st.just([{"type": "text", "text": "rule"}]))),
            }
        )
    messages.append({"role": "user", "content": draw(WORDS)})
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["user", "turn", "exchange", "exchange", "exchange"]))
        if kind == "user":
            messages.append(draw(openai_user(strange)))
            continue
        ids = (
            draw(st.permutations(CALL_IDS))[: draw(st.integers(1, 3))] if kind == "exchange" else []
        )
        messages.append(draw(openai_turn(ids, strange)))
        messages += [draw(openai_result(call_id)) for call_id in draw(st.permutations(ids))]
    if draw(st.booleans()):
        messages.append(draw(openai_turn(["call_1", "call_9"], strange)))
        if draw(st.booleans()):
            messages.append(draw(openai_result("call_9")))
    return messages


SOURCES = {
    "image": {"type": "base64", "media_type": "image/png", "data": "AA"},
    "document": {"type": "text", "media_type": "text/plain", "data": "doc"},
}
HIT = [{"type": "text", "text": "hit"}]
ANTHROPIC_USER_BLOCKS = st.one_of(
    WORDS.map(lambda text: {"type": "text", "text": text}),
    WORDS.map(lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}),
    st.just({"type": "image", "source": SOURCES["image"]}),
    st.just({"type": "document", "title": "D", "source": SOURCES["document"]}),
    st.just({"type": "search_result", "source": "https://a.test", "title": "T", "content": HIT}),
    st.just({"type": "container_upload", "file_id": "f1"}),
)
THINKING = st.sampled_from(
    [
        {"type": "thinking", "thinking": "let me see", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "AAAA"},
    ]
)
FOUND = {"type": "web_search_result", "url": "u", "encrypted_content": "AA"}
SERVER_PAIR: Messages = [
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [FOUND]},
]


@st.composite
def anthropic_result(draw: st.DrawFn, call_id: str, strange: bool) -> Message:
    inner = st.one_of(
        WORDS.map(lambda text: {"type": "text", "text": text}),
        st.just({"type": "image", "source": {"type": "url", "url": "https://a.test/i.png"}}),
    )
    block: Message = {"type": "tool_result"} if draw(st.booleans()) else {}
    block["tool_use_id"] = call_id
    block["type"] = "tool_result"
    if draw(st.booleans()):
        nothing = st.sampled_from(["", None] if strange else [""])
        block["content"] = draw(st.one_of(WORDS, nothing, st.lists(inner, max_size=2)))
    maybe(draw, block, "is_error", st.booleans())
    maybe(draw, block, "cache_control", st.just({"type": "ephemeral"}))
    return block


@st.composite
def anthropic_turn(draw: st.DrawFn, ids: Sequence[str]) -> Message:
    blocks: list[Message] = draw(st.lists(THINKING, max_size=2))
    text = {"type": "text", "text": draw(WORDS)}
    if not ids and not blocks and draw(st.booleans()):
        return {"role": "assistant", "content": text["text"]}
    if not ids or draw(st.booleans()):
        blocks.append(text)
    if draw(st.booleans()):
        blocks += SERVER_PAIR
    for call_id in ids:
        call: Message = {"type": "tool_use", "id": call_id, "name": "read", "input": draw(INPUTS)}
        maybe(draw, call, "caller", st.just({"type": "direct"}))
        blocks.append(call)
    return {"role": "assistant", "content": blocks}


@st.composite
def anthropic_lists(draw: st.DrawFn, strange: bool = False) -> Messages:
    """Lists of user and assistant messages; `strange` ones hold what providers refuse, too."""
    first = draw(st.one_of(WORDS, WORDS.map(lambda text: [{"type": "text", "text": text}])))
    messages: Messages = [{"role": "user", "content": first}]
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["user", "turn", "exchange", "exchange", "exchange"]))
        if kind == "user":
            blocks: Any = draw(st.lists(ANTHROPIC_USER_BLOCKS, min_size=1, max_size=3))
            if strange:
                blocks = draw(
                    st.sampled_from([blocks, "", None, [], [{"type": "text", "text": ""}]])
                )
            messages.append({"role": "user", "content": blocks})
            continue
        ids = (
            draw(st.permutations(CALL_IDS))[: draw(st.integers(1, 3))] if kind == "exchange" else []
        )
        messages.append(draw(anthropic_turn(ids)))
        if ids:
            results = [
                draw(anthropic_result(call_id, strange)) for call_id in draw(st.permutations(ids))
            ]
            rest = draw(st.lists(ANTHROPIC_USER_BLOCKS, max_size=2))
            content = draw(st.permutations([*results, *rest])) if strange else [*results, *rest]
            messages.append({"role": "user", "content": content})
    if draw(st.booleans()):
        messages.append(draw(anthropic_turn(["call_1", "call_9"])))
    return messages
