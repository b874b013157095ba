"""Stubs say what is hidden and how to get it back, in few words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.edits.stub import bare_stub, outline_stub
from contextpilot.tokenizers import EstimateTokenizer


def _segment(text: str, name: str = "bash", kind: Kind = Kind.RESULT) -> Segment:
    return Segment(
        "s17", Role.TOOL, kind, (Part("text", text),), Source.TOOL, Trust.UNTRUSTED, name=name
    )


def _outline(text: str, **limits: int) -> list[str]:
    return outline_stub(_segment(text), 812, **limits).splitlines()[1:]


def test_the_bare_line_names_id_tool_size_and_remedy() -> None:
    assert bare_stub(_segment("long"), 812) == "[folded s17: bash result, 812 tokens; reload s17]"


@pytest.mark.parametrize("kind", Kind)
def test_the_bare_line_is_about_fifteen_tokens_for_every_kind(kind: Kind) -> None:
    stub = bare_stub(_segment("long", kind=kind), 1234)
    assert 12 <= EstimateTokenizer().count(stub) <= 18
    assert kind.name.lower() in stub


def test_a_segment_without_a_name_is_named_by_its_kind() -> None:
    assert bare_stub(_segment("long", name=""), 9) == "[folded s17: result, 9 tokens; reload s17]"


@given(st.text(max_size=200))
def test_no_name_can_break_out_of_the_line(name: str) -> None:
    stub = bare_stub(_segment("long", name=name), 9)
    assert len(stub.splitlines()) == 1
    assert stub.count("[") == stub.count("]") == 1
    assert stub.endswith("; reload s17]")
    assert len(stub) < 90


def test_lines_show_their_beginning_and_their_end() -> None:
    text = "\n\n".join(f"line {i} " + "x" * 10 for i in range(40))
    assert [line[:7] for line in _outline(text)] == [
        "line 0 ",
        "line 1 ",
        "line 2 ",
        "... 35 ",
        "line 38",
        "line 39",
    ]
    assert [line[:7] for line in _outline(text, head_lines=1, tail_lines=0)] == [
        "line 0 ",
        "... 39 ",
    ]


def test_long_lines_share_the_room_and_keep_both_ends() -> None:
    text = "\n".join(["short", "begin" + "x" * 900 + "end", "y" * 900])
    shown = _outline(text, max_chars=100)
    assert shown[0] == "short"
    assert shown[1].startswith("begin")
    assert shown[1].endswith("end")
    assert sum(map(len, shown)) + len(shown) - 1 <= 100


def test_json_shows_its_schema_and_sample_rows() -> None:
    rows = [{"sku": f"K-{i}", "price": i} for i in range(50)]
    assert _outline(json.dumps(rows)) == [
        "[50]{sku, price}",
        "[50] (sku, price)",
        "K-0, 0",
        "K-1, 1",
        "K-2, 2",
        "... and 47 more",
    ]


def test_a_table_shows_its_header_and_sample_rows() -> None:
    table = "id,name,price\n" + "\n".join(f"{i},item {i},{i}.25" for i in range(60))
    assert _outline(table) == [
        "id,name,price",
        "0,item 0,0.25",
        "1,item 1,1.25",
        "2,item 2,2.25",
        "... and 57 more",
    ]


def test_what_only_begins_like_json_is_shown_by_lines() -> None:
    text = "{ not json }\n" + "and more of it\n" * 40
    assert _outline(text)[0] == "{ not json }"
    assert "... 36 more ..." in _outline(text)


@pytest.mark.parametrize("text", ["", "ok", "three\nshort\nlines", "  \n \n", "z" * 60])
def test_a_short_original_gets_the_bare_line(text: str) -> None:
    segment = _segment(text)
    assert outline_stub(segment, 5) == bare_stub(segment, 5)


TEXTS = st.one_of(
    st.text(max_size=600),
    st.lists(st.text("ab{}[],:| \t\n", max_size=60), max_size=30).map("\n".join),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers()), max_size=60).map(json.dumps),
)


@given(TEXTS, st.integers(0, 5), st.integers(0, 5), st.integers(0, 300))
def test_it_is_bounded_stable_and_never_longer_than_the_original(
    text: str, head_lines: int, tail_lines: int, max_chars: int
) -> None:
    segment = _segment(text)
    bare = bare_stub(segment, 812)
    stub = outline_stub(segment, 812, head_lines, tail_lines, max_chars)
    assert stub == outline_stub(segment, 812, head_lines, tail_lines, max_chars)
    assert stub.startswith(bare)
    assert len(stub) <= len(bare) + 1 + max_chars
    assert stub == bare or len(stub) < len(text)
