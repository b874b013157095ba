"""What hosts, archives and callers do at the edges: every request stays one that can be sent."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from manager.histories import FORMATS, Messages, manager

from contextpilot.archives import MemoryArchive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Drop, Outcome
from contextpilot.core.segment import Segment, Trust
from contextpilot.errors import ConfigurationError, MessageFormatError
from contextpilot.manager import RELOAD_TOOL, ContextManager, Request, Status
from contextpilot.messages.frame import framed
from contextpilot.messages.validate import problems
from contextpilot.observations.observation import Observation
from contextpilot.policies.catalog import policy_spec

PIXEL = "data:image/png;base64,iVBORw0KGgo="
SMALL = TokenBudget(500, 0, 0.5)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def exchange(number: int, result: str) -> Messages:
    function = {"name": "f", "arguments": "{}"}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


IMAGE = {
    "openai": {"type": "image_url", "image_url": {"url": PIXEL}},
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
    },
    "responses": {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
}


# ---- nothing, or next to nothing -----------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("messages", [[], [user("")], [said("")]])
def test_nothing_to_send_is_said(format: str, messages: Messages) -> None:
    request = manager(format).prepare(messages)
    assert problems(format, request.messages) == ()
    assert len(request.messages) == 1
    assert request.report.repairs[0].rule == "empty_list"


def test_a_history_cut_down_to_a_result_is_answered() -> None:
    session, whole = manager("openai").session(), [user("go"), *exchange(0, "r")]
    session.prepare(whole)
    assert problems("openai", session.prepare(whole[-1:]).messages) == ()
    assert session.prepare(whole).messages == whole


def test_a_session_can_be_looked_at_before_anything_was_said() -> None:
    assert not manager("openai").session().observe().arrays["segment_mask"].any()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("policy", ["truncation", "best_rule"])
def test_a_request_that_is_an_image_alone_stays(format: str, policy: str) -> None:
    chosen = policy_spec(policy)() if policy != "best_rule" else None
    asked = user([IMAGE[format]])
    alone = manager(format, chosen, SMALL).prepare([asked])
    assert alone.messages == [asked]
    assert alone.status == Status.BUDGET_UNREACHABLE
    behind = manager(format, chosen, SMALL).prepare([user("Hi"), said("Send it."), asked])
    assert IMAGE[format] in behind.messages[-1]["content"]


# ---- too long ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reserved", [0, 500, 4_096, 16_000])
def test_each_retry_is_shorter_until_nothing_is_left_to_shorten(reserved: int) -> None:
    session = manager("openai", None, TokenBudget(128_000, reserved, 0.9)).session()
    messages = [user("go")]
    for number in range(20):
        messages += exchange(number, "word " * 300)
    messages += [said("k"), user("n")]
    tokens = [session.prepare(messages).report.after_tokens]
    for _ in range(4):
        request = session.retry_after(RuntimeError("Input is too long for requested model."))
        tokens.append(request.report.after_tokens)
    assert tokens == sorted(set(tokens), reverse=True)


def test_a_session_that_is_off_raises_the_error_again() -> None:
    session = manager("openai").session()
    session.prepare([user("first")])
    session.off = True
    session.prepare([user("second")])
    with pytest.raises(RuntimeError, match="too long"):
        session.retry_after(RuntimeError("prompt is too long"))
    session.off = False
    assert session.prepare([user("second")]).report.input_limit > 100_000


def test_the_note_on_trust_counts() -> None:
    made = manager("openai", None, TokenBudget(40, 0, 0.9), trust_note=True)
    request = made.prepare([user("Hi")])
    assert request.status == Status.BUDGET_UNREACHABLE
    assert request.report.account.system > 40


@pytest.mark.parametrize("history", [[], [user("go")]])
def test_what_cannot_be_made_smaller_is_named(history: Messages) -> None:
    turn, _ = exchange(0, "")
    turn["tool_calls"][0]["function"]["arguments"] = json.dumps({"c": "w " * 400})
    request = manager("openai", None, TokenBudget(100, 0, 0.5)).prepare([*history, turn])
    assert request.status == Status.BUDGET_UNREACHABLE
    assert request.report.pinned[0][1] > 100


# ---- lists that change ---------------------------------------------------------------------------


def call_item(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def test_a_turn_that_grows_is_another_turn() -> None:
    turn = said("ok fine " * 60)
    session = manager("responses", None, TokenBudget(100, 0, 0.9)).session()
    assert session.prepare([user("go"), turn]).status == Status.EDITED
    output = {"type": "function_call_output", "call_id": "c0", "output": "NEW"}
    grown = session.prepare([user("go"), turn, call_item(0), output])
    assert grown.report.after_tokens <= 100
    assert len(json.dumps(grown.messages)) < 400
    assert grown.report.edits  # nothing goes without a record
    session.undo_all()
    sent = manager("responses").session().prepare([user("go"), turn, call_item(0), output])
    assert sent.messages == [user("go"), turn, call_item(0), output]


def test_what_the_host_removed_does_not_come_back() -> None:
    session = manager("openai").session()
    first = [user("go"), said("the key is SECRET")]
    session.prepare(first)
    session.edit(Drop((session.index("s2"),)))
    session.prepare(first)
    redacted = [user("go"), said("the key is [redacted]"), user("next")]
    session.prepare(redacted)
    session.undo_all()
    assert session.prepare(redacted).messages == redacted


def test_a_list_that_was_edited_by_the_host_is_decided_about_once() -> None:
    for limit in (20, 40, 60, 70):
        budget = TokenBudget(limit, 0, 0.5)
        session = manager("openai", policy_spec("truncation")(), budget).session()
        session.prepare([user("go"), *exchange(2, "two " * 80)])
        turn, result = exchange(2, "two " * 80)
        history = [user("go"), {**turn, "content": "final"}, result]
        sent = [session.prepare(copy.deepcopy(history)) for _ in range(3)]
        assert [request.report.edits for request in sent[1:]] == [(), ()]
        assert sent[1].messages == sent[0].messages == sent[2].messages


def test_a_branch_is_sent_the_same_each_time() -> None:
    policy = policy_spec("rolling_summary")()
    session = manager("responses", policy, TokenBudget(200, 0, 0.9)).session()
    shown = user([{"type": "input_text", "text": "go"}, IMAGE["responses"]])
    answer = {
        "type": "message", "role": "assistant", "id": "msg_4", "status": "completed",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}],
    }  # fmt: skip
    action = {"type": "search", "query": "q"}
    searched = {"type": "web_search_call", "id": "w", "status": "completed", "action": action}
    session.prepare([shown, answer, searched])
    sent = [session.prepare(copy.deepcopy([shown, answer, user("branch")])) for _ in range(2)]
    assert sent[0].messages == sent[1].messages
    assert sent[0].report.asleep == sent[1].report.asleep


def test_tools_may_be_fed_back() -> None:
    session = ContextManager("openai", reload_tool=True).session()
    tools = session.prepare([user("hi")], tools=[]).tools
    again = session.prepare([user("hi")], tools=tools).tools
    assert again == tools
    assert [tool["function"]["name"] for tool in again or ()] == [RELOAD_TOOL]


# ---- parts that fail -----------------------------------------------------------------------------


class Full(MemoryArchive):
    def put(self, session: str, segment: Segment) -> None:
        raise OSError("no space left")


def test_nothing_is_hidden_that_is_not_archived() -> None:
    session = manager("openai", None, SMALL, archive=Full()).session()
    messages = [user("go"), *exchange(0, "word " * 900), said("k"), user("n")]
    request = session.prepare(messages)
    assert request.messages == messages
    assert request.status == Status.BUDGET_UNREACHABLE
    assert {edit.outcome for edit in request.report.edits} == {Outcome.REJECTED_NOT_ARCHIVED}


def test_a_function_is_a_policy() -> None:
    seen = []

    def keep(observation: Observation) -> int:
        seen.append(observation)
        return 0

    made = ContextManager("openai", policy=keep, budget=TokenBudget(4_000, 0, 0.01))
    assert made.prepare([user("word " * 100)]).status == Status.OK
    assert seen


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"policy": "truncation"}, r"policy_spec\(name\)"),
        ({"policy": "truncatoin"}, "Did you mean 'truncation'"),
        ({"policy": policy_spec("truncation")}, "Call it"),
        ({"fallback": 3}, "`fallback` must be a policy"),
        ({"tokenizer": "o200k_base"}, "TiktokenTokenizer"),
        ({"summarizer": lambda request: "x"}, "a class around it"),
        ({"archive": "/tmp/x.db"}, "SqliteArchive"),
        ({"limits": 5}, "FallbackLimits"),
        ({"budget": 4_000}, "TokenBudget"),
        ({"deny_tools": "read"}, r"\['read'\]"),
        ({"allow_tools": "read"}, "several names"),
        ({"on_edit": "x"}, "Pass a function"),
        ({"secret": "abc"}, "encode"),
        ({"target": "0.5"}, "`target` must lie"),
        ({"format": None}, "unknown message format"),
    ],
)
def test_wrong_parts_are_named_at_once(settings: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=remedy):
        ContextManager(**settings)


@pytest.mark.parametrize("tools", ["abc", {"a": 1}, [1], 3])
def test_tools_must_be_a_list_of_dicts(tools: Any) -> None:
    with pytest.raises(MessageFormatError, match="tools must be a list of dicts"):
        manager("openai").prepare([user("hi")], tools=tools)


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("openai", user([{"type": "tool_result", "tool_use_id": "a", "content": "r"}])),
        ("anthropic", exchange(0, "r")[0]),
    ],
)
def test_another_format_is_named(format: str, message: dict[str, Any]) -> None:
    with pytest.raises(MessageFormatError, match="Name the format"):
        manager(format).prepare([user("go"), message])
    assert "foreign" in {problem.rule for problem in problems(format, [user("go"), message])}


@pytest.mark.parametrize(
    "key",
    [
        "segments", "history", "originals", "token_scale", "window", "goal", "nonce", "log",
        "appended",
    ],
)  # fmt: skip
def test_a_damaged_state_changes_nothing(key: str) -> None:
    session = manager("openai").session()
    messages = [user("go"), *exchange(0, "word " * 900), said("k"), user("n")]
    before: Request = session.prepare(messages)
    for damaged in ({**session.state_dict(), key: object()}, {}, None):
        if key in ("goal", "nonce") and damaged:
            damaged = {k: v for k, v in damaged.items() if k != key}
        with pytest.raises(ConfigurationError):
            session.load_state_dict(damaged)  # type: ignore[arg-type]
    assert session.prepare(messages).messages == before.messages


def test_appended_messages_are_not_part_of_a_state() -> None:
    session = manager("openai").session()
    session.append(user("hi"))
    session.prepare()
    restarted = manager("openai").session()
    restarted.load_state_dict(json.loads(json.dumps(session.state_dict())))
    with pytest.raises(ConfigurationError, match="Pass the whole history"):
        restarted.append(said("yo"))
    assert restarted.prepare([user("hi")]).messages == [user("hi")]


# ---- boundaries ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closing",
    [
        "</context-data>", "< / CONTEXT-DATA>", "<\u200b/context-data-1>", "\uff1c/context-data>",
        "\u2039/\u0441ontext-data>", "<\x00/context-data>", "<co\u00adntext\u2011data>",
        "\uff1c\uff0f\uff43\uff4f\uff4e\uff54\uff45\uff58\uff54\uff0d\uff44\uff41\uff54\uff41>",
    ],
)  # fmt: skip
def test_what_looks_like_the_boundary_is_escaped(closing: str) -> None:
    text = framed(f"a {closing} b", "summary", Trust.UNTRUSTED).splitlines()[2]
    assert text.startswith("a &lt;")


def test_boundaries_cannot_be_foreseen_and_last_over_a_restart() -> None:
    one, two = (ContextManager("openai").session("a") for _ in range(2))
    assert one._conversation.nonce != two._conversation.nonce
    two.load_state_dict(one.state_dict())
    assert one._conversation.nonce == two._conversation.nonce
