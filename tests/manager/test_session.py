"""A session over many requests: what goes out, what stays as it is, what comes back."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager.histories import ALWAYS, FORMATS, ROOMY, Stubborn, history, manager, requests_of
from messages.message_lists import Messages, anthropic_lists, openai_lists, wire
from messages.responses_lists import responses_lists
from strategies import examples, seeds

from contextpilot.archives import MemoryArchive, SqliteArchive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Op, Placement
from contextpilot.errors import ArchiveError, ConfigurationError, IllegalEditError
from contextpilot.manager import Session, Status
from contextpilot.messages.validate import problems

TIGHT = TokenBudget(9_000, 500, 0.8)
LISTS = {"openai": openai_lists, "anthropic": anthropic_lists, "responses": responses_lists}
EVERY_FORMAT = pytest.mark.parametrize("format", FORMATS)


def same_objects(sent: Messages, host: Messages) -> bool:
    return len(sent) == len(host) and all(a is b for a, b in zip(sent, host, strict=True))


# ---- below the threshold -------------------------------------------------------------------------


@EVERY_FORMAT
@examples(30)
@given(data=st.data())
def test_below_the_threshold_a_history_goes_out_as_it_came(format: str, data: Any) -> None:
    messages = data.draw(LISTS[format]())
    before = copy.deepcopy(messages)
    tools = [{"name": "read"}]
    session = manager(format).session()
    request = session.prepare(messages, tools, "Be brief.")
    assert same_objects(request.messages, messages)
    assert (request.tools, request.system) == (tools, "Be brief.")
    assert request.tools is not None
    assert request.tools[0] is tools[0]
    assert wire(messages) == wire(before)
    assert request.status == Status.OK
    assert len(session.log) == 0
    assert request.report.edits == request.report.problems == ()


@EVERY_FORMAT
def test_the_request_number_is_how_many_turns_there_were(format: str) -> None:
    session = manager(format).session()
    for number, messages in enumerate(requests_of(history(format, 1))):
        assert [session.prepare(messages).report.request for _ in range(2)] == [number] * 2


# ---- over it -------------------------------------------------------------------------------------


@EVERY_FORMAT
@examples(6)
@given(seeds, st.booleans())
def test_whatever_a_policy_does_requests_are_valid_and_can_be_taken_back(
    format: str, seed: int, reasoning: bool
) -> None:
    messages = history(format, seed, 14, reasoning)
    before = copy.deepcopy(messages)
    session = manager(format, Stubborn(), ALWAYS, reload_tool=True).session(str(seed))
    for host in requests_of(messages):
        request = session.prepare(host)
        assert problems(format, request.messages) == ()
        assert request.report.after_tokens == request.report.account.input_tokens
    assert wire(messages) == wire(before)
    edited = [r for r in session.log if r.rows]
    assert len(edited) > 5
    hidden = {i for r in edited if r.op in (Op.FOLD, Op.DROP) for i in r.targets}
    known = set(session._conversation.parts.archive.ids(session.id))
    assert hidden <= known
    session.undo_all()
    session._conversation.config = manager(format).config
    assert same_objects(session.prepare(messages).messages, messages)
    assert not list(session.log.live_since(-1))


@EVERY_FORMAT
@examples(6)
@given(seeds)
def test_a_tight_budget_is_kept_by_the_default_rule(format: str, seed: int) -> None:
    session = manager(format, None, TIGHT).session()
    statuses = set()
    for host in requests_of(history(format, seed, 25)):
        request = session.prepare(host)
        statuses.add(request.status)
        assert request.report.after_tokens <= TIGHT.input_limit
        assert problems(format, request.messages) == ()
        for message in request.messages:
            for own in host:
                if message == own:
                    assert any(message is each for each in host)
    assert statuses == {Status.OK, Status.EDITED}


@EVERY_FORMAT
@examples(5)
@given(seeds)
def test_a_retry_and_a_request_fed_back_change_nothing(format: str, seed: int) -> None:
    messages = history(format, seed, 12)
    session = manager(format, Stubborn(), ALWAYS).session(str(seed))
    for host in requests_of(messages):
        sent = session.prepare(host)
        log = len(session.log)
        for again in (host, copy.deepcopy(host), sent.messages, copy.deepcopy(sent.messages)):
            repeated = session.prepare(again)
            assert wire(repeated.messages) == wire(sent.messages)
            assert (repeated.report.request, len(session.log)) == (sent.report.request, log)


@EVERY_FORMAT
@examples(5)
@given(seeds)
def test_a_host_may_go_on_with_what_it_was_given(format: str, seed: int) -> None:
    """A host that keeps its own list and one that keeps our requests send the same."""
    keeps_own = manager(format, Stubborn(), ALWAYS).session(str(seed))
    keeps_ours = manager(format, Stubborn(), ALWAYS).session(str(seed))
    ours: Messages = []
    given_before = 0
    for host in requests_of(history(format, seed, 12)):
        ours = [*ours, *host[given_before:]]
        given_before = len(host)
        sent = keeps_own.prepare(host)
        ours = keeps_ours.prepare(ours).messages
        assert wire(ours) == wire(sent.messages)


@EVERY_FORMAT
@examples(5)
@given(seeds, st.data())
def test_after_a_restart_the_next_request_is_the_same(format: str, seed: int, data: Any) -> None:
    archive = MemoryArchive()
    messages = list(requests_of(history(format, seed, 12)))
    stop = data.draw(st.integers(1, len(messages) - 1))
    first = manager(format, Stubborn(), ALWAYS, archive=archive).session("a")
    for host in messages[:stop]:
        sent = first.prepare(host).messages
    state = json.loads(json.dumps(first.state_dict()))
    second = manager(format, Stubborn(1.0), ALWAYS, archive=archive).session("a")
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert wire(second.prepare(copy.deepcopy(messages[stop - 1])).messages) == wire(sent)
    fed = manager(format, Stubborn(1.0), ALWAYS, archive=archive).session("a")
    fed.load_state_dict(state)
    assert wire(fed.prepare(copy.deepcopy(sent)).messages) == wire(sent)
    idle = manager(format, Stubborn(1.0), ALWAYS, archive=archive).session("b")
    assert len(idle.log) == 0


def test_a_restart_without_the_archive_shows_what_is_left() -> None:
    messages = history("openai", 3, 12)
    first = manager("openai", None, TIGHT).session("a")
    sent = first.prepare(messages)
    assert sent.status == Status.EDITED
    second = manager("openai", None, TIGHT).session("a")
    second.load_state_dict(first.state_dict())
    fed_back = second.prepare(sent.messages)
    assert wire(fed_back.messages) == wire(sent.messages)
    assert problems("openai", fed_back.messages) == ()
    assert second.prepare(messages).report.after_tokens <= TIGHT.input_limit


# ---- branches and changes ------------------------------------------------------------------------


def folded(session: Session, messages: Messages, segment_id: str) -> int:
    """Folds one segment; returns the record's id."""
    from contextpilot.core.edit import Fold

    session.prepare(messages)
    return session.edit(Fold((session.index(segment_id),))).id


