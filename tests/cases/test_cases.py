"""Failures that users of context editors reported: every case under every policy.

`CONTEXTPILOT_CASES` names the file. Each case is played with the policy that its strategy names,
on which every check must hold, and with the others, on which those hold that do not belong to the
strategy; where one does not apply, `not_applicable` says why.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from cases.case_checks import CHECKS
from cases.case_setup import Case, Played, own_policy, play
from messages.message_lists import wire
from messages.real_data import CASES, needs_cases

from contextpilot.policies.base import Policy
from contextpilot.policies.catalog import policy_spec

OWN = "the case's own"
POLICIES = (
    OWN, "raw", "truncation", "fixed_summary", "rolling_summary", "clear_old_results",
    "threshold_fold", "goal_selection", "reuse_predictor", "random", "failing",
)  # fmt: skip

_OF_THE_STRATEGY = {
    "max_messages": "how many messages stay is the strategy's own",
    "max_summaries": "whether summaries are merged is the strategy's own",
    "edited_after_steps": "what a forced edit changes is the strategy's own",
    "keeps_text": "another policy may leave this text to the archive",
    "max_prefix_breaks": "the batch is the strategy's own",
}


class Failing:
    """A policy that has nothing to offer."""

    name = "failing"

    def reset(self, seed: int) -> None:
        raise RuntimeError("no")

    def __call__(self, observation: Any) -> int:
        raise RuntimeError("no")


def all_cases() -> list[Case]:
    if not CASES.is_file():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines() if line]


def policy_of(name: str, case: Case) -> Policy:
    if name == OWN:
        return own_policy(case["config"])
    return Failing() if name == "failing" else policy_spec(name)()


def not_applicable(name: str, played: Played, check: dict[str, Any]) -> str:
    """Returns why a check says nothing of a policy; "" where it does."""
    config, kind = played.case["config"], check["check"]
    if name == OWN:
        return ""
    if kind in _OF_THE_STRATEGY:
        return _OF_THE_STRATEGY[kind]
    if kind == "log_has" and check["reason"] in ("inflated", "empty_summary", "summarizer_error"):
        return "" if played.summarizer.calls else "this policy asked for no summary"
    if kind == "log_has" and check["reason"] == "inflated":
        return "another policy's summary may be of more, and save tokens"
    if kind == "noop" and config.get("force"):
        return "edits are forced, and this policy has some that save tokens"
    if kind in ("edited", "smaller") and config.get("target_tokens") is None:
        return "without a target a policy may keep"
    if kind == "keeps_verbatim" and name == "random" and config.get("target_tokens") is None:
        return "unpinned messages may go at random"
    return ""


@needs_cases
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case["id"])
def test_reported_case(case: Case, name: str) -> None:
    before = copy.deepcopy(case["messages"])
    if name != OWN and case["config"]["strategy"] == "explicit":
        pytest.skip("the edit is named, and not a policy's")
    played = play(case, policy_of(name, case))
    assert wire(case["messages"]) == wire(before), "the host's history was changed"
    wrong = {}
    for check in case["expected"]["checks"]:
        assert check["check"] in CHECKS, f"unknown check {check['check']!r}"
        if not not_applicable(name, played, check):
            found = CHECKS[check["check"]](played, check)
            if found:
                wrong[check["check"]] = found
    assert wrong == {}, played.first.messages
