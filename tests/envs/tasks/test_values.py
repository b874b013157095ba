import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot_envs.tasks.demands import find_statements
from contextpilot_envs.tasks.values import call_values, fact_kind, quoted_values


def call(arguments: Any) -> Segment:
    parts = (Part("call", json.dumps(arguments, ensure_ascii=False), "run"),)
    return Segment(
        "s1", Role.ASSISTANT, Kind.TURN, parts, Source.ASSISTANT, Trust.AGENT, exchange="x1"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"id": "AB12", "n": 41, "big": 412, "flag": True, "none": None}, ["AB12", "412"]),
        ({"status": "completed", "name": "Li", "empty": "  "}, []),
        ({"x": "y" * 201}, []),
        ({"deep": [{"zip": "78750"}]}, ["78750"]),
        ({"price": 12.5}, ["12.5"]),
        ({"cmd": "cat src/a_b.py"}, ["cat src/a_b.py", "src/a_b.py"]),
        ({"js": "f({session_id: 4711, cmd: 'x'})"}, ["f({session_id: 4711, cmd: 'x'})", "4711"]),
    ],
)
def test_values_of_call_arguments(arguments: Any, expected: list[str]) -> None:
    assert list(call_values(call(arguments))) == expected


def test_long_leaves_give_their_distinctive_lines() -> None:
    patch = "*** Update\n-    old_line = compute(1)\n+    new_line = compute(2)\n     short\n" * 5
    assert list(dict.fromkeys(call_values(call({"input": patch})))) == [
        "old_line = compute(1)",
        "new_line = compute(2)",
    ]


def test_scripts_that_escape_line_breaks_give_lines_too() -> None:
    script = 'apply("*** Begin\\n-remove_this_line(now)\\n+x");' + " " * 200 + "y"
    assert "remove_this_line(now)" in set(call_values(call(script)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /etc/hosts.d/a and README", ["/etc/hosts.d/a", "README"]),
        ("parseConfig failed in 1234 of 99 runs.", ["parseConfig", "1234"]),
        ("the flight HAT069, seat SEATMAP", ["HAT069", "SEATMAP"]),
        ("user_id: 55801 std::PathBuf", ["55801", "PathBuf"]),
        ("nothing to quote here at all", []),
    ],
)
def test_values_quoted_in_texts(text: str, expected: list[str]) -> None:
    segment = Segment(
        "s1", Role.ASSISTANT, Kind.TURN, (Part("text", text),), Source.ASSISTANT, Trust.AGENT
    )
    assert list(quoted_values(segment)) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [("4711", "number"), ("1,200.5", "number"), ("a/b", "path"), ("a_b", "identifier"),
     ("two words", "line")],
)  # fmt: skip
def test_fact_kinds(value: str, kind: str) -> None:
    assert fact_kind(value) == kind


texts = st.lists(st.text(alphabet="ab1_ /→é漢\n", max_size=30), min_size=1, max_size=6)


@given(texts, st.lists(st.text(alphabet="ab1_/→é漢", min_size=1, max_size=8), max_size=6))
def test_statements_are_found_where_a_scan_finds_them_as_words(
    contents: list[str], values: list[str]
) -> None:
    segments = [
        Segment(f"s{n}", Role.TOOL, Kind.RESULT, (Part("text", c),), Source.TOOL, Trust.UNTRUSTED)
        for n, c in enumerate(contents)
    ]
    places = find_statements(segments, values)
    word = "abcdefghijklmnopqrstuvwxyz0123456789_"
    for value in values:
        stated = {n for n, content in enumerate(contents) if value in content}
        whole = {
            n for n in stated
            if any(
                (at == 0 or contents[n][at - 1] not in word or value[0] not in word)
                and (contents[n][at + len(value) :][:1] or " ") not in word
                for at in range(len(contents[n]))
                if contents[n].startswith(value, at)
            )
        }  # fmt: skip
        assert whole <= set(places[value]) <= stated