def test_an_edit_sleeps_where_its_target_is_not_and_wakes_again() -> None:
    messages = history("openai", 5, 8)
    session = manager("openai").session()
    record = folded(session, messages, "s4")
    assert session.prepare(messages).status == Status.EDITED
    branch = [*messages[:2], {"role": "assistant", "content": "Hm."}]
    slept = session.prepare(branch)
    assert (slept.status, slept.report.asleep) == (Status.OK, (record,))
    assert same_objects(slept.messages, branch)
    with pytest.raises(IllegalEditError, match="targets"):
        session.undo(record)
    woken = session.prepare(messages)
    assert (woken.status, woken.report.asleep) == (Status.EDITED, ())


def test_a_changed_message_loses_its_edit_and_no_other() -> None:
    messages = history("openai", 5, 8)
    session = manager("openai").session()
    folded(session, messages, "s4")
    other = folded(session, messages, "s8")
    changed = copy.deepcopy(messages)
    changed[3]["content"] = "Something else."
    request = session.prepare(changed)
    assert request.messages[3] is changed[3]
    assert "folded s8" in json.dumps(request.messages[7])
    messages[3]["content"] = "In place."  # without telling anyone
    request = session.prepare(messages)
    assert request.messages[3] is messages[3]
    assert session.log.is_live(session.log[other])


