"""What a session does only as far as a list is new: it gives what doing all of it anew gives."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager.histories import FORMATS, history, manager, requests_of
from messages.corruptions import CORRUPTIONS
from messages.message_lists import Messages, anthropic_lists, openai_lists, wire
from messages.responses_lists import responses_lists
from strategies import examples, seeds

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Edit, Fold
from contextpilot.core.segment import Role
from contextpilot.manager import Request, Session, Status
from contextpilot.manager.conversation import Conversation
from contextpilot.manager.formats import format_of
from contextpilot.manager.intake import Intake
from contextpilot.manager.memory import Memory
from contextpilot.manager.reading import Reader
from contextpilot.manager.tails import Validator
from contextpilot.messages.builder import pins_of
from contextpilot.messages.repair import repair
from contextpilot.messages.validate import problems
from contextpilot.observations.observation import Observation
from contextpilot.policies.catalog import best_rule

LISTS = {"openai": openai_lists, "anthropic": anthropic_lists, "responses": responses_lists}
EVERY_FORMAT = pytest.mark.parametrize("format", FORMATS)
WIDE = TokenBudget(400_000, 0, 0.05)
"""Pressure now and then, and never need."""


@st.composite
def stages(draw: st.DrawFn, format: str) -> list[Messages]:
    """Draws lists as a host passes them: grown, cut, broken in some way, changed in place."""
    whole: Messages = copy.deepcopy(draw(LISTS[format]()))
    random = Random(draw(seeds))
    found: list[Messages] = []
    for _ in range(draw(st.integers(2, 7))):
        if whole and draw(st.integers(0, 3)) == 0:
            draw(st.sampled_from(CORRUPTIONS[format])).corrupt(whole, random)
        found.append(copy.deepcopy(whole[: draw(st.integers(0, len(whole)))]))
    return found


# ---- part by part --------------------------------------------------------------------------------


@EVERY_FORMAT
@examples(40)
@given(data=st.data())
def test_a_list_is_repaired_as_if_it_were_new(format: str, data: Any) -> None:
    intake = Intake(format, 8)
    for messages in data.draw(stages(format)):
        before = copy.deepcopy(messages)
        whole, expected = intake.take(messages), repair(format, messages, pending_wait=8)
        assert list(whole.messages) == expected.messages
        assert whole.repairs == expected.repairs
        assert messages == before
        again = intake.take(copy.deepcopy(messages))
        assert again == whole
        for kept in again.messages:
            given_back = intake.handed_out(kept)
            assert given_back == kept
            assert given_back is not kept or kept in messages


@EVERY_FORMAT
@examples(40)
@given(data=st.data())
def test_a_list_is_checked_as_if_it_were_new(format: str, data: Any) -> None:
    validator = Validator(format)
    whole: Messages = data.draw(LISTS[format]())
    broken = copy.deepcopy(whole)
    data.draw(st.sampled_from(CORRUPTIONS[format])).corrupt(broken, Random(data.draw(seeds)))
    shared = [a if a == b else b for a, b in zip(whole, broken, strict=False)]
    for messages in (whole, [*shared, *broken[len(shared) :]], whole):
        for end in sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=5))):
            assert validator.problems(messages[:end]) == problems(format, messages[:end])


@EVERY_FORMAT
@examples(40)
@given(data=st.data())
def test_a_list_is_read_as_if_it_were_new(format: str, data: Any) -> None:
    form, kept = format_of(format), Intake(format, 8)
    reader = Reader(form)
    for messages in data.draw(stages(format)):
        whole = kept.take(messages).messages
        segments = reader.read(whole)
        assert segments == form.parse(whole)
        assert all(a is b for a, b in zip(segments, reader.read(list(whole)), strict=True))
        pinned = {n for n, s in enumerate(segments) if s.pinned and s.role != Role.SYSTEM}
        assert pinned == {n for n in pins_of(segments) if segments[n].role != Role.SYSTEM}


def test_a_memory_lasts_while_requests_ask() -> None:
    memory, computed = Memory[int](), list[int]()
    objects: tuple[Any, ...] = ({}, {})

    def compute() -> int:
        computed.append(0)
        return len(computed)

    assert [memory.of(objects, compute) for _ in range(2)] == [1, 1]
    memory.begin()
    assert memory.of(objects, compute) == 1
    assert memory.of(objects[:1], compute) == 2
    memory.begin()
    memory.begin()
    assert memory.of(objects, compute) == 3


# ---- requests that call for no decision ----------------------------------------------------------


class Twins:
    """A session beside one that takes all steps at each request."""

    def __init__(self, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.format, self.patch = format, monkeypatch
        self.went_on = 0
        self.quick, self.slow = (manager(format, budget=WIDE).session("a") for _ in range(2))

    def each(self, act: Any) -> tuple[Any, Any]:
        goes_on = Conversation._goes_on

        def counted(*arguments: Any) -> bool:
            result = goes_on(*arguments)
            self.went_on += result
            return result

        with self.patch.context() as patch:
            patch.setattr(Conversation, "_goes_on", counted)
            first = act(self.quick)
        with self.patch.context() as patch:
            patch.setattr(Conversation, "_goes_on", lambda *_: False)
            return first, act(self.slow)

    def prepare(self, messages: Messages, **others: Any) -> Request:
        ours, theirs = self.each(lambda s: s.prepare(copy.deepcopy(messages), **others))
        assert wire(ours.messages) == wire(theirs.messages)
        assert plain(ours) == plain(theirs)
        assert problems(self.format, ours.messages) == ()
        request: Request = ours
        return request

    def look(self) -> None:
        ours, theirs = self.each(lambda session: session.observe().arrays)
        assert all((ours[name] == theirs[name]).all() for name in theirs)

    def save(self) -> None:
        ours, theirs = self.each(lambda session: timeless(session.state_dict()))
        assert ours == theirs

    def fold(self) -> None:
        def act(session: Session) -> str:
            try:
                session.edit(edit)
            except Exception as error:
                return str(error)
            return ""

        edit: Edit = Fold((session_index(self.quick),))
        ours, theirs = self.each(act)
        assert ours == theirs


def session_index(session: Session) -> int:
    return session.index("s3") if session._conversation.log else session.index("s1")


def plain(request: Request) -> dict[str, Any]:
    fields = asdict(replace(request.report, edits=(), failures=()))
    return {**fields, "tools": request.tools, "system": request.system, "status": request.status,
            "edits": [(e.op, e.targets, e.rows) for e in request.report.edits]}  # fmt: skip


def timeless(value: Any) -> Any:
    """Returns a state without how long edits took, which are its only fractions but one."""
    if isinstance(value, dict):
        return {k: v if k == "token_scale" else timeless(v) for k, v in value.items()}
    if isinstance(value, float):
        return 0.0
    return [timeless(v) for v in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@examples(10)
@given(seed=seeds)
def test_a_request_that_goes_on_is_what_all_steps_give(format: str, seed: int) -> None:
    random = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        twins = Twins(format, patch)
        tools: list[dict[str, Any]] = [{"name": "read"}]
        hosts = list(requests_of(history(format, seed, 24, random.random() < 0.3)))
        for at, host in enumerate(hosts):
            sent = twins.prepare(host, tools=tools)
            match random.randrange(9):
                case 0:
                    twins.prepare(host, tools=tools)
                case 1:
                    twins.look()
                case 2:
                    twins.save()
                case 3:
                    twins.prepare(sent.messages, tools=tools)  # fed back
                case 4:
                    twins.prepare(hosts[random.randrange(at + 1)], tools=tools)  # a branch
                case 5:
                    tools[0]["name"] += "x"
                case 6:
                    twins.each(lambda s: s.record_usage({"input_tokens": 2_000}))
                case 7 if at > 3:
                    twins.fold()
        twins.look()
        twins.save()
        assert twins.went_on > 3


def test_most_requests_of_an_agent_go_on() -> None:
    with pytest.MonkeyPatch.context() as patch:
        twins = Twins("anthropic", patch)
        hosts = list(requests_of(history("anthropic", 3, 40)))
        edited = [twins.prepare(host).status == Status.EDITED for host in hosts]
        assert twins.went_on > len(hosts) / 2
        assert sum(edited) > len(hosts) / 3


# ---- hosts that share their objects, or do not ---------------------------------------------------


def edited_session(format: str) -> tuple[Session, Messages, Request]:
    messages = history(format, 5, 30)
    session = manager(format, budget=WIDE).session()
    request = session.prepare(messages)
    assert request.status == Status.EDITED
    return session, messages, request


@EVERY_FORMAT
def test_a_host_that_parses_its_history_anew_gets_the_same(format: str) -> None:
    session, messages, request = edited_session(format)
    anew = json.loads(json.dumps(messages))
    again = session.prepare(anew)
    assert wire(again.messages) == wire(request.messages)
    own = {id(message) for message in anew}
    assert {id(m) for m in messages}.isdisjoint(map(id, again.messages))
    assert any(id(message) in own for message in again.messages)


def ruined(value: Any) -> None:
    """Changes everything in a message, in place."""
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], str):
            value[key] = "ruined"
        elif isinstance(value[key], dict | list):
            ruined(value[key])


@EVERY_FORMAT
def test_a_host_that_changes_a_request_changes_nothing_else(format: str) -> None:
    session, messages, request = edited_session(format)
    kept, expected = copy.deepcopy(messages), wire(request.messages)
    own = {id(message) for message in messages}
    for _ in range(3):
        for message in request.messages:
            if id(message) not in own:
                ruined(message)
        assert messages == kept
        request = session.prepare(messages)
        assert wire(request.messages) == expected


@EVERY_FORMAT
def test_a_host_that_changes_a_message_in_place_is_noticed(format: str) -> None:
    session, messages, request = edited_session(format)
    place = next(i for i, m in enumerate(messages) if m.get("role") == "user" and "Go on" in str(m))
    messages[place]["content"] = "Go another way."
    again = session.prepare(messages)
    assert "Go another way." in wire(again.messages)
    assert again.messages[-1] == request.messages[-1]
    fresh = session.prepare(copy.deepcopy(messages))
    assert wire(fresh.messages) == wire(again.messages)


# ---- plans ---------------------------------------------------------------------------------------


class OneByOne:
    """The default rule, asked before each step."""

    name = "clear_old_results"

    def __init__(self) -> None:
        self._rule = best_rule()()

    def reset(self, seed: int) -> None:
        self._rule.reset(seed)

    def __call__(self, observation: Observation) -> int:
        return self._rule(observation)


@EVERY_FORMAT
@pytest.mark.parametrize("budget", [WIDE, TokenBudget(9_000, 500, 0.8), TokenBudget(20_000)])
@examples(2)
@given(seed=seeds)
def test_a_plan_is_what_the_rule_would_do_step_by_step(
    format: str, budget: TokenBudget, seed: int
) -> None:
    planned = manager(format, best_rule()(), budget).session("a")
    stepwise = manager(format, OneByOne(), budget).session("a")
    for host in requests_of(history(format, seed, 25)):
        ours, theirs = planned.prepare(host), stepwise.prepare(host)
        assert wire(ours.messages) == wire(theirs.messages)
        assert plain(ours) == plain(theirs)
