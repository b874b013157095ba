from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextpilot.evaluation.canvas import wrapped
from contextpilot.evaluation.labels import Pixels, place

FRAME = np.array([0.0, 0.0, 1200.0, 700.0])
NO_BOXES, NO_WEIGHTS = np.zeros((0, 4)), np.zeros(0)


def boxes(centres: Pixels, sizes: Pixels) -> Pixels:
    return np.hstack((centres - sizes / 2, centres + sizes / 2))


def overlaps(first: Pixels, second: Pixels) -> bool:
    return bool((first[:2] < second[2:]).all() and (second[:2] < first[2:]).all())


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_labels_never_cover_each_other_and_stay_inside(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    anchors = rng.uniform((300, 250), (600, 400), size=(count, 2))
    sizes = np.stack((rng.uniform(60, 160, size=count), np.full(count, 20.0)), axis=1)
    placed = boxes(place(anchors, sizes, FRAME, NO_BOXES, NO_WEIGHTS), sizes)
    for index, box in enumerate(placed):
        assert (box[:2] >= FRAME[:2]).all()
        assert (box[2:] <= FRAME[2:]).all()
        assert not any(overlaps(box, other) for other in placed[:index])


def test_a_lone_label_is_beside_its_point() -> None:
    anchor, size = np.array([[500.0, 300.0]]), np.array([[80.0, 20.0]])
    centre = place(anchor, size, FRAME, NO_BOXES, NO_WEIGHTS)[0]
    assert 20 / 2 <= np.linalg.norm(centre - anchor[0]) <= 80 / 2 + 20


def test_obstacles_are_avoided_by_weight() -> None:
    anchor, size = np.array([[500.0, 300.0]]), np.array([[80.0, 20.0]])
    free = place(anchor, size, FRAME, NO_BOXES, NO_WEIGHTS)[0]
    wall = np.array([[free[0] - 5, free[1] - 5, free[0] + 5, free[1] + 5]])
    moved = place(anchor, size, FRAME, wall, np.array([100.0]))[0]
    assert not overlaps(boxes(moved[None], size)[0], wall[0])
    assert place(anchor, size, FRAME, wall, np.array([0.0]))[0].tolist() == free.tolist()


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("raw", 30, "raw"),
        ("rule[keep=10,trigger=0.5]", 14, "rule[keep=10,\ntrigger=0.5]"),
        ("two words", 5, "two\nwords"),
        ("x" * 7, 3, "xxx\nxxx\nx"),
    ],
)
def test_wrapped(name: str, width: int, expected: str) -> None:
    assert wrapped(name, width) == expected