@EVERY_FORMAT
def test_a_host_that_trims_keeps_the_edits_of_what_is_left(format: str) -> None:
    messages = history(format, 6, 14)
    session = manager(format, None, TIGHT).session()
    sent = session.prepare(messages)
    start = len(list(requests_of(messages))[4])
    folds = [
        m for m, host in zip(sent.messages[start:], messages[start:], strict=True) if m != host
    ]
    assert folds
    trimmed = session.prepare([*messages[: 1 if format == "anthropic" else 2], *messages[start:]])
    assert problems(format, trimmed.messages) == ()
    assert all(fold in trimmed.messages for fold in folds)


def test_what_a_shorter_history_has_not_read_yet_is_whole_again() -> None:
    messages = history("openai", 8, 1)
    last = len(messages)
    longer = [
        *messages,
        {"role": "assistant", "content": "Read."},
        {"role": "user", "content": "?"},
    ]
    session = manager("openai").session()
    folded(session, longer, f"s{last}")
    assert "folded" in session.prepare(longer).messages[last - 1]["content"]
    assert same_objects(session.prepare(messages).messages, messages)  # a retry from there


def test_the_user_s_latest_request_is_whole_in_every_branch() -> None:
    messages: Messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "word " * 200},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Next."},
    ]
    session = manager("openai").session()
    folded(session, messages, "s3")
    assert session.prepare(messages).messages[2] is not messages[2]
    assert session.prepare(messages[:3]).messages[2] is messages[2]
    assert session.prepare(messages).messages[2] is not messages[2]


@EVERY_FORMAT
@examples(6)
@given(seeds, st.data())
def test_any_branch_is_valid_and_coming_back_restores_the_request(
    format: str, seed: int, data: Any
) -> None:
    hosts = list(requests_of(history(format, seed, 10)))
    quiet = manager(format).config
    session = manager(format, Stubborn(), ALWAYS).session(str(seed))
    for host in hosts:
        sent = session.prepare(host)
    session._conversation.config = quiet  # no more edits
    for _ in range(3):
        base = data.draw(st.sampled_from(hosts))
        branch = [*base, {"role": "user", "content": data.draw(st.sampled_from(["a", "b"]))}]
        request = session.prepare(branch)
        assert problems(format, request.messages) == ()
        assert json.dumps(branch[-1]["content"]) in json.dumps(request.messages[-1])
        assert wire(session.prepare(hosts[-1]).messages) == wire(sent.messages)


# ---- by hand -------------------------------------------------------------------------------------


def test_manual_edits_show_in_the_next_request() -> None:
    messages = history("openai", 5, 8)
    session = manager("openai").session()
    session.prepare(messages)
    seen = session.observe()
    allowed = seen.allowed(Op.FOLD, "stub")
    record = session.execute(seen.action(Op.FOLD, "stub", int(allowed.argmax())), "too long")
    assert (record.op, record.reason) == (Op.FOLD, "too long")
    assert session.prepare(messages).status == Status.EDITED
    with pytest.raises(IllegalEditError):
        session.execute(seen.action(Op.FOLD, "stub", int(allowed.argmax())))
    with pytest.raises(IllegalEditError):
        session.execute(0)
    session.undo(record.id)
    assert same_objects(session.prepare(messages).messages, messages)
    assert len(session.log) == 2
    with pytest.raises(ConfigurationError, match="no such record"):
        session.undo(9)


def test_a_reload_brings_the_original_back_in_place_or_as_a_copy() -> None:
    messages = history("openai", 5, 8)
    more = [*messages, *history("openai", 9, 3)[2:]]
    session = manager("openai").session()
    folded(session, messages, "s4")
    session.prepare(messages)
    session.prepare(more)
    session.reload("s4", Placement.AT_END)
    with_copy = session.prepare(more)
    assert messages[3]["content"] in with_copy.messages[-1]["content"]
    assert wire(session.prepare(with_copy.messages).messages) == wire(with_copy.messages)
    session.undo(session.log[1].id)
    session.reload("s4")
    assert same_objects(session.prepare(more).messages, more)
    with pytest.raises(ArchiveError, match="s99"):
        session.reload("s99")


