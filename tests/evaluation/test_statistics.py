from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.statistics import (
    Interval,
    cluster_counts,
    equivalence,
    interval_of,
    iqm,
    iqm_interval,
    mean_interval,
    paired_difference,
    resampled_means,
)


def names(count: int, each: int = 1) -> list[str]:
    return [f"c{index}" for index in range(count) for _ in range(each)]


class TestMeanInterval:
    def test_two_clusters_by_hand(self) -> None:
        # The resampled means are 0, 1/2, 1 with chances 1/4, 1/2, 1/4.
        assert mean_interval([0, 1], names(2)) == Interval(0.5, 0.0, 1.0, 2)
        assert mean_interval([0, 1], names(2), level=0.4) == Interval(0.5, 0.5, 0.5, 2)

    def test_three_clusters_by_hand(self) -> None:
        # Means 0, 1, 2, 3 with chances 8, 12, 6, 1 of 27: 3 is beyond 5% and within 2.5%.
        values = [0, 0, 3]
        assert mean_interval(values, names(3), level=0.95) == Interval(1.0, 0.0, 3.0, 3)
        assert mean_interval(values, names(3), level=0.90) == Interval(1.0, 0.0, 2.0, 3)

    def test_a_cluster_counts_by_its_values(self) -> None:
        # AA, AB, BB: 0, 1, 3.
        interval = mean_interval([0, 0, 3], ["a", "a", "b"], level=0.4)
        assert interval == Interval(1.0, 1.0, 1.0, 2)

    def test_draws_have_the_bootstrap_distribution(self) -> None:
        draws = resampled_means(np.array([[0.0], [0.0], [3.0]]), names(3), 0, 20_000)[:, 0]
        shares = [np.mean(draws == mean) for mean in (0, 1, 2, 3)]
        assert shares == pytest.approx([8 / 27, 12 / 27, 6 / 27, 1 / 27], abs=0.01)

    def test_without_two_clusters_there_is_no_interval(self) -> None:
        interval = mean_interval([1, 2, 3], ["a"] * 3)
        assert interval.mean == 2
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
        assert not interval.clear_of_zero

    def test_same_seed_same_interval(self) -> None:
        values = np.random.default_rng(0).normal(size=60)
        first = mean_interval(values, names(30, 2), seed=3)
        cluster_counts.cache_clear()
        assert mean_interval(values, names(30, 2), seed=3) == first
        assert mean_interval(values, names(30, 2), seed=4) != first

    def test_order_of_rows_does_not_matter(self) -> None:
        rng = np.random.default_rng(0)
        values, clusters = rng.integers(0, 9, size=40), np.array(names(20, 2))
        order = rng.permutation(40)
        assert mean_interval(values[order], list(clusters[order])) == mean_interval(
            values, list(clusters)
        )

    @pytest.mark.parametrize(
        ("values", "clusters", "message"),
        [
            ([], [], "non-empty"),
            ([1.0], ["a", "b"], "same length"),
            ([[1.0]], ["a"], "shape"),
            ([1.0, math.nan], ["a", "b"], "Received nan at 1"),
        ],
    )
    def test_refuses(self, values: list[float], clusters: list[str], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            mean_interval(values, clusters)

    def test_covers_the_truth_because_it_resamples_clusters(self) -> None:
        rng, trials = np.random.default_rng(1), 400
        clustered = alone = 0
        for trial in range(trials):
            values = (rng.normal(size=(40, 1)) + rng.normal(size=(40, 6))).ravel()
            inside = mean_interval(values, names(40, 6))
            clustered += inside.low <= 0 <= inside.high
            if trial < 100:
                naive = mean_interval(values, names(240))
                alone += naive.low <= 0 <= naive.high
        assert 0.91 < clustered / trials < 0.98
        # As if the six episodes of a task were independent: far from 95%.
        assert alone / 100 < 0.8

    @given(st.lists(st.floats(-10, 10), min_size=2, max_size=30))
    def test_contains_its_mean_and_stays_in_range(self, values: list[float]) -> None:
        interval = mean_interval(values, names(len(values)), resamples=200)
        slack = 1e-9
        assert min(values) - slack <= interval.low <= interval.high <= max(values) + slack


class TestPairedDifference:
    def test_pairs_by_key_and_ignores_the_rest(self) -> None:
        a = {("t1", 0): 1.0, ("t2", 0): 3.0, ("t9", 0): 99.0}
        b = {("t2", 0): 1.0, ("t1", 0): 0.0, ("t8", 0): -99.0}
        clusters = {key: key[0] for key in (*a, *b)}
        assert paired_difference(a, b, clusters) == Interval(1.5, 1.0, 2.0, 2)

    def test_shared_noise_cancels(self) -> None:
        rng = np.random.default_rng(0)
        b = {index: float(value) for index, value in enumerate(rng.normal(0, 10, size=50))}
        a = {index: value + 0.1 for index, value in b.items()}
        clusters = {index: str(index) for index in b}
        difference = paired_difference(a, b, clusters)
        assert difference.clear_of_zero
        assert difference.low == pytest.approx(0.1)
        assert mean_interval(list(a.values()), list(clusters.values())).low < -0.1

    def test_nothing_in_common(self) -> None:
        with pytest.raises(ConfigurationError, match=r"nothing to pair\. Received 1 and 1"):
            paired_difference({1: 0.0}, {2: 0.0}, {1: "a", 2: "b"})


FIFTY = dict(enumerate(names(50)))


class TestEquivalence:
    def pair(self, shift: float, noise: float) -> tuple[dict[int, float], dict[int, float]]:
        rng = np.random.default_rng(5)
        b = dict(enumerate(rng.normal(size=50).tolist()))
        deltas = rng.normal(0, noise, size=50)
        a = {k: b[k] + shift + float(deltas[k] - deltas.mean()) for k in b}
        return a, b

    def test_close_and_precise_is_equivalent(self) -> None:
        a, b = self.pair(0.01, 0.05)
        outcome = equivalence(a, b, FIFTY, margin=0.05)
        assert outcome.equivalent
        assert outcome.p_value < 0.05
        assert outcome.difference.mean == pytest.approx(0.01)

    def test_not_significant_is_not_equivalent(self) -> None:
        a, b = self.pair(0.0, 1.0)
        outcome = equivalence(a, b, FIFTY, margin=0.05)
        assert not outcome.difference.clear_of_zero
        assert not outcome.equivalent
        assert outcome.p_value > 0.05

    @pytest.mark.parametrize("shift", [-0.2, 0.2])
    def test_beyond_the_margin_on_either_side(self, shift: float) -> None:
        a, b = self.pair(shift, 0.05)
        outcome = equivalence(a, b, FIFTY, margin=0.05)
        assert not outcome.equivalent
        assert outcome.p_value > 0.99

    def test_uses_the_90_percent_interval(self) -> None:
        a, b = self.pair(0.0, 0.3)
        outcome = equivalence(a, b, FIFTY, margin=0.05)
        assert outcome.difference == paired_difference(a, b, FIFTY, level=0.9)

    def test_one_cluster_proves_nothing(self) -> None:
        outcome = equivalence({1: 0.0}, {1: 0.0}, {1: "a"}, margin=0.1)
        assert not outcome.equivalent
        assert math.isnan(outcome.p_value)

    @pytest.mark.parametrize("margin", [0.0, -1.0, math.nan])
    def test_refuses_a_margin(self, margin: float) -> None:
        with pytest.raises(ConfigurationError, match="`margin` must be above 0"):
            equivalence({1: 0.0}, {1: 0.0}, {1: "a"}, margin=margin)


class TestIqm:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([7], 7.0),
            ([8, 1, 3, 2, 5, 4, 7, 6], 4.5),
            # 2 and 4 lie inside by 0.15 of the weight each, 3 by 0.2.
            ([1, 2, 3, 4, 100], 3.0),
            # 1 and 9 count by a quarter of their third each.
            ([1, 3, 9], (1 * 0.25 + 3 * 1 + 9 * 0.25) / 1.5),
        ],
    )
    def test_by_hand(self, values: list[float], expected: float) -> None:
        assert iqm(values) == pytest.approx(expected)

    def test_outliers_do_not_matter(self) -> None:
        values = np.linspace(0, 1, 40)
        spoiled = values.copy()
        spoiled[-5:] = -1e9 + spoiled[-5:]
        spoiled[:5] = 1e9
        assert 0.2 < iqm(spoiled) < 0.8

    def test_interval_resamples_like_the_slow_way(self) -> None:
        rng = np.random.default_rng(2)
        values, clusters = rng.normal(size=12), np.array(names(6, 2))
        counts = cluster_counts(6, 300, 0)
        slow = [
            iqm(np.concatenate([np.tile(values[2 * c : 2 * c + 2], int(n[c])) for c in range(6)]))
            for n in counts
        ]
        fast = iqm_interval(values, list(clusters), resamples=300)
        expected = interval_of(iqm(values), np.array(slow), 6)
        assert (fast.low, fast.high) == pytest.approx((expected.low, expected.high))


