"""Segments as JSON: exact, or refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.archives import segment_from_json, segment_to_json
from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.errors import ArchiveError

STRINGS = st.text(st.characters(exclude_categories=()), max_size=8)
BLOCKS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)
PARTS = st.builds(
    Part,
    st.sampled_from(["text", "reasoning", "call", "image", "opaque"]),
    STRINGS,
    STRINGS,
    STRINGS,
    BLOCKS,
)
SEGMENTS = st.builds(
    Segment,
    STRINGS,
    st.sampled_from(Role),
    st.sampled_from(Kind),
    st.lists(PARTS, max_size=3).map(tuple),
    st.sampled_from(Source),
    st.sampled_from(Trust),
    st.booleans(),
    STRINGS,
    STRINGS,
    STRINGS,
    st.booleans(),
    st.lists(STRINGS, max_size=3).map(tuple),
    st.tuples(st.integers(), st.integers()),
    st.dictionaries(STRINGS, STRINGS, max_size=2),
)


def _segment(block: Any = None, **changes: Any) -> Segment:
    parts = (Part("opaque", block=block),)
    return Segment("s1", Role.TOOL, Kind.RESULT, parts, Source.TOOL, Trust.UNTRUSTED, **changes)


@given(SEGMENTS)
def test_round_trip(segment: Segment) -> None:
    stored = segment_to_json(segment).encode("utf-8", "surrogatepass")
    back = segment_from_json(stored.decode("utf-8", "surrogatepass"))
    assert back == segment
    assert repr(back) == repr(segment)  # True is not 1, and 1 is not 1.0
    assert back.text == segment.text


def test_two_lone_surrogates_stay_two_characters() -> None:
    segment = text_segment(
        "s1", Role.USER, Kind.TEXT, "\ud83d\ude00", source=Source.USER, trust=Trust.USER
    )
    assert len(segment_from_json(segment_to_json(segment)).text) == 2


def test_it_is_one_json_object_with_names_for_enumerations() -> None:
    record = json.loads(segment_to_json(_segment({"a": [1, None]})))
    assert record["role"] == "TOOL"
    assert record["parts"] == [["opaque", "", "", "", {"a": [1, None]}]]


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ({"data": b"\x89PNG"}, "bytes"),
        ([(1, 2)], "tuple"),
        ({"when": {1, 2}}, "set"),
        (object(), "object"),
    ],
)
def test_what_json_cannot_hold_is_refused(block: Any, named: str) -> None:
    with pytest.raises(ArchiveError, match=f"'s1'.*Received a {named}"):
        segment_to_json(_segment(block))


def test_keys_that_json_would_turn_into_strings_are_refused() -> None:
    with pytest.raises(ArchiveError, match="Received 7"):
        segment_to_json(_segment({"by_index": {7: "x"}}))
    with pytest.raises(ArchiveError, match=r"metadata.*bytes"):
        segment_to_json(_segment(metadata={"raw": b"x"}))


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text.replace("TOOL", "X")])
def test_a_damaged_record_names_the_remedy(damage: Any) -> None:
    with pytest.raises(ArchiveError, match=r"damaged.*backup"):
        segment_from_json(damage(segment_to_json(_segment())))


@pytest.mark.parametrize("text", ["[]", "null", "{}", "3"])
def test_other_json_is_not_a_segment(text: str) -> None:
    with pytest.raises(ArchiveError, match="damaged"):
        segment_from_json(text)


def test_a_newer_format_is_refused() -> None:
    newer = segment_to_json(_segment()).replace('"version":1', '"version":2')
    with pytest.raises(ArchiveError, match="version 2"):
        segment_from_json(newer)
