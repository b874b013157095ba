"""What segments say about the messages that they come from, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from contextpilot.core.segment import Kind, Role, Source, Trust
from contextpilot.errors import MessageFormatError
from contextpilot.messages import anthropic, openai


def call(call_id: str, name: str = "read", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(blocks)}


def result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_openai_segments() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://a.test"}}
    segments = openai.parse(
        [
            {"role": "system", "content": "rule"},
            {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
            {
                "role": "assistant",
                "content": "on it",
                "reasoning_content": "hm",
                "tool_calls": [call("a", "read", '{"p": 1}'), call("b", "list")],
            },
            result("b"),
            result("a"),
            {"role": "assistant", "content": "done"},
        ]
    )
    kinds = [s.kind for s in segments]
    assert kinds == [
        Kind.TEXT, Kind.TEXT, Kind.IMAGE, Kind.TURN, Kind.RESULT, Kind.RESULT, Kind.TURN,
    ]  # fmt: skip
    assert [s.position for s in segments] == [
        (0, 0),
        (1, 0),
        (1, 1),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
    ]
    assert [s.exchange for s in segments] == ["", "", "", "x4", "x4", "x4", ""]
    assert [s.name for s in segments] == ["", "", "", "", "list", "read", ""]
    assert [s.pinned for s in segments] == [True, True, True, False, False, False, False]
    system, text, picture, turn, first, _, _ = segments
    assert (system.role, system.source, system.trust) == (Role.SYSTEM, Source.SYSTEM, Trust.SYSTEM)
    assert (text.role, text.source, text.trust) == (Role.USER, Source.USER, Trust.USER)
    assert picture.image_count == 1
    assert (turn.source, turn.trust, turn.has_reasoning) == (Source.ASSISTANT, Trust.AGENT, True)
    assert turn.text == 'hm\non it\nread {"p": 1}\nlist {}'
    assert (first.role, first.source, first.trust) == (Role.TOOL, Source.TOOL, Trust.UNTRUSTED)
    assert not any(s.pending for s in segments)


def test_anthropic_segments() -> None:
    document = {"type": "document", "title": "Lease", "source": {"type": "text", "data": "clause"}}
    segments = anthropic.parse(
        [
            {"role": "user", "content": [document, {"type": "text", "text": "Sum up."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "grep", "input": {"q": "é"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [
                            {"type": "text", "text": "hit"},
                            {"type": "image", "source": {"type": "url", "url": "u"}},
                        ],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
        ]
    )
    assert [s.kind for s in segments] == [
        Kind.DOCUMENT, Kind.TEXT, Kind.TURN, Kind.RESULT, Kind.TEXT,
    ]  # fmt: skip
    lease, goal, turn, hit, latest = segments
    assert (lease.name, lease.text, lease.trust) == ("Lease", "clause", Trust.UNTRUSTED)
    assert lease.source == Source.RETRIEVED
    assert turn.text == 'hm\ngrep {"q": "é"}'
    assert (hit.text, hit.image_count, hit.name, hit.exchange) == ("hit", 1, "grep", "x3")
    assert [s.position for s in segments] == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]
    assert [s.pinned for s in segments] == [False, True, False, False, True]
    assert goal.role == latest.role == Role.USER


def test_reused_ids_are_matched_to_the_nearest_open_call() -> None:
    user = {"role": "user", "content": "go"}
    segments = openai.parse(
        [user, calls(call("c", "first")), result("c"), calls(call("c", "second")), result("c")]
    )
    assert [(s.exchange, s.name) for s in segments if s.kind == Kind.RESULT] == [
        ("x2", "first"),
        ("x4", "second"),
    ]
    segments = openai.parse(
        [user, calls(call("c", "lost")), user, calls(call("c", "second")), result("c")]
    )
    assert segments[-1].exchange == "x4"
    assert [s.pending for s in segments] == [False, True, False, False, False]


def test_calls_of_one_turn_that_share_an_id_are_answered_in_order() -> None:
    segments = openai.parse(
        [calls(call("", "one"), call("", "two")), result(""), result(""), result("")]
    )
    assert [(s.name, s.exchange) for s in segments] == [
        ("", "x1"), ("one", "x1"), ("two", "x1"), ("", ""),
    ]  # fmt: skip


def test_only_answered_turns_are_settled() -> None:
    segments = openai.parse([calls(call("a"), call("b")), result("b")])
    assert segments[0].pending
    assert not openai.parse([calls(call("a")), result("a")])[0].pending


def test_the_latest_request_is_pinned_behind_a_reminder() -> None:
    def tool_use(call_id: str) -> dict[str, Any]:
        block = {"type": "tool_use", "id": call_id, "name": "ls", "input": {}}
        return {"role": "assistant", "content": [block]}

    def answer(call_id: str, text: str) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": "x"}
        return {"role": "user", "content": [block, {"type": "text", "text": text}]}

    segments = anthropic.parse(
        [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "the request"},
            tool_use("a"),
            answer("a", "old reminder"),
            tool_use("b"),
            answer("b", "new reminder"),
        ]
    )
    assert [s.text for s in segments if s.pinned] == ["first", "the request", "new reminder"]


def test_custom_calls_read_as_json() -> None:
    block = {"id": "p", "type": "custom", "custom": {"name": "patch", "input": 'a "b"'}}
    assert openai.parse([calls(block)])[0].text == 'patch "a \\"b\\""'


USER = {"role": "user", "content": "hi"}
OPENAI_FAULTS: list[tuple[Any, str]] = [
    ("text", "must be a dict"),
    ({"content": "x"}, "unknown role"),
    ({"role": "asistant", "content": "x"}, "Did you mean 'assistant'"),
    ({"role": "function", "name": "f", "content": "x"}, "tool_calls"),
    ({"role": "user", "content": 3}, "Received 3"),
    ({"role": "user", "content": ["x"]}, "'type'"),
    ({"role": "user", "content": [{"type": "text"}]}, "'text'"),
    ({"role": "assistant", "tool_calls": {"id": "a"}}, "must be a list"),
    ({"role": "assistant", "tool_calls": ["a"]}, "must be a dict"),
    ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "needs 'function'"),
    (calls({"id": "a", "function": {"name": "f", "arguments": {}}}), "json.dumps"),
    (calls({"function": {"name": "f", "arguments": "{}"}}), "by its id"),
    ({"role": "tool", "content": "x"}, "'tool_call_id'"),
]


@pytest.mark.parametrize(("fault", "words"), OPENAI_FAULTS)
def test_openai_faults_are_named_at_their_index(fault: Any, words: str) -> None:
    with pytest.raises(MessageFormatError) as error:
        openai.parse([USER, fault])
    text = str(error.value)
    assert text.startswith("messages[1]: ")
    assert "Received" in text
    assert words in text


ANTHROPIC_FAULTS: list[tuple[Any, str]] = [
    ({"role": "system", "content": "x"}, "'system' argument"),
    ({"role": "tool", "content": "x"}, "tool_result"),
    ({"role": "user", "content": {"type": "text"}}, "list of blocks"),
    ({"role": "user", "content": [{"type": "tool_result"}]}, "'tool_use_id'"),
    ({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}, "'input'"),
    ({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}, "'name'"),
    ({"role": "assistant", "content": [{"text": "x"}]}, "'type'"),
]


@pytest.mark.parametrize(("fault", "words"), ANTHROPIC_FAULTS)
def test_anthropic_faults_are_named_at_their_index(fault: Any, words: str) -> None:
    with pytest.raises(MessageFormatError) as error:
        anthropic.parse([USER, fault])
    text = str(error.value)
    assert text.startswith("messages[1]: ")
    assert "Received" in text
    assert words in text


@pytest.mark.parametrize("messages", ["hello", USER, None, iter([USER])])
def test_a_list_is_needed(messages: Any) -> None:
    with pytest.raises(MessageFormatError, match="must be a list"):
        openai.parse(messages)
