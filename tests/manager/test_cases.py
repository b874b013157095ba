"""Invalid histories, and failures that users of other libraries reported."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from manager.histories import Messages, history, manager
from messages.message_lists import wire
from messages.real_data import CASES, needs_cases

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import Status
from contextpilot.messages.validate import problems
from contextpilot.policies.catalog import policy_spec


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    made = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(call_id: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": "Go."}


@pytest.mark.parametrize(
    "messages",
    [
        [USER, call("a"), {"role": "user", "content": "And?"}],
        [USER, result("a"), {"role": "assistant", "content": "Hm."}, USER],
        [USER, call("a"), result("a"), result("a", "twice"), USER],
        [USER, {"role": "assistant", "content": None, "tool_calls": []}, USER],
    ],
)
def test_a_repair_is_reported_and_no_edit(messages: Messages) -> None:
    before = copy.deepcopy(messages)
    session = manager("openai").session()
    request = session.prepare(messages)
    assert problems("openai", request.messages) == request.report.problems == ()
    assert request.report.repairs
    assert len(session.log) == 0
    assert request.status == Status.OK
    assert wire(messages) == wire(before)
    again = session.prepare(request.messages)
    assert wire(again.messages) == wire(request.messages)
    assert again.report.repairs == ()


def test_a_result_that_comes_late_takes_its_place() -> None:
    session = manager("openai").session()
    pending = [USER, call("a"), {"role": "user", "content": "And?"}]
    first = session.prepare(pending)
    assert problems("openai", first.messages) == ()
    late = [USER, call("a"), result("a", "the answer"), {"role": "user", "content": "And?"}]
    second = session.prepare(late)
    assert second.report.repairs == ()
    assert all(a is b for a, b in zip(second.messages, late, strict=True))


def test_edits_of_a_history_that_needs_repair() -> None:
    messages = history("openai", 5, 20)
    messages.insert(6, result("nobody"))
    messages.append(call("pending"))
    request = manager("openai", None, TokenBudget(9_000, 500)).prepare(messages)
    assert request.status == Status.EDITED
    assert request.report.repairs
    assert problems("openai", request.messages) == ()
    assert request.messages[-1] is messages[-1]


def cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


POLICIES = ("clear_old_results", "threshold_fold", "truncation", "fixed_summary", "random")


@needs_cases
@pytest.mark.parametrize("policy", POLICIES)
def test_reported_cases_stay_valid_whatever_is_done(policy: str) -> None:
    """As they are, and in half the room: valid, system and latest user verbatim."""
    assert cases()
    for case in cases():
        messages, format = case["messages"], case["format"]
        before = copy.deepcopy(messages)
        whole = manager(format, policy_spec(policy)()).session(case["id"]).prepare(messages)
        assert problems(format, whole.messages) == (), case["id"]
        assert whole.status == Status.OK
        window = max(40, whole.report.after_tokens // 2)
        half = TokenBudget(window, compression_threshold=0.5)
        request = manager(format, policy_spec(policy)(), half).prepare(messages)
        assert problems(format, request.messages) == (), case["id"]
        assert wire(messages) == wire(before), case["id"]
        fits = request.report.after_tokens <= half.input_limit
        assert fits or request.status == Status.BUDGET_UNREACHABLE
        latest = max(i for i, m in enumerate(messages) if m["role"] == "user")
        for check in case["expected"]["checks"]:
            for i in check["messages"] if check["check"] == "keeps_verbatim" else ():
                if i == latest or messages[i]["role"] == "system":
                    content = json.dumps(messages[i]["content"], ensure_ascii=False)
                    assert content[1:-1] in wire(request.messages), case["id"]
