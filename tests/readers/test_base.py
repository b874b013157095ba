from __future__ import annotations

import pytest

from contextpilot.readers.base import MISSING, joined, question, says_missing, states


@pytest.mark.parametrize(
    ("answer", "value", "stated"),
    [
        ("The contract value was 11,535 euros.", "11,535 euros", True),
        ("it is  11,535\n Euros", "11,535 euros", True),
        ("１１，５３５ euros", "11,535 euros", True),  # full width
        ("it was 11,536 euros", "11,535 euros", False),
        ("合同价值为11,535欧元。", "11,535欧元", True),
        ("", "x", False),
    ],
)
def test_key_points_are_found_whatever_their_case_and_width(
    answer: str, value: str, stated: bool
) -> None:
    assert states(answer, value) == stated


def test_missing_is_told_from_an_answer() -> None:
    assert says_missing(f"{MISSING}.")
    assert says_missing("missing")
    assert not says_missing("It is 12.")


@pytest.mark.parametrize("language", ["en", "zh", "xx"])
def test_questions_hold_query_and_the_way_out(language: str) -> None:
    asked = question("contract value", language)
    assert "contract value" in asked
    assert MISSING in asked


def test_neighbours_of_one_role_are_joined_and_inputs_left_alone() -> None:
    said = [{"role": role, "content": text} for role, text in zip("uuaau", "12345", strict=True)]
    before = [dict(message) for message in said]
    assert [(m["role"], m["content"]) for m in joined(said)] == [
        ("u", "1\n\n2"), ("a", "3\n\n4"), ("u", "5"),
    ]  # fmt: skip
    assert said == before
