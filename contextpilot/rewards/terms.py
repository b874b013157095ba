"""Reward terms: what one step of editing came to, as named numbers without weights.

Every term is linear in `StepFacts`, so the terms of an edit and of the request that it was followed
by add up. Costs are shares of the task's raw bill, so that tasks of any size weigh the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TERMS: Final = (
    "token_savings",
    "demand",
    "action_cost",
    "key_info",
    "reload",
    "rent",
    "budget",
    "invalid",
    "task",
    "thrash",
    "outcome",
    "half_kept",
    "reload_required",
    "summary_kept",
)
"""The names of all terms, in the order of `raw_terms` and of `RewardWeights.vector`."""

EDIT_COST: Final = 0.1
"""What deciding and making an edit costs, as a share of one request's work."""

THRASH_REQUESTS: Final = 3
"""A reload within so many requests of the edit that hid its original is thrashing."""


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What happened in one step: an edit, a request, or both where the K-th edit sends.

    Attributes:
        raw_total: the task's raw bill, in input-token equivalents.
        requests: the task's number of requests.
        masked: 1 where the action was forbidden and nothing was edited.
        edits: 1 where an edit other than keep was made, applied or rejected.
        calls: extra model calls: a summarizer's, and those that ask for an original.
        raw_price: what the request costs raw; for a refused one, it and all that follow.
        bill: what was billed for it, summaries and forced reloads included.
        miss_cost: what its silent misses cost to find and undo.
        refused: 1 where it was over the window.
        failed: 1 at the end of a task that failed for any other reason.
        forced_reloads: how often the agent had to ask for an original.
        thrashed: reloads, own or forced, of what was hidden at most `THRASH_REQUESTS` before.
        key_info: change of the potential of facts that would be missed.
        reload: change of the potential of facts that would be fetched.
        rent: change of the potential of the tokens that would still be sent.
        outcome: at the end `1 - (bill + cost of misses) / raw_total` of the whole episode; else 0.
        half_kept: 1 where a request had all key facts and less than half of raw's tokens.
        summaries_kept: 1 where a summary was made and nothing has been missed so far.
    """

    raw_total: float
    requests: int
    masked: int = 0
    edits: int = 0
    calls: int = 0
    raw_price: float = 0.0
    bill: float = 0.0
    miss_cost: float = 0.0
    refused: int = 0
    failed: int = 0
    forced_reloads: int = 0
    thrashed: int = 0
    key_info: float = 0.0
    reload: float = 0.0
    rent: float = 0.0
    outcome: float = 0.0
    half_kept: int = 0
    summaries_kept: int = 0


def raw_terms(facts: StepFacts) -> tuple[float, ...]:
    """Returns the terms of a step, unweighted, in the order of `TERMS`.

    `key_info`, `reload` and `rent` are shaping terms in the sense of Ng, Harada and Russell (1999),
    "Policy invariance under reward transformations": differences of a potential with discount 1
    that is 0 at the end, so that over an episode each sums to minus its first value.
    """
    return (
        (facts.raw_price - facts.bill) / facts.raw_total,
        -facts.miss_cost / facts.raw_total,
        -(EDIT_COST * facts.edits + facts.calls) / facts.requests,
        facts.key_info,
        facts.reload,
        facts.rent,
        -float(facts.refused),
        -float(facts.masked),
        -float(facts.failed),
        -float(facts.thrashed),
        facts.outcome,
        float(facts.half_kept),
        -float(facts.forced_reloads),
        float(facts.summaries_kept),
    )
