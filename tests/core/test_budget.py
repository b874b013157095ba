"""Which limits are refused, and what the others come to."""

import pytest

from contextpilot.core.budget import UNLIMITED, TokenBudget
from contextpilot.errors import ConfigurationError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_context_tokens": 0}, r"`max_context_tokens` must be positive\. Received 0\."),
        ({"max_context_tokens": -5}, r"Received -5\."),
        (
            {"max_context_tokens": 100, "reserved_output_tokens": 100},
            r"below `max_context_tokens` \(100\)\. Received 100\.",
        ),
        ({"reserved_output_tokens": -1}, r"`reserved_output_tokens` .* Received -1\."),
        ({"compression_threshold": 0.0}, r"must lie in \(0, 1\]\. Received 0\.0\."),
        ({"compression_threshold": 1.01}, r"`compression_threshold` .* Received 1\.01\."),
        ({"compression_threshold": float("nan")}, r"Received nan\."),
        ({"summarize_max_tokens": 0}, r"`summarize_max_tokens` must be positive\. Received 0\."),
    ],
)
def test_impossible_limits_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        TokenBudget(**arguments)


def test_limits_at_their_edges_are_taken():
    budget = TokenBudget(1000, 999, 1.0, 1)
    assert (budget.input_limit, budget.threshold_tokens) == (1, 1)


def test_the_input_limit_leaves_room_for_the_answer():
    budget = TokenBudget(1000, 200, 0.75)
    assert (budget.input_limit, budget.threshold_tokens) == (800, 600)


def test_a_threshold_is_rounded_down():
    assert TokenBudget(11, 0, 0.5).threshold_tokens == 5


def test_no_limit_is_a_number_that_fits_the_columns():
    assert UNLIMITED < 2**31
    assert TokenBudget().input_limit == UNLIMITED
