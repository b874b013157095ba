"""Folding call arguments: shorter, still JSON, nothing short is touched."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contextpilot.messages.openai import fold_arguments

VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6),
        st.integers(0, 300).map(lambda n: "é\n" * n),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@given(VALUES, st.booleans())
def test_a_fold_hides_long_leaves_only(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    folded = fold_arguments(text, "s7")
    assert len(folded) <= len(text)
    assert fold_arguments(folded, "s7") == folded
    expected = [
        f"[… {len(leaf)} chars hidden, id s7]" if isinstance(leaf, str) and len(leaf) > 80 else leaf
        for leaf in leaves(value)
    ]
    assert leaves(json.loads(folded)) == expected


def test_keys_and_short_leaves_stay() -> None:
    text = json.dumps({"path": "notes.md", "content": "pump " * 100, "n": [1, {"deep": "y" * 90}]})
    assert json.loads(fold_arguments(text, "s3")) == {
        "path": "notes.md",
        "content": "[… 500 chars hidden, id s3]",
        "n": [1, {"deep": "[… 90 chars hidden, id s3]"}],
    }


def test_the_threshold_is_the_callers() -> None:
    text = json.dumps({"a": "x" * 50})
    assert fold_arguments(text, "s1") == text
    assert json.loads(fold_arguments(text, "s1", 40)) == {"a": "[… 50 chars hidden, id s1]"}
    assert fold_arguments(text, "s1", 1) == fold_arguments(text, "s1", 40)


def test_no_marker_is_longer_than_what_it_hides() -> None:
    text = json.dumps({"a": "x" * 20, "b": "x" * 200})
    folded = {"a": "x" * 20, "b": "[… 200 chars hidden, id s1]"}
    assert json.loads(fold_arguments(text, "s1", 1)) == folded


def test_numbers_that_python_writes_longer_do_not_make_a_fold_grow() -> None:
    text = '{"n":[' + ",".join(["1e9"] * 20) + '],"s":"' + "x" * 81 + '"}'
    assert fold_arguments(text, "s1") == text


def test_what_is_not_json_stays() -> None:
    broken = '{"a": "' + "x" * 200
    assert fold_arguments(broken, "s1") == broken
    deep = "[" * 100_000
    assert fold_arguments(deep, "s1") == deep


def test_lone_surrogates_stay_escaped() -> None:
    folded = fold_arguments('{"a": "\\ud800", "b": "' + "x" * 200 + '"}', "s1")
    assert folded.encode()
    assert json.loads(folded)["a"] == "\ud800"
