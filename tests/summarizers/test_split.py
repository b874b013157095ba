"""Splitting finds each kind of structure, and loses nothing."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.summarizers.split import LONGEST_PIECE, split_structure

LINES = [
    "# Heading",
    "第二章 结果",
    "A sentence about the harbour. Another one, by Dr. Smith of the U.S. Navy! A third?",
    "这是第一句。这是第二句；还有第三句！",
    "key: value",
    "价格：30元",
    "- an item",
    "3. third step",
    "2031-04-17 08:12:44 ERROR disk full",
    "[INFO] started",
    "    return value",
    "    12→def call():",
    "| a | b |",
    "| 1 | 2 |",
    "id,name,price",
    "1,chair,20",
    "2,table,99",
    '{"a": [1, 2]}',
    "{",
    '  "a": 1',
    "}",
    "[",
    "",
    "Ines: I would rather take the early ferry, if there is still a place.",
    "Tomas: There is, but you have to be at the gate before half past six.",
]
TEXTS = st.lists(
    st.sampled_from(LINES) | st.text(st.characters(exclude_categories=()), max_size=30)
).map("\n".join)


def _split(text: str) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in split_structure(text)]


@given(TEXTS.filter(lambda text: not re.search(r"```|~~~", text)))
def test_only_white_space_is_left_out(text: str) -> None:
    kept = "".join(piece.text for piece in split_structure(text))
    assert "".join(kept.split()) == "".join(text.split())


@given(TEXTS)
def test_no_piece_is_empty_or_too_long(text: str) -> None:
    for piece in split_structure(text):
        assert piece.text.strip()
        assert len(piece.text) <= LONGEST_PIECE or piece.kind in ("json", "table")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("# Heading", "heading"),
        ("2.1 Scope of the contract", "heading"),
        ("第三章 违约责任", "heading"),
        ("- an item", "item"),
        ("* an item", "item"),
        ("12. an item", "item"),
        ("Status: open", "field"),
        ("价格：30元", "field"),
        ("retries = 5", "field"),
        ("2031-04-17 08:12:44,917 INFO [main] started", "log"),
        ("Apr 17 08:12:44 host sshd[88]: accepted", "log"),
        ("nova-api.log 2031-04-17 08:12:44 INFO done", "log"),
        ("[ERROR] build failed", "log"),
        ("WARNING: low disk", "log"),
        ("    at app.Main.run(Main.java:12)", "log"),
        ("Caused by: java.io.IOException: closed", "log"),
        ("\treturn x", "code"),
        ("for (i = 0; i < n; i++) {", "code"),
        ("src/app/main.py", "code"),
        ("   12→import os", "code"),
        ('{"a": 1}', "json"),
        ("The meeting is at 10:30 in room 4.", "sentence"),
        ("Mind the gap.", "sentence"),
    ],
)
def test_kinds_of_single_lines(line: str, kind: str) -> None:
    assert [piece.kind for piece in split_structure(f"{line}\n")] == [kind]


def test_paragraphs_are_cut_into_sentences_in_both_languages() -> None:
    assert _split(
        "The dose is 2.5 mg, e.g. Dr. Smith said so. No. 5 is out! 价格是30元。不得退货；谢谢"
    ) == [
        ("sentence", "The dose is 2.5 mg, e.g. Dr. Smith said so."),
        ("sentence", "No. 5 is out!"),
        ("sentence", "价格是30元。"),
        ("sentence", "不得退货；"),
        ("sentence", "谢谢"),
    ]


def test_hard_wrapped_lines_are_one_paragraph_and_short_lines_are_not() -> None:
    wrapped = (
        "The ferry leaves the harbour at dawn and reaches the northern island\n"
        "before noon, when the tide is high."
    )
    assert _split(wrapped) == [("sentence", wrapped.replace("\n", " "))]
    assert len(_split("one thing\nanother thing")) == 2


def test_speakers_come_back_and_fields_do_not() -> None:
    dialogue = "\n".join(LINES[-2:] * 2)
    assert {kind for kind, _ in _split(dialogue)} == {"turn"}
    products = "Price: 30\nStock: 4\n\nPrice: 12\nStock: 9"
    assert {kind for kind, _ in _split(products)} == {"field"}


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |", "table"),
        ("id,name,price\n1,chair,20\n2,table,99", "table"),
        ("id\tname\tprice\n1\tchair\t20\n2\ttable\t99", "table"),
        ('{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}', "json"),
        ('{"a": 1}\n{"a": 2}\n{"a": 3}', "json"),
        ("[\n  1,\n  2\n]", "json"),
    ],
)
def test_blocks_are_whole_alone_and_between_text(block: str, kind: str) -> None:
    assert _split(block) == [(kind, block)]
    assert _split(f"Before.\n{block}\nAfter.") == [
        ("sentence", "Before."),
        (kind, block),
        ("sentence", "After."),
    ]


def test_fenced_text_is_code_and_fences_are_dropped() -> None:
    assert _split("See:\n```python\nkey: value\n\nMind the gap.\n```\nDone.") == [
        ("sentence", "See:"),
        ("code", "key: value"),
        ("code", "Mind the gap."),
        ("sentence", "Done."),
    ]


def test_fenced_json_is_json() -> None:
    assert _split('```json\n{"a": 1}\n```') == [("json", '{"a": 1}')]


@pytest.mark.parametrize("line", ["{", "[1,"])
def test_json_that_never_ends_is_not_searched_to_the_end_from_every_line(line: str) -> None:
    start = time.process_time()
    split_structure(f"{line}\n" * 20_000)
    assert time.process_time() - start < 10  # about 1; a search without a bound takes 30
