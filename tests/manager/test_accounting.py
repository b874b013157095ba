"""Every token of a request is in one category, and all of them are in some."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import engines, examples, played, seeds

from contextpilot.core.segment import Form, Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.edits.made import copy_segment
from contextpilot.errors import ConfigurationError, MessageFormatError
from contextpilot.manager.accounting import Category, account, category_of, shown_tokens
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.tokenizers import IMAGE_TOKENS, MESSAGE_TOKENS, EstimateTokenizer
from contextpilot_envs.engine import Engine

TOKENIZER = EstimateTokenizer()


def segment(
    role: Role = Role.USER,
    kind: Kind = Kind.TEXT,
    source: Source = Source.USER,
    text: str = "Some words, and a few more.",
    pinned: bool = False,
) -> Segment:
    return text_segment("s1", role, kind, text, source=source, trust=Trust.USER, pinned=pinned)


RESULT = segment(Role.TOOL, Kind.RESULT, Source.TOOL)
DOCUMENT = segment(Role.USER, Kind.DOCUMENT, Source.RETRIEVED)


@pytest.mark.parametrize(
    ("one", "category"),
    [
        (segment(Role.SYSTEM, source=Source.SYSTEM, pinned=True), Category.SYSTEM),
        (segment(pinned=True), Category.PINNED),
        (segment(Role.TOOL, Kind.RESULT, Source.TOOL, pinned=True), Category.PINNED),
        (segment(kind=Kind.SUMMARY, source=Source.MANAGER), Category.SUMMARIES),
        (RESULT, Category.TOOL_RESULTS),
        (copy_segment(RESULT, "m1"), Category.TOOL_RESULTS),
        (DOCUMENT, Category.RETRIEVED),
        (copy_segment(DOCUMENT, "m1"), Category.RETRIEVED),
        (segment(kind=Kind.DOCUMENT), Category.RETRIEVED),
        (segment(), Category.HISTORY),
        (segment(Role.ASSISTANT, Kind.TURN, Source.ASSISTANT), Category.HISTORY),
        (segment(kind=Kind.NOTE, source=Source.MANAGER), Category.HISTORY),
    ],
)
def test_what_a_segment_counts_as(one: Segment, category: Category) -> None:
    assert category_of(one) == category
    found = account([RenderedSegment(one, Form.FULL)], TOKENIZER).by_category()
    tokens = TOKENIZER.count(one.text) + MESSAGE_TOKENS
    assert {name: count for name, count in found.items() if count} == {category.value: tokens}


def test_everything_together() -> None:
    tools = [{"name": "f", "description": "Fährt."}, {"name": "g", "parameters": {"a": [1, 2]}}]
    shown = [
        RenderedSegment(RESULT, Form.STUB, "[folded s1]"),
        RenderedSegment(segment(), Form.FULL),
    ]
    found = account(shown, TOKENIZER, system="Be brief.", tools=tools, reserved_output_tokens=100)
    texts = ['{"name":"f","description":"Fährt."}', '{"name":"g","parameters":{"a":[1,2]}}']
    assert found.by_category() == {
        "system": TOKENIZER.count("Be brief.") + MESSAGE_TOKENS,
        "tools": sum(TOKENIZER.count(text) for text in texts),
        "pinned": 0,
        "history": TOKENIZER.count(segment().text) + MESSAGE_TOKENS,
        "tool_results": TOKENIZER.count("[folded s1]") + MESSAGE_TOKENS,
        "summaries": 0,
        "retrieved": 0,
        "reserved_output": 100,
    }
    assert found.total_tokens == found.input_tokens + 100 == sum(found.by_category().values())
    assert json.loads(json.dumps(found.by_category())) == found.by_category()


def test_an_empty_request_has_no_tokens() -> None:
    assert account([], TOKENIZER).total_tokens == 0


def test_an_image_costs_its_price_until_it_is_folded() -> None:
    image = Segment(
        "s1", Role.USER, Kind.IMAGE, (Part("image", block={"data": "A" * 9000}),),
        Source.USER, Trust.USER,
    )  # fmt: skip
    full = shown_tokens(TOKENIZER, RenderedSegment(image, Form.FULL))
    stub = shown_tokens(TOKENIZER, RenderedSegment(image, Form.STUB, "[image]"))
    assert (full, stub) == (
        IMAGE_TOKENS + MESSAGE_TOKENS,
        TOKENIZER.count("[image]") + MESSAGE_TOKENS,
    )


@examples(20)
@given(engines(), seeds, st.sampled_from([0, 700]))
def test_the_account_adds_up_to_the_context(engine: Engine, seed: int, reserve: int) -> None:
    """Whatever was edited: what a context says of itself is what the account says."""
    for _ in played(engine, seed, steps=40):
        context = engine.episodes[0].context
        shown, expected = [], 0
        for index in context.visible():
            entry, form = context.entries[index], context.form(index)
            one = RenderedSegment(entry.segment, form, context.text(index))
            if entry.kind == Kind.COPY and context.entries[entry.origin].kind == Kind.TURN:
                continue  # costs what its original costs, though it shows the calls as text
            assert shown_tokens(TOKENIZER, one) == entry.tokens(int(form))
            shown.append(one)
            expected += entry.tokens(int(form))
        found = account(shown, TOKENIZER, reserved_output_tokens=reserve)
        assert (found.input_tokens, found.reserved_output) == (expected, reserve)
        if len(shown) == sum(1 for _ in context.visible()):
            assert found.input_tokens == context.total


@examples(50)
@given(st.lists(st.text(max_size=30), max_size=8), st.floats(0.3, 3.0))
def test_a_scale_rounds_each_entry_by_itself(texts: list[str], scale: float) -> None:
    shown = [RenderedSegment(segment(text=text), Form.FULL) for text in texts]
    found = account(shown, TOKENIZER, token_scale=scale)
    each = [account([one], TOKENIZER, token_scale=scale).history for one in shown]
    assert found.total_tokens == found.history == sum(each)


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match=r"Received -1 and 1\.0"):
        account([], TOKENIZER, reserved_output_tokens=-1)
    with pytest.raises(ConfigurationError, match="Received 0 and nan"):
        account([], TOKENIZER, token_scale=float("nan"))
    with pytest.raises(MessageFormatError, match=r"tools\[1\] is not plain JSON"):
        account([], TOKENIZER, tools=[{}, {"type": object}])
    with pytest.raises(MessageFormatError, match="has no text for its form"):
        account([RenderedSegment(RESULT, Form.STUB)], TOKENIZER)
