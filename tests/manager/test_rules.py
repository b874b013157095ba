"""Every baseline in production: histories over the threshold go out valid and in budget."""

from __future__ import annotations

import json

import pytest
from manager.histories import FORMATS, Messages, history, manager, requests_of

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import Status
from contextpilot.messages.validate import problems
from contextpilot.policies.catalog import RULES, policy_spec

BUDGET = TokenBudget(8_000, 500, 0.6)
NAMES = ("raw", "random", "reuse_predictor", *RULES)


def texts(messages: Messages) -> str:
    return json.dumps(messages)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_conversation_is_valid_and_in_budget(name: str, format: str) -> None:
    session = manager(format, policy_spec(name)(), BUDGET).session()
    edited = 0
    for host in requests_of(history(format, 4, 25, reasoning=True)):
        request = session.prepare(host)
        assert request.report.after_tokens <= BUDGET.input_limit
        assert problems(format, request.messages) == request.report.problems == ()
        edited += request.status == Status.EDITED
        user = next(m for m in reversed(host) if m.get("role") == "user")
        assert texts([user])[1:-1] in texts(request.messages) or format == "anthropic"
    assert session.failures == ()
    assert edited


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_history_at_once(name: str, format: str) -> None:
    """A session that begins in the middle of a conversation, far over the limit."""
    messages = history(format, 9, 40)
    request = manager(format, policy_spec(name)(), BUDGET).prepare(messages)
    assert request.status == Status.EDITED
    assert request.report.before_tokens > 3 * BUDGET.input_limit
    assert request.report.after_tokens <= BUDGET.input_limit
    assert problems(format, request.messages) == ()


@pytest.mark.parametrize("format", FORMATS)
def test_more_segments_than_slots(format: str) -> None:
    messages = history(format, 2, 120)
    tiny = manager(format, None, BUDGET, context_slots=16, archive_slots=4)
    request = tiny.prepare(messages)
    assert request.report.after_tokens <= BUDGET.input_limit
    assert problems(format, request.messages) == ()
