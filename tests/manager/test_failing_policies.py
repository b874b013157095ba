"""A policy that fails costs records; the request goes out valid and in budget all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from manager.histories import history, manager, requests_of

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Op
from contextpilot.errors import SummarizerError
from contextpilot.manager.fallback import FallbackLimits, Reason
from contextpilot.messages.validate import problems
from contextpilot.observations.observation import Observation

BUDGET = TokenBudget(8_000, 500, 0.6)


class Failing:
    name = "failing"

    def __init__(self, answer: Callable[[Observation], Any]) -> None:
        self.answer, self.asked = answer, 0

    def reset(self, seed: int) -> None:
        pass

    def __call__(self, observation: Observation) -> int:
        self.asked += 1
        action: int = self.answer(observation)
        return action


def broken(_: Observation) -> int:
    raise RuntimeError("no weights")


def masked(observation: Observation) -> int:
    return int(observation.arrays["action_mask"].argmin())


def wrong_write(observation: Observation) -> int:
    observation.arrays["action_mask"][:] = 1
    return len(observation.arrays["action_mask"]) - 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (broken, Reason.ERROR),
        (lambda _: None, Reason.NO_ACTION),
        (lambda _: "fold the oldest", Reason.NO_ACTION),
        (lambda _: 10**9, Reason.NO_ACTION),
        (masked, Reason.MASKED),
        (wrong_write, Reason.MASKED),
    ],
)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_the_rule_takes_over(
    format: str, answer: Callable[[Observation], Any], reason: str
) -> None:
    policy = Failing(answer)
    limits = FallbackLimits(None, failures=3, parked_decisions=10)
    session = manager(format, policy, BUDGET, limits=limits).session()
    failures = 0
    for host in requests_of(history(format, 4, 25)):
        request = session.prepare(host)
        assert problems(format, request.messages) == ()
        assert request.report.after_tokens <= BUDGET.input_limit
        failures += len(request.report.failures)
    assert policy.asked == len(session.failures) == failures >= 3
    assert {failure.reason for failure in session.failures} == {reason}
    assert any(failure.parked == 10 for failure in session.failures)
    assert any(record.reason == "clear_old_results, for failing" for record in session.log)


def test_a_policy_that_always_keeps_is_helped_where_the_request_would_not_fit() -> None:
    session = manager("openai", Failing(lambda _: 0), BUDGET).session()
    for host in requests_of(history("openai", 4, 25)):
        assert session.prepare(host).report.after_tokens <= BUDGET.input_limit
    assert session.failures == ()
    assert {record.reason for record in session.log} == {"clear_old_results"}
    assert {record.op for record in session.log} <= {Op.FOLD, Op.DROP}


def test_a_policy_that_hangs_costs_its_time_once() -> None:
    gate = threading.Event()

    def slow(_: Observation) -> int:
        gate.wait()
        return 0

    limits = FallbackLimits(0.05, failures=2, parked_decisions=100)
    session = manager("openai", Failing(slow), BUDGET, limits=limits).session()
    for host in requests_of(history("openai", 4, 25)):
        assert session.prepare(host).report.after_tokens <= BUDGET.input_limit
    gate.set()
    assert [f.reason for f in session.failures[:2]] == [Reason.TIMEOUT, Reason.BUSY]


class BrokenSummarizer:
    name = "broken"

    def __init__(self) -> None:
        self.asked = 0

    def summarize(self, request: Any) -> str:
        self.asked += 1
        raise SummarizerError("429 slow down")


def insists(observation: Observation) -> int:
    slots = observation.allowed(Op.SUMMARIZE, "through").nonzero()[0]
    return observation.action(Op.SUMMARIZE, "through", int(slots[-1])) if len(slots) else 0


def test_a_summarizer_that_fails_is_not_asked_over_and_over() -> None:
    summarizer = BrokenSummarizer()
    session = manager("openai", Failing(insists), BUDGET, summarizer=summarizer).session()
    requests = 0
    for host in requests_of(history("openai", 4, 25)):
        request = session.prepare(host)
        assert request.report.after_tokens <= BUDGET.input_limit
        assert "slow down" not in str(request.messages)
        requests += 1
    assert 0 < summarizer.asked <= 2 * requests
