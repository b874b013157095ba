"""Whatever a policy does, a decision is an allowed action, and each failure is one record."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.manager.fallback import FallbackLimits, FallbackPolicy, Reason
from contextpilot.observations.observation import Observation

CODEC = ActionCodec(4, 2)
RULES_ACTION, FREE, MASKED = 3, 5, 6
LONG = 30.0
"""Seconds that no test waits for."""


def observation() -> Observation:
    mask = np.zeros(CODEC.size, np.int8)
    mask[[0, RULES_ACTION, FREE]] = 1
    return Observation({"action_mask": mask, "state": np.zeros(3, np.float32)}, CODEC)


class Rule:
    name = "rule"

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def __call__(self, observation: Observation) -> int:
        assert observation.arrays["action_mask"][RULES_ACTION]
        return RULES_ACTION


class Scripted:
    """Answers what a function of the decision's number returns."""

    name = "scripted"

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer, self.asked = answer, 0
        self.seeds: list[int] = []

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def __call__(self, observation: Observation) -> int:
        self.asked += 1
        answer: int = self.answer(self.asked - 1)
        return answer


def fallback(
    answer: Callable[[int], Any],
    *,
    timeout: float | None = LONG,
    failures: int = 3,
    parked: int = 5,
) -> tuple[FallbackPolicy, Scripted]:
    policy = Scripted(answer)
    return FallbackPolicy(policy, Rule(), FallbackLimits(timeout, failures, parked)), policy


def raises(error: BaseException) -> Callable[[int], Any]:
    def answer(_: int) -> int:
        raise error

    return answer


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError


TIMEOUTS = pytest.mark.parametrize("timeout", [None, LONG], ids=["here", "in a thread"])


@TIMEOUTS
@pytest.mark.parametrize("answer", [FREE, np.int64(FREE), np.int8(0)])
def test_a_good_answer_is_passed_on_as_an_int(timeout: float | None, answer: Any) -> None:
    guarded, _ = fallback(lambda _: answer, timeout=timeout)
    action = guarded(observation())
    assert (action, type(action), guarded.records) == (int(answer), int, ())


@TIMEOUTS
@pytest.mark.parametrize(
    ("answer", "reason", "detail"),
    [
        (raises(RuntimeError("no weights")), Reason.ERROR, "RuntimeError('no weights')"),
        (raises(KeyError("x" * 999)), Reason.ERROR, "KeyError"),
        (lambda _: None, Reason.NO_ACTION, "not an integer: None"),
        (lambda _: "fold", Reason.NO_ACTION, "not an integer: 'fold'"),
        (lambda _: 5.0, Reason.NO_ACTION, "not an integer: 5.0"),
        (lambda _: True, Reason.NO_ACTION, "not an integer: True"),
        (lambda _: np.array(5), Reason.NO_ACTION, "not an integer: array(5)"),
        (lambda _: Unshowable(), Reason.NO_ACTION, "Unshowable"),
        (lambda _: -1, Reason.NO_ACTION, f"not in [0, {CODEC.size}): -1"),
        (lambda _: CODEC.size, Reason.NO_ACTION, f"not in [0, {CODEC.size})"),
        (lambda _: 10**6000, Reason.NO_ACTION, f"not in [0, {CODEC.size})"),
        (lambda _: MASKED, Reason.MASKED, "action 6 is masked"),
    ],
)
def test_a_bad_answer_costs_one_record_and_the_rule_decides(
    timeout: float | None, answer: Callable[[int], Any], reason: Reason, detail: str
) -> None:
    guarded, _ = fallback(answer, timeout=timeout)
    assert guarded(observation()) == RULES_ACTION
    (record,) = guarded.records
    assert (record.decision, record.reason, record.action) == (0, reason, RULES_ACTION)
    assert detail in record.detail
    assert len(record.detail) < 200
    assert (record.failures, record.parked) == (1, 0)


def test_an_exit_in_the_policys_thread_is_a_failure() -> None:
    guarded, _ = fallback(raises(SystemExit()))
    assert guarded(observation()) == RULES_ACTION
    assert guarded.records[0].reason == Reason.ERROR


def test_an_interrupt_without_a_thread_is_the_programs() -> None:
    guarded, _ = fallback(raises(KeyboardInterrupt()), timeout=None)
    with pytest.raises(KeyboardInterrupt):
        guarded(observation())


def test_what_the_policy_writes_into_its_observation_stays_there() -> None:
    class Cheat(Scripted):
        def __call__(self, observation: Observation) -> int:
            observation.arrays["action_mask"][:] = np.arange(CODEC.size) == MASKED
            return MASKED

    seen = observation()
    guarded = FallbackPolicy(Cheat(lambda _: 0), Rule())
    assert guarded(seen) == RULES_ACTION
    assert guarded.records[0].reason == Reason.MASKED
    assert np.array_equal(seen.arrays["action_mask"], observation().arrays["action_mask"])


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What slow policies wait for; opened at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_late_answer_is_discarded_and_the_policy_is_not_asked_meanwhile(
    gate: threading.Event,
) -> None:
    def answer(number: int) -> int:
        if number == 0:
            gate.wait()
            return 0
        return FREE

    guarded, policy = fallback(answer, timeout=0.05, failures=9)
    assert [guarded(observation()) for _ in range(3)] == [RULES_ACTION] * 3
    assert [r.reason for r in guarded.records] == [Reason.TIMEOUT, Reason.BUSY, Reason.BUSY]
    assert policy.asked == 1
    threads = policy_threads()
    gate.set()
    wait_for(lambda: not guarded._worker.is_busy)
    guarded.limits = FallbackLimits(LONG)
    assert guarded(observation()) == FREE  # its own answer, not the late 0
    assert (len(guarded.records), policy.asked) == (3, 2)
    assert policy_threads() == threads


