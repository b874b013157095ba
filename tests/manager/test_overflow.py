"""A request that the provider refused as too long, and what is told of edits."""

from __future__ import annotations

import pytest
from manager import refusals
from manager.histories import FORMATS, ROOMY, Messages, history, manager

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import EditRecord
from contextpilot.errors import ConfigurationError
from contextpilot.manager import ContextManager, Status
from contextpilot.manager.overflow import Overflow, read_overflow
from contextpilot.messages.validate import problems
from contextpilot.tokenizers import EstimateTokenizer

REFUSALS = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9017 tokens. Please reduce the length of the messages.",
        Overflow(8192, 9017),
    ),
    ("prompt is too long: 208310 tokens > 200000 maximum", Overflow(200_000, 208_310)),
    ("Input is too long for requested model.", Overflow(0, 0)),
    ("context_length_exceeded", Overflow(0, 0)),
]


@pytest.mark.parametrize(("text", "read"), REFUSALS)
def test_what_a_refusal_says(text: str, read: Overflow) -> None:
    assert read_overflow(RuntimeError(text)) == read


@pytest.mark.parametrize(("text", "window", "sent"), refusals.REFUSALS)
def test_what_providers_say(text: str, window: int, sent: int) -> None:
    assert read_overflow(RuntimeError(text)) == Overflow(window, sent)


@pytest.mark.parametrize(
    "text", ["429 slow down", "Invalid 'messages[3].role'", "", *refusals.OTHERS]
)
def test_other_errors_are_none(text: str) -> None:
    assert read_overflow(RuntimeError(text)) is None


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("text", [text for text, _ in REFUSALS])
def test_a_refused_request_comes_back_shorter(format: str, text: str) -> None:
    messages = history(format, 3, 20)
    session = manager(format, None, ROOMY).session()
    first = session.prepare(messages)
    assert first.status == Status.OK
    again = session.retry_after(RuntimeError(text))
    assert again.report.after_tokens < first.report.after_tokens
    assert problems(format, again.messages) == ()
    assert session.prepare(messages).messages == again.messages  # remembered


def test_another_error_is_raised_again() -> None:
    session = manager("openai").session()
    with pytest.raises(KeyError):
        session.retry_after(KeyError("x"))
    with pytest.raises(ConfigurationError, match="no request"):
        session.retry_after(RuntimeError("prompt is too long"))


def told(messages: Messages, raises: bool) -> tuple[list[EditRecord], list[EditRecord]]:
    seen: list[EditRecord] = []

    def on_edit(session_id: str, record: EditRecord) -> None:
        assert session_id == "a"
        seen.append(record)
        if raises:
            raise RuntimeError("the host's own")

    made = ContextManager(
        "openai", budget=TokenBudget(9_000, 500), tokenizer=EstimateTokenizer(), on_edit=on_edit
    )
    session = made.session("a")
    session.dry_run(messages)
    assert seen == []
    session.prepare(messages)
    session.undo_all()
    return seen, list(session.log)


@pytest.mark.parametrize("raises", [False, True])
def test_a_callback_is_told_each_record_once(raises: bool) -> None:
    seen, log = told(history("openai", 5, 20), raises)
    assert seen == log
    assert len(log) > 3
