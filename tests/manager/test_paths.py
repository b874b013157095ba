"""What random schedules have found, each as a host would meet it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manager.histories import ROOMY, Messages, Stubborn, history, manager

from contextpilot.archives import MemoryArchive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Drop, Fold, Placement
from contextpilot.core.segment import Form
from contextpilot.errors import IllegalEditError
from contextpilot.manager import Session, Status
from contextpilot.messages.validate import problems

LONG = "word " * 200


def turns(*texts: str) -> Messages:
    """A user's goal, and for each text an answer and what the user says to it."""
    messages: Messages = [{"role": "user", "content": "Begin."}]
    for number, text in enumerate(texts):
        messages.append({"role": "assistant", "content": f"Answer {number}. " + LONG})
        messages.append({"role": "user", "content": text})
    return messages


def restarted(session: Session, archive: MemoryArchive) -> Session:
    again = manager("openai", archive=archive).session()
    again.load_state_dict(json.loads(json.dumps(session.state_dict())))
    return again


def test_a_retry_of_what_cannot_fit_edits_nothing() -> None:
    session = manager("openai", Stubborn(0.05), TokenBudget(40, 0, 0.5)).session()
    messages = history("openai", 3, 6)
    sent = session.prepare(messages)
    assert sent.status == Status.BUDGET_UNREACHABLE
    log = len(session.log)
    for again in (messages, sent.messages):
        assert session.prepare(again).messages == sent.messages
    assert len(session.log) == log


@pytest.mark.parametrize("restart", [False, True])
def test_what_is_said_again_behind_a_request_is_not_lost(restart: bool) -> None:
    """The host goes on with our requests, and says once more what an edit has dropped."""
    archive = MemoryArchive()
    messages = turns("Go on.", "And then?")
    session = manager("openai", archive=archive).session()
    session.prepare(messages)
    session.edit(Drop((2,)))
    sent = session.prepare(messages).messages
    assert [m["content"] for m in sent if m["role"] == "user"] == ["Begin.", "And then?"]
    if restart:
        session = restarted(session, archive)
        assert session.prepare(sent).messages == sent
    more = [*sent, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}]
    again = session.prepare(more)
    assert again.messages == more
    assert again.messages[-1] is more[-1]
    assert session.prepare(again.messages).messages == more


def test_undo_needs_a_history_first() -> None:
    archive = MemoryArchive()
    messages = turns("a", "b", "c")
    session = manager("openai", archive=archive).session()
    session.prepare(messages)
    record = session.edit(Fold((1,)))
    session.prepare(messages)
    again = restarted(session, archive)
    with pytest.raises(IllegalEditError, match="Pass a history"):
        again.undo(record.id)
    assert again.undo_all() == ()
    again.prepare(messages)
    assert again.undo(record.id) == (record.id,)
    assert all(a is b for a, b in zip(again.prepare(messages).messages, messages, strict=True))


def test_a_copy_stands_where_it_stood_after_a_look_at_an_older_history() -> None:
    messages = history("openai", 5, 8)
    session = manager("openai").session()
    session.prepare(messages[:6])
    session.edit(Fold((3,)))
    session.prepare(messages)
    session.reload("s4", Placement.AT_END)
    sent = session.prepare(messages).messages
    session.prepare(messages[:8])
    assert session.prepare(messages).messages == sent


def test_a_mark_on_a_stub_does_not_make_the_stub() -> None:
    """The fold sleeps in the shorter history, where its target is unread; so must its traces."""
    messages = history("openai", 5, 6)
    session = manager("openai").session()
    session.prepare(messages)
    session.edit(Fold((3,), Form.STUB))
    call = {"id": "r", "type": "function", "function": {"name": "context_reload"}}
    call["function"]["arguments"] = json.dumps({"id": "s4"})  # type: ignore[index]
    session.dispatch_reload(call)
    assert session.prepare(messages).messages[3] is not messages[3]
    assert session.prepare(messages[:4]).messages[3] is messages[3]


def test_edits_of_two_branches_do_not_split_an_exchange() -> None:
    """One branch folds a turn whose exchange the other, which has fewer requests, drops."""
    messages = history("responses", 5, 8)
    session = manager("responses", budget=ROOMY).session()
    session.prepare(messages)
    folded = next(
        i for i in range(2, 30) if session._desk.context.columns.foldable[i]
        and len(session._desk.context.group(i)) > 1
        and session._desk.context.group(i)[0] == i
    )  # fmt: skip
    session.edit(Fold((folded,)))
    session.prepare(messages)
    behind = max(session._desk.context.group(folded))
    start = session._desk.entries.all[behind].segment.position[0] + 1
    other: Any = [*messages[:start], {"role": "assistant", "content": "Hm."}]
    other.append({"role": "user", "content": "?"})
    session.prepare(other)
    session.edit(Drop((folded,)))
    for host in (other, messages, [*other, *messages[start:]]):
        assert problems("responses", session.prepare(host).messages) == ()
