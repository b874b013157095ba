"""Advantages against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.training.advantages import (
    explained_variance,
    leave_one_out,
    request_gae,
    returns_to_go,
)

numbers = st.floats(-5, 5, allow_nan=False, width=32)


def test_gae_counts_requests_and_not_edits():
    # Two requests of two steps. Deltas: 0 + 1 - 2 = -1; 1 + 3 - 1 = 3; 0 + 2 - 3 = -1;
    # 4 + 0 - 2 = 2. Backwards with lambda 0.5 at the end of a request, 1 within:
    # A3 = 2; A2 = -1 + 1 * 2 = 1; A1 = 3 + 0.5 * 1 = 3.5; A0 = -1 + 1 * 3.5 = 2.5.
    found = request_gae(
        np.array([0.0, 1.0, 0.0, 4.0]),
        np.array([2.0, 1.0, 3.0, 2.0]),
        0.0,
        np.array([False, True, False, True]),
        0.5,
    )
    assert found.tolist() == [2.5, 3.5, 1.0, 2.0]


def test_a_time_limit_bootstraps_and_an_end_does_not():
    rewards, values, ends = np.array([1.0, 1.0]), np.array([0.0, 5.0]), np.array([True, True])
    ended = request_gae(rewards, values, 0.0, ends, 1.0)
    cut = request_gae(rewards, values, 10.0, ends, 1.0)
    assert ended.tolist() == [2.0, -4.0]  # 1 + 1 - 0; 1 - 5
    assert cut.tolist() == [12.0, 6.0]  # the same with the 10 that were still to come


@given(st.lists(st.tuples(numbers, numbers, st.booleans()), min_size=1, max_size=12), numbers)
def test_gae_with_lambda_1_is_monte_carlo_minus_value(steps, final):
    rewards, values, ends = (np.array(column) for column in zip(*steps, strict=True))
    found = request_gae(rewards.astype(float), values.astype(float), final, ends, 1.0)
    assert found == pytest.approx(returns_to_go(rewards.astype(float), final) - values, abs=1e-6)


def test_gae_with_lambda_0_is_the_td_error():
    found = request_gae(
        np.array([1.0, 2.0]), np.array([3.0, 4.0]), 6.0, np.array([True, True]), 0.0
    )
    assert found.tolist() == [2.0, 4.0]  # 1 + 4 - 3; 2 + 6 - 4


def test_leave_one_out_by_hand():
    # Others' means of 1, 4, 10: 7, 5.5, 2.5.
    assert leave_one_out(np.array([1.0, 4.0, 10.0])).tolist() == [-6.0, -1.5, 7.5]


@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=2, max_size=8))
def test_leave_one_out_sums_to_zero(table):
    assert leave_one_out(np.array(table)).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-5)


def test_leave_one_out_ignores_a_member_s_own_number():
    one, other = leave_one_out(np.array([1.0, 2.0, 3.0])), leave_one_out(np.array([9.0, 2.0, 3.0]))
    assert other[0] - one[0] == 8.0  # only its own return moved; its baseline did not


def test_explained_variance():
    targets = np.array([0.0, 1.0, 2.0, 3.0])
    assert explained_variance(targets, targets) == 1.0
    assert explained_variance(np.zeros(4), targets) == 0.0
    assert np.isnan(explained_variance(np.zeros(2), np.ones(2)))