def test_off_passes_everything_on() -> None:
    messages = history("openai", 5, 20)
    session = manager("openai", None, TIGHT).session()
    session.off = True
    request = session.prepare(messages, [{"name": "f"}])
    assert request.status == Status.OFF
    assert same_objects(request.messages, messages)
    session.off = False
    assert session.prepare(messages).status == Status.EDITED


@EVERY_FORMAT
def test_a_dry_run_says_what_would_happen(format: str) -> None:
    messages = history(format, 5, 20)
    archive = MemoryArchive()
    session = manager(format, None, TIGHT, archive=archive).session()
    session.prepare(messages[:4])
    before = session.state_dict()
    would = session.dry_run(messages)
    assert would.status == Status.EDITED
    assert session.state_dict() == before
    assert archive.ids(session.id) == ()
    assert wire(session.prepare(messages).messages) == wire(would.messages)


def test_appended_messages_are_the_history() -> None:
    messages = history("openai", 5, 20)
    session, other = (manager("openai", None, TIGHT).session() for _ in range(2))
    for message in messages:
        session.append(message)
    assert wire(session.prepare().messages) == wire(other.prepare(messages).messages)
    with pytest.raises(ConfigurationError, match="both"):
        session.prepare(messages)
    with pytest.raises(ConfigurationError, match="neither"):
        manager("openai").session().prepare()
    with pytest.raises(ConfigurationError, match="Keep to one"):
        other.append(messages[0])


def test_a_purge_erases_the_archive_of_one_session() -> None:
    messages = history("openai", 5, 20)
    shared = manager("openai", None, TIGHT)
    first, second = shared.session("a"), shared.session("b")
    first.prepare(messages)
    second.prepare(messages)
    assert first.purge() > 0
    assert shared.archive.ids("a") == ()
    assert shared.archive.ids("b")
    assert len(first.log) == 0
    assert first.prepare(messages).status == Status.EDITED


def test_the_budget_that_cannot_be_kept_names_what_is_pinned() -> None:
    messages: Messages = [
        {"role": "system", "content": "rule " * 500},
        {"role": "user", "content": "word " * 2000},
    ]
    request = manager("openai", None, TokenBudget(1000, 100)).prepare(messages)
    assert request.status == Status.BUDGET_UNREACHABLE
    assert [segment for segment, _ in request.report.pinned] == ["s2", "s1"]
    assert request.report.pinned_tokens > 900
    assert same_objects(request.messages, messages)


def test_pins_are_the_host_s_to_set() -> None:
    messages = history("openai", 5, 20)
    kept = messages[3]["content"]
    session = manager("openai", None, TIGHT, pins=lambda m: m.get("content") == kept).session()
    for host in requests_of(messages):
        request = session.prepare(host)
    assert request.status == Status.EDITED
    assert any(message is messages[3] for message in request.messages)


def test_a_target_is_reached() -> None:
    messages = history("openai", 5, 20)
    request = manager("openai", None, TIGHT, target=0.3).prepare(messages)
    assert request.report.after_tokens <= 0.3 * TIGHT.input_limit


def test_a_cooldown_leaves_the_policy_out_while_requests_fit() -> None:
    session = manager("openai", Stubborn(), ALWAYS, cooldown=5).session()
    asked = []
    for host in requests_of(history("openai", 5, 20)):
        report = session.prepare(host).report
        if report.edits:
            asked.append(report.request)
    assert len(asked) > 1
    assert all(b - a >= 5 for a, b in pairwise(asked))


# ---- the reload tool -----------------------------------------------------------------------------

CALLS = {
    "openai": {"id": "r1", "type": "function", "function": {"name": "context_reload"}},
    "anthropic": {"type": "tool_use", "id": "r1", "name": "context_reload"},
    "responses": {"type": "function_call", "call_id": "r1", "name": "context_reload"},
}


def reload_call(format: str, segment_id: str) -> dict[str, Any]:
    call = copy.deepcopy(CALLS[format])
    if format == "openai":
        call["function"]["arguments"] = json.dumps({"id": segment_id})
    elif format == "anthropic":
        call["input"] = {"id": segment_id}
    else:
        call["arguments"] = json.dumps({"id": segment_id})
    return call