class TestIntervalOf:
    def test_infinite_draws_make_an_end_unbounded(self) -> None:
        draws = np.concatenate((np.linspace(1, 2, 900), np.full(100, np.inf)))
        interval = interval_of(1.5, draws, 5)
        assert math.isfinite(interval.low)
        assert interval.high == math.inf

    def test_missing_draws(self) -> None:
        draws = np.concatenate((np.ones(90), np.full(10, np.nan)))
        assert math.isnan(interval_of(1.0, draws, 5).low)
        assert interval_of(1.0, draws, 5, share=0.9).low == 1.0

    @pytest.mark.parametrize(
        ("low", "high", "clear"), [(0.1, 0.2, True), (-0.2, -0.1, True), (0.0, 0.2, False)]
    )
    def test_clear_of_zero(self, low: float, high: float, clear: bool) -> None:
        assert Interval(0.1, low, high, 9).clear_of_zero is clear


def test_columns_share_their_resamples() -> None:
    column = np.random.default_rng(0).normal(size=30)
    draws = resampled_means(np.stack((column, column + 1), axis=1), names(30))
    assert np.ptp(draws[:, 1] - draws[:, 0]) < 1e-12


def test_an_empty_column_is_missing() -> None:
    draws = resampled_means(np.array([[1.0, np.nan], [np.nan, 5.0]]), ["a", "b"])
    assert np.isnan(draws[:, 0]).any()
    assert set(draws[:, 0][~np.isnan(draws[:, 0])]) == {1.0}


def test_counts_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        cluster_counts(3, 10, 0)[0, 0] = 5
