"""Where reloaded copies and manager-made texts stand among the messages."""

from __future__ import annotations

from types import ModuleType

import pytest
from messages.conversations import ANTHROPIC, OPENAI, copy_of, note, show
from messages.message_lists import full, wire

from contextpilot.messages import anthropic, openai
from contextpilot.messages.validate import problems


def test_openai_copy_in_an_open_tool_loop_is_part_of_the_last_result() -> None:
    segments = openai.parse(OPENAI)
    result, done = segments[3], segments[4]
    shown = show(segments[:4])
    out = openai.render([*shown, copy_of(done), copy_of(segments[1], "m2")])
    assert out[:3] == OPENAI[:3]
    assert out[3] == {
        **OPENAI[3],
        "content": f"{result.text}\n\n[reloaded s5]\nDone.\n\n[reloaded s2]\nWrite notes.",
    }
    parts = [{**OPENAI[3], "content": [{"type": "text", "text": "x"}]}]
    out = openai.render([*full(openai.parse([*OPENAI[:3], *parts])), copy_of(done)])
    assert out[3]["content"][1] == {"type": "text", "text": "[reloaded s5]\nDone."}


def test_anthropic_copy_in_an_open_tool_loop_is_part_of_the_last_result() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    segments = anthropic.parse([*ANTHROPIC[:3], {"role": "user", "content": [image]}])
    out = anthropic.render([*show(segments[:3]), copy_of(segments[3])])
    assert out[2]["content"][0]["content"] == [
        {"type": "text", "text": "written"},
        {"type": "text", "text": "[reloaded s4]"},
        image,
    ]


def test_a_copy_goes_to_the_last_of_parallel_results() -> None:
    uses = [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in "ab"]
    answers = [{"type": "tool_result", "tool_use_id": i, "content": i} for i in "ab"]
    reminder = {"type": "text", "text": "mind"}
    segments = anthropic.parse(
        [
            {"role": "assistant", "content": uses},
            {"role": "user", "content": [*answers, reminder]},
        ]
    )
    out = anthropic.render([*full(segments), copy_of(segments[1])])
    first, second, last = out[1]["content"]
    assert (first, last) == (answers[0], reminder)
    assert [block["text"] for block in second["content"]] == ["b", "[reloaded s2]", "a"]


def test_copy_behind_a_user_message_is_an_exchange_before_it() -> None:
    segments = openai.parse(OPENAI)
    shown = show(segments, absent=["s3", "s4"])
    out = openai.render([*shown, copy_of(segments[3]), copy_of(segments[2], "m2")])
    assert [m["role"] for m in out[2:]] == ["assistant"] + ["assistant", "tool"] * 2 + ["user"]
    assert out[3]["tool_calls"][0]["function"] == {
        "name": "context_reload",
        "arguments": '{"id": "s4"}',
    }
    assert out[4]["tool_call_id"] == out[3]["tool_calls"][0]["id"] == "reload_m1"
    assert out[4]["content"] == segments[3].text
    assert out[6]["content"] == segments[2].text
    assert problems("openai", out) == ()
    blocks = anthropic.parse(ANTHROPIC)
    out = anthropic.render([*show(blocks, absent=["s2", "s3"]), copy_of(blocks[2])])
    assert problems("anthropic", out) == ()
    assert [m["role"] for m in out] == ["user", "assistant", "user"]
    assert [b["type"] for b in out[1]["content"]] == ["text", "tool_use"]
    assert [b["type"] for b in out[2]["content"]] == ["tool_result", "text"]
    assert out[2]["content"][0]["content"] == [{"type": "text", "text": "written"}]


@pytest.mark.parametrize("module", [openai, anthropic])
def test_a_copy_stays_where_it_was_when_the_conversation_goes_on(module: ModuleType) -> None:
    messages = OPENAI if module is openai else ANTHROPIC
    segments = module.parse([*messages, {"role": "assistant", "content": "Yes."}])
    turn, result = segments[-5:-3]
    for cut in (-1, -2, -3):  # behind the latest user message, a finished turn, a result
        shown = [*full(segments[:cut]), copy_of(turn), copy_of(result, "m2")]
        early = module.render(shown)
        late = module.render([*shown, *full(segments[cut:])])
        kept = early if late[len(early) - 1] == early[-1] else early[:-1]
        assert late[: len(kept)] == kept
        assert len(kept) >= len(early) - (module is anthropic)


def test_copy_behind_the_first_message_is_framed_text() -> None:
    for module, messages in ((openai, OPENAI[:2]), (anthropic, ANTHROPIC[:1])):
        segments = module.parse(messages)
        reloaded = [copy_of(segments[-1], f"m{n}") for n in (1, 2)]
        out = module.render([*full(segments), *reloaded])
        assert problems("openai" if module is openai else "anthropic", out) == ()
        assert all(m["role"] != "assistant" for m in out)
        text = wire(out)
        assert text.count("<context-data>") == 2
        assert f"reloaded {segments[-1].id}" in text


def test_nothing_comes_between_a_call_and_its_result() -> None:
    segments = openai.parse(OPENAI)
    shown = show(segments)
    out = openai.render([*shown[:3], note(), *shown[3:]])
    assert [m["role"] for m in out[2:6]] == ["assistant", "tool", "user", "assistant"]
    assert out[4]["content"] == "note"


def test_nothing_follows_a_pending_call() -> None:
    messages = [OPENAI[1], OPENAI[2]]
    out = openai.render([*full(openai.parse(messages)), note()])
    assert [m["role"] for m in out] == ["user", "user", "assistant"]
    dangling = [*messages, OPENAI[5]]  # a host's own fault is shown as it is
    out = openai.render([*full(openai.parse(dangling)), note()])
    assert out[:3] == dangling
