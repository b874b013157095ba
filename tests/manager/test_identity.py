"""Messages keep their numbers whatever the host does to its list."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from contextpilot.errors import ConfigurationError, MessageFormatError
from contextpilot.manager.identity import IdentifiedMessages, MessageIdentity, MessageMatch

Message = dict[str, Any]


def user(text: str, **fields: Any) -> Message:
    return {"role": "user", "content": text, **fields}


def said(*texts: str) -> list[Message]:
    return [user(text) for text in texts]


def numbers(found: IdentifiedMessages) -> list[int]:
    """The numbers of a list in which nothing is rendered."""
    assert not any(match.rendered for match in found.matches)
    return [number for match in found.matches for number in match.numbers]


def shown(found: IdentifiedMessages) -> list[tuple[int, ...]]:
    return [match.numbers for match in found.matches]


# ---- one test for each thing that hosts do ---------------------------------------------------


def test_growth_gives_new_numbers_to_what_is_new_only() -> None:
    identity, messages = MessageIdentity(), said("a", "b")
    assert identity.identify(messages).new == (0, 1)
    messages += said("c")
    found = identity.identify(messages)
    assert (numbers(found), found.new) == ([0, 1, 2], (2,))


def test_a_retry_has_nothing_new() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b"))
    found = identity.identify(said("a", "b"))
    assert (numbers(found), found.new, len(identity)) == ([0, 1], (), 2)


def test_a_branch_and_the_way_back() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b", "c"))
    assert numbers(identity.identify(said("a", "x"))) == [0, 3]
    assert numbers(identity.identify(said("a", "b", "c"))) == [0, 1, 2]
    found = identity.identify(said("a", "x", "y"))
    assert (numbers(found), found.new) == ([0, 3, 4], (2,))


def test_an_edit_in_the_middle_leaves_the_others_alone() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b", "c", "d"))
    assert numbers(identity.identify(said("a", "B", "c", "d"))) == [0, 4, 2, 3]


def test_a_trimmed_front() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b", "c", "d"))
    assert numbers(identity.identify(said("c", "d", "e"))) == [2, 3, 4]


def test_equal_messages_are_several() -> None:
    identity = MessageIdentity()
    assert numbers(identity.identify(said("ok", "ok", "b", "ok"))) == [0, 1, 2, 3]
    assert numbers(identity.identify(said("x", "ok", "ok", "ok", "ok"))) == [4, 0, 1, 3, 5]


def test_a_change_in_place_is_noticed_at_any_depth() -> None:
    identity = MessageIdentity()
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [user("a"), {"role": "assistant", "content": None, "tool_calls": [call]}, user("b")]
    assert numbers(identity.identify(messages)) == [0, 1, 2]
    call["function"]["arguments"] = '{"x": 1}'  # type: ignore[index]
    assert numbers(identity.identify(messages)) == [0, 3, 2]


def test_the_host_may_do_as_it_likes_with_what_it_passed() -> None:
    identity, messages = MessageIdentity(), said("a", "b")
    before = copy.deepcopy(messages)
    identity.identify(messages)
    assert messages == before
    messages.clear()
    assert numbers(identity.identify(before)) == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        user("a", cache_control={"type": "ephemeral"}),
        user("a", id="msg_1", created_at=3, usage={"input_tokens": 4}, name=None),
        user([{"type": "text", "text": "a"}]),  # type: ignore[arg-type]
        user([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]),  # type: ignore[arg-type]
        {"content": "a", "role": "user"},
    ],
    ids=["marker", "reply fields", "a block", "a block with a marker", "key order"],
)
def test_what_is_volatile_makes_no_other_message(other: Message) -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b"))
    assert numbers(identity.identify([other, user("b"), user("c")])) == [0, 1, 2]


def call_of(arguments: Message) -> Message:
    content = [{"type": "tool_use", "id": "t1", "name": "f", "input": arguments}]
    return {"role": "assistant", "content": content}


def result_of(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (call_of({"id": 1}), call_of({"id": 2})),
        (call_of({"cache_control": 1}), call_of({})),
        (call_of({"content": "a"}), call_of({"content": [{"type": "text", "text": "a"}]})),
        (result_of("c1"), result_of("c2")),
        (user("a"), {"role": "assistant", "content": "a"}),
    ],
    ids=["an argument named id", "one named cache_control", "content", "the call", "the role"],
)
def test_what_is_content_makes_another_message(one: Message, other: Message) -> None:
    identity = MessageIdentity()
    assert numbers(identity.identify([one])) == [0]
    assert numbers(identity.identify([other])) == [1]


# ---- the session's own renderings ------------------------------------------------------------


def test_a_request_fed_back_changes_nothing() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b", "c", "d", "e"))
    request = said("a", "[b is folded]", "[c and d in short]", "[reloaded b]", "e")
    identity.register_rendering(request, [(0,), (1,), (2, 3), (), (4,)])
    found = identity.identify([*request, user("f")])
    assert shown(found) == [(0,), (1,), (2, 3), (), (4,), (5,)]
    assert [match.rendered for match in found.matches] == [False, True, True, True, False, False]
    assert found.new == (5,)
    assert numbers(identity.identify(said("a", "b", "c", "d", "e"))) == [0, 1, 2, 3, 4]


def test_an_older_request_is_recognised_too_and_behind_a_cut() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b", "c"))
    identity.register_rendering(said("a", "[b]", "c"), [(0,), (1,), (2,)])
    identity.register_rendering(said("a", "b", "[c]"), [(0,), (1,), (2,)])
    assert shown(identity.identify(said("[b]", "c", "d"))) == [(1,), (2,), (3,)]


def test_of_equal_messages_the_dropped_one_stays_dropped() -> None:
    identity = MessageIdentity()
    identity.identify(said("ok", "b", "ok"))
    identity.register_rendering(said("b", "ok"), [(1,), (2,)])
    assert numbers(identity.identify(said("b", "ok", "c"))) == [1, 2, 3]
    identity.register_rendering(said("[ok]", "ok"), [(0,), (2,)])
    assert shown(identity.identify(said("x", "[ok]", "ok"))) == [(4,), (0,), (2,)]


def test_a_whole_request_is_more_likely_than_half_a_history() -> None:
    identity = MessageIdentity()
    identity.identify(said("ok", "ok"))
    identity.register_rendering(said("ok"), [(1,)])
    assert numbers(identity.identify(said("ok", "b"))) == [1, 2]


def test_a_copy_of_a_rendering_in_a_full_history_is_the_users_own() -> None:
    identity = MessageIdentity()
    identity.identify(said("a", "b"))
    identity.register_rendering(said("[a and b]"), [(0, 1)])
    found = identity.identify(said("a", "b", "[a and b]"))
    assert (numbers(found), found.new) == ([0, 1, 2], (2,))


def test_registering_twice_counts_once() -> None:
    identity = MessageIdentity()
    identity.identify(said("a"))
    for _ in range(2):
        identity.register_rendering(said("[a]"), [(0,)])
    assert identity.state_dict()["renderings"].popitem()[1] == [[0]]


def test_a_rendering_must_stand_for_known_messages() -> None:
    identity = MessageIdentity()
    identity.identify(said("a"))
    with pytest.raises(ConfigurationError, match=r"never identified\. Received 1; 1 are known"):
        identity.register_rendering(said("[b]"), [(1,)])
    with pytest.raises(ConfigurationError, match="Received 2 for 1 messages"):
        identity.register_rendering(said("[a]"), [(0,), (0,)])


# ---- refusals and state ----------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["text", user(b"bytes"), user(object())])  # type: ignore[arg-type]
def test_what_is_not_plain_json_is_named_and_nothing_is_remembered(bad: Any) -> None:
    identity = MessageIdentity()
    with pytest.raises(MessageFormatError, match=r"messages\[1\]: .*model_dump"):
        identity.identify([user("a"), bad])
    assert (len(identity), numbers(identity.identify(said("b")))) == (0, [0])


def test_a_message_that_holds_itself_is_refused() -> None:
    message = user("a")
    message["content"] = [message]
    with pytest.raises(MessageFormatError, match="not plain JSON"):
        MessageIdentity().identify([message])


def test_the_state_is_json_without_content() -> None:
    identity = MessageIdentity()
    identity.identify(said("a secret", "b"))
    identity.register_rendering(said("[a secret]"), [(0, 1)])
    text = json.dumps(identity.state_dict())
    assert "secret" not in text
    restored = MessageIdentity()
    restored.load_state_dict(json.loads(text))
    assert restored.state_dict() == identity.state_dict()
    assert shown(restored.identify(said("[a secret]", "c"))) == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "Received version None"),
        ({"version": 99}, "Received version 99"),
        ({"version": 1, "keys": ["k"]}, "damaged"),
        ({"version": 1, "keys": [1], "renderings": {}}, "damaged"),
        ({"version": 1, "keys": ["k"], "renderings": {"r": [[1]]}}, "damaged"),
        ({"version": 1, "keys": ["k"], "renderings": {"r": [0]}}, "damaged"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state: Message, message: str) -> None:
    identity = MessageIdentity()
    identity.identify(said("a"))
    with pytest.raises(ConfigurationError, match=message):
        identity.load_state_dict(state)
    assert numbers(identity.identify(said("a", "b"))) == [0, 1]


# ---- random schedules against a slow model ---------------------------------------------------


class SlowModel:
    """Every list from scratch: the k-th message of a content is the k-th ever seen of it."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], int] = {}

    def identify(self, messages: list[Message]) -> IdentifiedMessages:
        matches, new, before = [], [], list[str]()
        for i, message in enumerate(messages):
            content = message["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            name = (text, before.count(text))
            before.append(text)
            if name not in self.known:
                self.known[name] = len(self.known)
                new.append(i)
            matches.append(MessageMatch((self.known[name],)))
        return IdentifiedMessages(tuple(matches), tuple(new))


OPERATIONS = ("grow", "retry", "branch", "edit", "trim", "mutate", "mark", "return", "restart")


def changed(data: st.DataObject, operation: str, messages: list[Message]) -> list[Message]:
    """The host's next list."""
    texts = st.sampled_from("abcd") if data.draw(st.booleans()) else st.text(max_size=3)
    at = data.draw(st.integers(0, max(0, len(messages) - 1)))
    if operation == "grow":
        return [*messages, *said(*data.draw(st.lists(texts, max_size=4)))]
    if operation == "branch":
        return [*messages[:at], *said(data.draw(texts))]
    if operation == "edit":
        return [*messages[:at], user(data.draw(texts)), *messages[at + 1 :]]
    if operation == "trim":
        return messages[at:]
    if messages and operation == "mutate":
        messages[at]["content"] = data.draw(texts)  # the very object that was passed before
    if messages and operation == "mark" and isinstance(text := messages[at]["content"], str):
        block = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        messages[at] = {"role": "user", "content": [block], "timestamp": at}
    return messages


@examples(80)
@given(st.data(), st.lists(st.sampled_from(OPERATIONS), min_size=20, max_size=40))
def test_any_schedule_is_as_from_scratch(data: st.DataObject, operations: list[str]) -> None:
    identity, model = MessageIdentity(), SlowModel()
    messages, past = said("a", "b", "a"), [said("c")]
    for operation in operations:
        if operation == "return":
            messages = copy.deepcopy(data.draw(st.sampled_from(past)))
        elif operation == "restart":
            state = json.loads(json.dumps(identity.state_dict()))
            identity = MessageIdentity()
            identity.load_state_dict(state)
        else:
            messages = changed(data, operation, messages)
        past.append(copy.deepcopy(messages))
        assert identity.identify(messages) == model.identify(messages)


@st.composite
def requests(draw: st.DrawFn, length: int, serial: int) -> list[tuple[str, tuple[int, ...]]]:
    """Texts and what they stand for, of a history whose n-th message says `n`."""
    request, at = [], 0
    while at < length:
        kind = draw(st.sampled_from(["as it came", "fold", "summary", "drop", "copy"]))
        run = draw(st.integers(1, 4)) if kind == "summary" else 1
        shows = tuple(range(at, min(length, at + run)))
        if kind == "as it came":
            request.append((str(at), shows))
        elif kind == "copy":
            request += [(f"reloaded {serial} {at}", ()), (str(at), shows)]
        elif kind != "drop":
            # some renderings are the same in every request, as most of them are
            request.append((f"{kind} {shows} {draw(st.sampled_from(['', serial]))}", shows))
        at += run
    return request


@examples(60)
@given(st.data())
def test_requests_fed_back_are_what_they_were_rendered_from(data: st.DataObject) -> None:
    identity, length = MessageIdentity(), 0
    history: list[tuple[str, tuple[int, ...]]] = []
    kept: list[list[tuple[str, tuple[int, ...]]]] = []
    for serial in range(8):
        grown = data.draw(st.integers(0, 4))
        added = [(str(n), (n,)) for n in range(length, length + grown)]
        length += grown
        history += added
        fed = [*data.draw(st.sampled_from(kept)), *added] if kept else history
        if data.draw(st.booleans()):
            identity.identify(said(*(text for text, _ in history)))
        for entries in (fed, fed[data.draw(st.integers(0, 3)) :], history):
            found = identity.identify(said(*(text for text, _ in entries)))
            assert shown(found) == [shows for _, shows in entries]
            assert [m.rendered for m in found.matches] == [
                not text.isdigit() for text, _ in entries
            ]
        assert len(identity) == length
        kept.append(data.draw(requests(length, serial)))
        identity.register_rendering(
            said(*(text for text, _ in kept[-1])), [shows for _, shows in kept[-1]]
        )


@examples(60)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_a_request_with_equal_messages_fed_back_at_once(
    texts: list[str], data: st.DataObject
) -> None:
    identity = MessageIdentity()
    identity.identify(said(*texts))
    forms = [data.draw(st.sampled_from(["full", "fold", "drop"])) for _ in texts]
    kept = [(n, form) for n, form in enumerate(forms) if form != "drop"]
    request = said(*(texts[n] if form == "full" else f"folded {n}" for n, form in kept))
    identity.register_rendering(request, [(n,) for n, _ in kept])
    found = identity.identify([*copy.deepcopy(request), user("next")])
    assert shown(found) == [(n,) for n, _ in kept] + [(len(texts),)]
