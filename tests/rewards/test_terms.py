"""Each term alone, from facts whose numbers are made up."""

from dataclasses import fields, replace

import numpy as np
import pytest

from contextpilot.rewards.terms import TERMS, StepFacts, raw_terms
from contextpilot.rewards.weights import RewardWeights

NOTHING = StepFacts(raw_total=1000.0, requests=20)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"raw_price": 100.0, "bill": 40.0}, {"token_savings": 0.06}),  # (100 - 40) / 1000
        ({"raw_price": 100.0, "bill": 350.0}, {"token_savings": -0.25}),
        ({"miss_cost": 500.0}, {"demand": -0.5}),
        ({"edits": 1}, {"action_cost": -0.005}),  # a tenth of one request of 20
        ({"edits": 1, "calls": 2}, {"action_cost": -0.105}),
        ({"key_info": -0.25}, {"key_info": -0.25}),
        ({"reload": 0.125}, {"reload": 0.125}),
        ({"refused": 1}, {"budget": -1.0}),
        ({"masked": 1}, {"invalid": -1.0}),
        ({"failed": 1}, {"task": -1.0}),
        ({"thrashed": 2}, {"thrash": -2.0}),
        ({"outcome": 0.4}, {"outcome": 0.4}),
        ({"half_kept": 1}, {"half_kept": 1.0}),
        ({"forced_reloads": 2}, {"reload_required": -2.0}),
        ({"summaries_kept": 1}, {"summary_kept": 1.0}),
    ],
)
def test_a_fact_is_paid_by_its_term_alone(facts, expected):
    found = dict(zip(TERMS, raw_terms(replace(NOTHING, **facts)), strict=True))
    assert {name: value for name, value in found.items() if value} == pytest.approx(expected)


def test_every_fact_is_paid_by_some_term():
    for field in fields(StepFacts)[2:]:
        changed = replace(NOTHING, **{field.name: 1})
        assert raw_terms(changed) != raw_terms(NOTHING), field.name


def test_the_terms_of_an_edit_and_its_request_add_up():
    edit = StepFacts(1000.0, 20, masked=1, edits=1, calls=1, thrashed=1, key_info=0.5)
    request = StepFacts(1000.0, 20, raw_price=90.0, bill=70.0, miss_cost=30.0, refused=1, calls=1)
    both = StepFacts(
        1000.0, 20, masked=1, edits=1, calls=2, raw_price=90.0, bill=70.0, miss_cost=30.0,
        refused=1, thrashed=1, key_info=0.5,
    )  # fmt: skip
    added = np.add(raw_terms(edit), raw_terms(request))
    np.testing.assert_allclose(added, raw_terms(both), atol=1e-15)


def test_terms_and_weights_have_the_same_names_in_the_same_order():
    assert tuple(field.name for field in fields(RewardWeights)) == TERMS
    assert len(raw_terms(NOTHING)) == len(TERMS)
