"""What texts are found by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.retrieval import text_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Price", ["the", "price"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("src/app/main.py", ["src/app/main.py", "src", "app", "main", "py"]),
        ("db-7", ["db-7", "db", "7"]),
        ("v1.20.3", ["v1.20.3", "v1", "20", "3"]),
        ("maxRetryCount", ["maxretrycount", "max", "retry", "count"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["init"]),
        ("paid.", ["paid"]),
        ("naïve Übung", ["naïve", "übung"]),
        ("价格表", ["价", "格", "表", "价格", "格表"]),
        ("价格：30元", ["价", "格", "价格", "30", "元"]),
        ("在db-7上", ["在", "db-7", "db", "7", "上"]),
        ("カナ", ["カ", "ナ", "カナ"]),
        ("한국어를", ["한", "국", "어", "를", "한국", "국어", "어를"]),
        ("", []),
        (" \n-_./", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert text_terms(text) == terms


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_gives_terms_without_white_space(text: str) -> None:
    assert all(term and not any(map(str.isspace, term)) for term in text_terms(text))


def test_a_long_token_gives_the_same_terms_as_a_short_one() -> None:
    word = "Abc_" * 30 + "end"
    assert text_terms(word) == [word.lower(), *["abc"] * 30, "end"]
