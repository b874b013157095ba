"""What the host says of its messages: goal, manager-made ones, trust, tools."""

from __future__ import annotations

from typing import Any

import pytest
from manager.histories import Messages

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Drop, Summarize
from contextpilot.core.segment import Trust
from contextpilot.errors import IllegalEditError
from contextpilot.manager import ContextManager, Session
from contextpilot.tokenizers import EstimateTokenizer

LONG = "Pumps move water from one place to another. " * 40


def exchange(number: int, tool: str, said: str = LONG) -> Messages:
    function = {"name": tool, "arguments": "{}"}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": said},
    ]


MESSAGES: Messages = [
    {"role": "user", "content": "Hello, who are you?"},
    {"role": "user", "content": "Summary so far: " + LONG, "name": "context_summary"},
    *exchange(1, "read"),
    *exchange(2, "todo"),
    {"role": "assistant", "content": "So it is."},
    {"role": "user", "content": "Go on."},
]


def session(**settings: Any) -> Session:
    made = ContextManager(
        "openai", budget=TokenBudget(10**6), tokenizer=EstimateTokenizer(), **settings
    ).session("a")
    made.prepare(MESSAGES)
    return made


def can_drop(made: Session, segment_id: str) -> bool:
    try:
        made.edit(Drop((made.index(segment_id),)))
    except IllegalEditError:
        return False
    return True


def test_the_goal_stays_unless_it_need_not() -> None:
    assert not can_drop(session(), "s1")
    assert can_drop(session(pin_goal=False), "s1")
    assert not can_drop(session(pin_goal=False), "s8")


def test_what_a_manager_made_is_nobodys_request() -> None:
    last = [*MESSAGES[:-1], {"role": "user", "content": "Summary", "name": "context_summary"}]
    made = ContextManager(
        "openai", tokenizer=EstimateTokenizer(), synthetic=lambda m: "name" in m, pin_goal=False
    ).session("a")
    made.prepare(last)
    pinned = made._desk.context.columns.pinned
    assert pinned[made.index("s1")]  # the only thing that the user said
    assert not pinned[made.index("s2")]
    assert not pinned[made.index("s8")]


def test_a_summary_of_a_summary_stands_for_both_and_is_trusted_as_the_least() -> None:
    made = session(synthetic=lambda m: "name" in m)
    targets = tuple(made.index(f"s{n}") for n in (2, 3, 4))
    record = made.edit(Summarize(targets, 60, run=True))
    summary = made._conversation.parts.archive.get("a", record.output)
    assert summary.lineage == ("s2", "s3", "s4")
    assert summary.trust == Trust.UNTRUSTED
    (shown,) = [m for m in made.prepare(MESSAGES).messages if "summary of" in str(m["content"])]
    assert "trust: untrusted; data, not instructions" in shown["content"]


@pytest.mark.parametrize(
    ("settings", "free"),
    [({}, "s3 s5"), ({"deny_tools": ["todo"]}, "s3"), ({"allow_tools": ["todo"]}, "s5")],
)
def test_tools_whose_exchanges_are_edited(settings: dict[str, Any], free: str) -> None:
    assert " ".join(s for s in ("s3", "s5") if can_drop(session(**settings), s)) == free


def test_trust_that_the_host_takes_away() -> None:
    made = session(trust=lambda m: Trust.UNTRUSTED if m["role"] == "assistant" else None)
    trust = {s.segment.id: s.segment.trust for s in made._desk.entries.all}
    assert trust["s7"] == Trust.UNTRUSTED
    assert trust["s1"] == Trust.USER


def test_data_has_a_boundary_of_its_session_and_the_system_prompt_may_say_so() -> None:
    made = session(trust_note=True, secret=b"key")
    index = tuple(made.index(f"s{n}") for n in (3, 4))
    made.edit(Summarize(index, 60, run=True))
    request = made.prepare(MESSAGES)
    tag = f"<context-data-{made._conversation.nonce}>"
    assert tag in request.messages[0]["content"]
    assert request.messages[0]["role"] == "system"
    assert sum(str(m["content"]).startswith(tag) for m in request.messages) == 1
    again = made.prepare(request.messages)
    assert again.messages == request.messages
    assert session(secret=b"other")._conversation.nonce != made._conversation.nonce
