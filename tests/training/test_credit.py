"""Credit estimators on episodes small enough to pay by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.training.config import CreditConfig
from contextpilot.training.credit import (
    GROUP_CREDITS,
    VALUE_CREDITS,
    deviation_scaled,
    groups,
    hindsight_in_group,
    hindsight_with_values,
    step_in_group,
    step_with_values,
    terminal_in_group,
    terminal_with_values,
)
from contextpilot.training.rollout import Assignment, Trajectories


def played(
    *episodes: tuple[list[float], list[int]],
    values: list[float] | None = None,
    finals: list[float] | None = None,
    group: list[int] | None = None,
    hindsight: list[float] | None = None,
) -> Trajectories:
    """Returns trajectories of (rewards, requests) per episode."""
    rewards = np.array([r for rewards, _ in episodes for r in rewards])
    n = len(rewards)
    return Trajectories(
        observations={},
        actions=np.zeros(n, np.int64),
        log_probs=np.zeros(n, np.float32),
        values=np.array(values or [0.0] * n, np.float32),
        rewards=rewards,
        terms=np.zeros((n, 0)),
        requests=np.array([t for _, requests in episodes for t in requests], np.int64),
        starts=np.cumsum([0, *(len(rewards) for rewards, _ in episodes)]),
        final_values=np.array(finals or [0.0] * len(episodes)),
        assignments=tuple(
            Assignment("t", 0, g) for g in (group or [0] * len(episodes))
        ),
        metrics=({},) * len(episodes),
        hindsight=None if hindsight is None else np.array(hindsight),
    )  # fmt: skip


PLAIN = CreditConfig(gae_lambda=1.0, worth_limit=None)

TWO = (([0.0, 1.0, 2.0], [0, 0, 1]), ([3.0, 0.0, 5.0], [0, 1, 1]))
"""Two members: the first edits before request 0, the second before request 1."""


def test_requests_end_where_the_next_one_begins_and_with_the_episode():
    assert played(*TWO).ends_request.tolist() == [False, True, True, True, False, True]


def test_step_credit_does_not_leak_from_one_episode_into_the_next():
    advantages, targets = step_with_values(played(*TWO), PLAIN)
    assert advantages.tolist() == [3.0, 3.0, 2.0, 8.0, 5.0, 5.0]
    assert targets.tolist() == advantages.tolist()  # values are 0 here


def test_step_credit_bootstraps_what_a_time_limit_cut_off():
    advantages, _ = step_with_values(played(*TWO, finals=[10.0, 0.0]), PLAIN)
    assert advantages.tolist() == [13.0, 13.0, 12.0, 8.0, 5.0, 5.0]


def test_terminal_credit_pays_every_step_the_return():
    values = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    advantages, targets = terminal_with_values(played(*TWO, values=values), PLAIN)
    assert targets.tolist() == [3.0, 3.0, 3.0, 8.0, 8.0, 8.0]
    assert advantages.tolist() == [2.0, 2.0, 2.0, 6.0, 6.0, 6.0]


def test_hindsight_credit_is_the_edit_s_own_worth_minus_the_value():
    worth = [0.5, 0.0, -0.25, 0.0, 1.0, 0.0]
    advantages, targets = hindsight_with_values(
        played(*TWO, values=[0.25] * 6, hindsight=worth), PLAIN
    )
    assert targets.tolist() == worth
    assert advantages.tolist() == [0.25, -0.25, -0.5, -0.25, 0.75, -0.25]


def test_an_edit_that_tipped_the_scale_counts_for_no_more_than_the_limit():
    worth = [2.0, 0.0, -0.25, 0.0, -3.0, 0.0]
    _, targets = hindsight_with_values(played(*TWO, hindsight=worth), CreditConfig())
    assert targets.tolist() == [0.3, 0.0, -0.25, 0.0, -0.3, 0.0]


def test_hindsight_credit_needs_an_environment_that_re_bills():
    with pytest.raises(ConfigurationError, match="hindsight=True"):
        hindsight_with_values(played(*TWO), PLAIN)


def test_group_step_credit_by_hand():
    # Return to go at the requests' first steps: member 0: 3, 2; member 1: 8, 5. Leave one out of
    # two: 3 - 8, 2 - 5; 8 - 3, 5 - 2. Nothing was paid earlier in the same request.
    assert step_in_group(played(*TWO), PLAIN).tolist() == [-5.0, -5.0, -3.0, 5.0, 3.0, 3.0]


def test_what_was_paid_earlier_in_a_request_is_not_a_later_step_s_doing():
    # Return to go: 3 and then 2, since the 1 is paid by then; its mean is 2.5. Member 1: 2.
    found = step_in_group(played(([1.0, 2.0], [0, 0]), ([2.0], [0])), PLAIN)
    assert found.tolist() == [1.0, 0.0, -0.5]


def test_lambdas_weigh_what_is_far_off_in_both_algorithms():
    # Within 0.5, across 0: [0, 1, 2] in requests [0, 0, 1] -> 0 + 0.5 * 1, 1, 2; the other
    # member's [3, 0, 5] in [0, 1, 1] -> 3, 0 + 0.5 * 5, 5.
    credit = CreditConfig(gae_lambda=0.0, within_lambda=0.5)
    advantages, _ = step_with_values(played(*TWO), credit)
    assert advantages.tolist() == [0.5, 1.0, 2.0, 3.0, 2.5, 5.0]
    # Means at request 0: 0.75 and 3; at request 1: 2 and 3.75.
    found = step_in_group(played(*TWO), credit)
    assert found.tolist() == [-2.5, -2.0, -1.75, 2.25, 0.5, 3.0]


def test_an_ended_member_counts_nothing_from_then_on():
    # Member 1 ends after request 0: at request 1 its return to go is 0, the baseline of member 0.
    found = step_in_group(played(([1.0, 4.0], [0, 1]), ([2.0], [0])), PLAIN)
    assert found.tolist() == [5.0 - 2.0, 4.0 - 0.0, 2.0 - 5.0]


def test_group_advantages_sum_to_zero_per_group_and_request():
    rng = np.random.default_rng(0)
    episodes, group = [], []
    for g in range(3):
        for _ in range(4):
            requests = np.repeat(np.arange(5), rng.integers(1, 4, 5))
            rewards = rng.normal(size=len(requests))
            episodes.append((rewards.tolist(), requests.tolist()))
            group.append(g)
    trajectories = played(*episodes, group=group)
    advantages = step_in_group(trajectories, PLAIN)
    for members in groups(trajectories):
        for request in range(5):
            means = [
                advantages[s][trajectories.requests[s] == request].mean() for s in members
            ]  # fmt: skip
            assert sum(means) == pytest.approx(0.0, abs=1e-9)


def test_group_terminal_credit_by_hand():
    assert terminal_in_group(played(*TWO), PLAIN).tolist() == [-5.0] * 3 + [5.0] * 3


def test_groups_are_apart():
    alone = terminal_in_group(played(*TWO), PLAIN)
    together = terminal_in_group(played(*TWO, *TWO, group=[0, 0, 1, 1]), PLAIN)
    assert together.tolist() == alone.tolist() * 2


def test_group_hindsight_credit_by_hand():
    # Request 0: member 0 has worths 0.5, 0 (mean 0.25), member 1 has 0; request 1: 0.5; 1, 0 (0.5).
    # Baselines are the other member's means: request 0: 0 and 0.25; request 1: 0.5 and 0.5.
    found = hindsight_in_group(played(*TWO, hindsight=[0.5, 0.0, 0.5, 0.0, 1.0, 0.0]), PLAIN)
    assert found.tolist() == [0.5, 0.0, 0.0, -0.25, 0.5, -0.5]


def test_deviation_scaling_acts_within_each_group():
    trajectories = played(*TWO, *TWO, group=[0, 0, 1, 1])
    advantages = terminal_in_group(trajectories, PLAIN)
    advantages[6:] *= 100
    scaled = deviation_scaled(trajectories, advantages)
    assert scaled[:6] == pytest.approx(scaled[6:], rel=1e-4)
    assert abs(scaled[0]) == pytest.approx(1.0, rel=1e-4)


def test_both_algorithms_have_every_estimator():
    assert set(VALUE_CREDITS) == set(GROUP_CREDITS) == {"terminal", "step", "hindsight"}