@EVERY_FORMAT
def test_the_reload_tool_is_there_from_the_first_request_on(format: str) -> None:
    hosts = list(requests_of(history(format, 5, 20)))
    session = manager(format, None, TIGHT, reload_tool=True).session()
    tools = {json.dumps(session.prepare(host, [{"name": "f"}]).tools) for host in hosts}
    assert len(tools) == 1
    folded_id = next(r.targets[0] for r in session.log if r.op == Op.FOLD and r.rows)
    original = session._desk.entries.all[session.index(folded_id)].segment.text
    answer = session.dispatch_reload(reload_call(format, folded_id))
    assert (
        original
        in json.loads(json.dumps(answer))[
            {"openai": "content", "responses": "output"}.get(format, "content")
        ]
        or original in answer["content"][0]["text"]
    )
    assert session.log[-1].op == Op.RELOAD
    wrong = session.dispatch_reload(reload_call(format, "s999"))
    assert folded_id in json.dumps(wrong)
    assert wire(session.prepare(hosts[-1]).messages) == wire(session.prepare(hosts[-1]).messages)


# ---- what a host may rely on ---------------------------------------------------------------------


def test_usage_calibrates_the_limit_and_never_the_stubs() -> None:
    messages = history("openai", 5, 20)
    session = manager("openai", None, TIGHT).session()
    hosts = list(requests_of(messages))
    for host in hosts[:-1]:
        request = session.prepare(host)
        counted = request.report.after_tokens
        session.record_usage(
            {
                "prompt_tokens": counted * 2,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 5},
            }
        )
    report = session.prepare(hosts[-1]).report
    assert report.token_scale == pytest.approx(2.0)
    assert report.input_limit == TIGHT.input_limit // 2
    assert report.after_tokens * 2 <= TIGHT.input_limit
    assert report.usage == {"input": counted * 2, "cached": 5, "output": 7}
    with pytest.raises(ConfigurationError, match="names no input tokens"):
        session.record_usage({})


def test_sessions_do_not_see_each_other_and_are_the_same_by_id() -> None:
    shared = manager("openai", None, TIGHT)
    assert shared.session("a") is shared.session("a")
    shared.session("a").prepare(history("openai", 5, 20))
    answer = shared.session("b").dispatch_reload(reload_call("openai", "s4"))
    assert "Ids that are: none" in answer["content"]


def test_many_threads_and_an_event_loop() -> None:
    shared = manager("openai", None, TIGHT)
    hosts = list(requests_of(history("openai", 5, 15)))
    expected = wire(manager("openai", None, TIGHT).prepare(hosts[-1]).messages)
    sent: list[str] = []

    def run(name: str) -> None:
        sent.append(wire(shared.session(name).prepare(hosts[-1]).messages))

    threads = [threading.Thread(target=run, args=(str(n),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sent == [expected] * 6
    assert wire(asyncio.run(shared.session("x").aprepare(hosts[-1])).messages) == expected


def test_an_archive_on_disk_survives_a_restart(tmp_path: Any) -> None:
    messages = history("anthropic", 5, 20)
    with SqliteArchive(tmp_path / "a.db") as archive:
        session = manager("anthropic", None, TIGHT, archive=archive).session("a")
        sent = session.prepare(messages).messages
        state = json.dumps(session.state_dict())
    with SqliteArchive(tmp_path / "a.db") as archive:
        session = manager("anthropic", None, TIGHT, archive=archive).session("a")
        session.load_state_dict(json.loads(state))
        assert wire(session.prepare(sent).messages) == wire(sent)
        assert wire(session.prepare(messages).messages) == wire(sent)


@pytest.mark.parametrize("change", [{"version": 0}, {"format": "anthropic"}, {"log": [[1]]}])
def test_a_foreign_state_is_refused(change: dict[str, Any]) -> None:
    session = manager("openai").session()
    with pytest.raises(ConfigurationError, match="Received"):
        session.load_state_dict({**session.state_dict(), **change})


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="'opnai'"):
        manager("opnai")
    for settings in ({"max_edits": 0}, {"target": 0.0}, {"cooldown": -1}, {"prices": "free"}):
        with pytest.raises(ConfigurationError, match="Received"):
            manager("openai", None, ROOMY, **settings)
