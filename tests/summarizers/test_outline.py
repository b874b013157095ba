"""JSON and tables, taken apart into rows with their values as they were written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.summarizers.outline import outlined_pieces

SCALARS = st.none() | st.booleans() | st.integers() | st.text("abc xyz", min_size=1, max_size=300)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text("abcdef", min_size=1, max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
).filter(lambda value: isinstance(value, (dict, list)))


def _outlined(text: str) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in outlined_pieces(text)]


def test_records_with_the_same_keys_give_them_once() -> None:
    text = (
        '[{"sku": "A-1", "price": 12.50, "tags": ["new"]}, {"sku": "B", "price": 1e3, "tags": []}]'
    )
    assert _outlined(text) == [
        ("shape", "[2]{sku, price, tags[1]}"),
        ("schema", "[2] (sku, price, tags)"),
        ("row", "A-1, 12.50, [new]"),
        ("row", "B, 1e3, []"),
    ]


def test_an_object_gives_a_field_for_each_value_and_a_row_for_each_record() -> None:
    text = '{"id": "Z9", "paid": true, "user": {"name": "Ines", "age": 41}, "note": null}'
    assert _outlined(text) == [
        ("shape", "{id, paid, user{name, age}, note}"),
        ("field", "id: Z9"),
        ("field", "paid: true"),
        ("row", "user: {name: Ines, age: 41}"),
        ("field", "note: null"),
    ]


def test_an_object_of_alike_records_is_a_table_by_key() -> None:
    text = '{"p1": {"x": 1, "y": 2}, "p2": {"x": 3, "y": 4}}'
    assert _outlined(text)[1:] == [
        ("schema", "[2] (x, y)"),
        ("row", "p1: 1, 2"),
        ("row", "p2: 3, 4"),
    ]


def test_large_records_are_taken_apart_with_their_path() -> None:
    text = json.dumps({"order": {"id": "A-1", "items": [{"sku": f"k{i}" * 9} for i in range(30)]}})
    pieces = _outlined(text)
    assert ("field", "order.id: A-1") in pieces
    assert ("schema", "order.items[30] (sku)") in pieces
    assert ("row", "k29" * 9) in pieces


def test_a_long_list_of_numbers_is_cut_into_rows() -> None:
    rows = [text for kind, text in _outlined(json.dumps({"n": list(range(400))})) if kind == "row"]
    assert rows[0].startswith("n: 0, 1, 2")
    assert rows[-1].endswith(", 399")
    assert max(map(len, rows)) < 260


def test_a_long_text_inside_json_has_its_own_structure() -> None:
    log = "\n".join(f"2031-04-17 08:12:{i:02} ERROR disk {i} full" for i in range(20))
    pieces = _outlined(json.dumps({"stdout": log, "code": 1}))
    assert ("schema", "stdout:") in pieces
    assert ("log", "2031-04-17 08:12:07 ERROR disk 7 full") in pieces
    assert ("field", "code: 1") in pieces


def test_json_lines_are_one_array() -> None:
    assert _outlined('{"a": 1}\n{"a": 2}')[1:] == [
        ("schema", "[2] (a)"),
        ("row", "1"),
        ("row", "2"),
    ]


@pytest.mark.parametrize(
    "table", ["| id | name |\n|----|:----|\n| 1 | chair |", "id,name,n\n1,chair,2\n2,table,3"]
)
def test_a_table_gives_its_first_line_as_the_schema(table: str) -> None:
    pieces = _outlined(table)
    assert [kind for kind, _ in pieces] == ["schema"] + ["row"] * (len(pieces) - 1)
    assert pieces[0][1] == table.splitlines()[0]
    assert pieces[-1][1] == table.splitlines()[-1]


@given(VALUES)
def test_every_value_can_be_read_in_some_piece(value: object) -> None:
    shown = "\n".join(text for _, text in _outlined(json.dumps(value)))

    def check(item: object) -> None:
        if isinstance(item, dict):
            for inner in item.values():
                check(inner)
        elif isinstance(item, list):
            for inner in item:
                check(inner)
        elif isinstance(item, str):
            assert all(word in shown for word in item.split())
        else:
            assert json.dumps(item) in shown

    check(value)


def test_json_nested_deeper_than_the_stack_is_kept_as_it_is() -> None:
    text = "[" * 900 + "1" + "]" * 900
    assert "1" in "".join(piece.text for piece in outlined_pieces(text))


def test_half_a_pair_that_json_escapes_can_still_be_encoded() -> None:
    text = json.dumps({"note": "half \ud83d of a pair", "face": "\ud83d\ude00"})
    assert text.isascii()
    said = "\n".join(piece.text for piece in outlined_pieces(text))
    assert said.encode().decode() == said
    assert "half \ufffd of a pair" in said
    assert "\U0001f600" in said