def test_it_is_parked_tried_again_and_forgiven() -> None:
    # decisions 0-2 fail; it is parked for 4, fails at 7, is parked for 4, and answers from 12 on
    guarded, policy = fallback(lambda n: FREE if n >= 4 and n != 5 else -1, failures=3, parked=4)
    actions, parked = [], []
    for _ in range(16):
        actions.append(guarded(observation()))
        parked.append(guarded.is_parked)
    assert [i for i, action in enumerate(actions) if action == FREE] == [12, 14, 15]
    assert [(r.decision, r.failures, r.parked) for r in guarded.records] == [
        (0, 1, 0), (1, 2, 0), (2, 3, 4), (7, 4, 4), (13, 1, 0),
    ]  # fmt: skip
    assert policy.asked == 8
    assert [i for i, is_parked in enumerate(parked) if is_parked] == [2, 3, 4, 5, 7, 8, 9, 10]


@examples(60)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 4), st.integers(0, 5))
def test_any_run_of_failures_is_counted(good: list[bool], failures: int, parked: int) -> None:
    guarded, policy = fallback(
        lambda n: FREE if good[n] else -1, timeout=None, failures=failures, parked=parked
    )
    row, wait, asked, failed = 0, 0, 0, []
    for decision in range(len(good)):
        action = guarded(observation())
        if wait:
            wait -= 1
            assert action == RULES_ACTION
            continue
        assert action == (FREE if good[asked] else RULES_ACTION)
        row = 0 if good[asked] else row + 1
        if not good[asked]:
            failed.append(decision)
            wait = parked if row >= failures else 0
        asked += 1
    assert policy.asked == asked
    assert [record.decision for record in guarded.records] == failed


@TIMEOUTS
def test_a_reset_reaches_both_and_is_guarded_too(timeout: float | None) -> None:
    class Unready(Scripted):
        def reset(self, seed: int) -> None:
            super().reset(seed)
            if len(self.seeds) < 3:
                raise OSError("not yet")

    policy, rule = Unready(lambda _: FREE), Rule()
    guarded = FallbackPolicy(policy, rule, FallbackLimits(timeout, 9))
    guarded.reset(7)
    assert (policy.seeds, rule.seeds) == ([], [7])
    assert [guarded(observation()) for _ in range(4)] == [RULES_ACTION] * 2 + [FREE] * 2
    assert policy.seeds == [7, 7, 7]  # until it worked, and no more
    assert [record.reason for record in guarded.records] == [Reason.ERROR] * 2
    guarded.reset(8)
    assert guarded(observation()) == FREE
    assert policy.seeds[3:] == [8]


def test_its_name_is_the_policys() -> None:
    assert fallback(lambda _: FREE)[0].name == "scripted"


def policy_threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name == "contextpilot-policy-scripted"}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def test_threads_end_with_their_owner_or_when_closed() -> None:
    before = policy_threads()
    closed, _ = fallback(lambda _: FREE)
    collected, _ = fallback(lambda _: FREE)
    assert policy_threads() == before  # none is begun before it is needed
    assert [closed(observation()), collected(observation())] == [FREE, FREE]
    assert len(policy_threads() - before) == 2
    closed.close()
    closed.close()
    del collected
    gc.collect()
    wait_for(lambda: policy_threads() <= before)
    assert closed(observation()) == FREE  # a closed one begins anew
    closed.close()
    wait_for(lambda: policy_threads() <= before)


def test_no_thread_without_a_limit() -> None:
    before = policy_threads()
    guarded, _ = fallback(lambda _: FREE, timeout=None)
    assert guarded(observation()) == FREE
    assert policy_threads() == before


HANGING = """
import threading
import numpy as np
from contextpilot.edits.codec import ActionCodec
from contextpilot.manager.fallback import FallbackLimits, FallbackPolicy
from contextpilot.observations.observation import Observation
from contextpilot.policies.simple import KeepAll

class Hangs(KeepAll):
    def __call__(self, observation):
        threading.Event().wait()

codec = ActionCodec(4, 2)
seen = Observation({"action_mask": np.ones(codec.size, np.int8)}, codec)
policies = [FallbackPolicy(kind(), KeepAll(), FallbackLimits(0.2)) for kind in (Hangs, KeepAll)]
print([policy(seen) for policy in policies], [r.reason.value for r in policies[0].records])
"""


def test_a_policy_that_hangs_does_not_keep_the_program_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[0, 0] ['timeout']\n"


@pytest.mark.parametrize(
    ("timeout", "failures", "parked"),
    [(0, 1, 1), (-1.0, 1, 1), (float("nan"), 1, 1), (float("inf"), 1, 1), (1, 0, 1), (1, 1, -1)],
)
def test_limits_that_make_no_sense_are_refused(timeout: float, failures: int, parked: int) -> None:
    with pytest.raises(ConfigurationError, match="Received"):
        FallbackLimits(timeout, failures, parked)
