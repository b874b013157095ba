"""A policy that may fail, in front of a rule that does not.

An agent must get its request whatever the policy does. Each decision in which it raises, takes too
long, or answers what cannot be done costs one record, and the rule decides instead.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import TIMEOUT_MAX

import numpy as np
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError
from contextpilot.manager.worker import Job, Worker
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy, plan_of


class Reason(StrEnum):
    """Why the rule decided."""

    ERROR = "error"
    """The policy raised."""
    TIMEOUT = "timeout"
    """It took too long; its late answer is discarded."""
    BUSY = "busy"
    """It is still at a decision that took too long, so that it was not asked."""
    NO_ACTION = "no_action"
    """Its answer is no integer, or none that the layout has."""
    MASKED = "masked"
    """Its action is not allowed now."""


@dataclass(frozen=True, slots=True)
class FallbackRecord:
    """One decision that the policy was to make and the rule made.

    Attributes:
        decision: number of the decision, from 0, over all episodes.
        reason: what went wrong.
        detail: the same in words: the exception, the answer, the limit.
        action: what the rule decided.
        failures: how many decisions the policy has failed in a row, this one included.
        parked: for how many decisions it is not asked from here on.
    """

    decision: int
    reason: Reason
    detail: str
    action: int
    failures: int
    parked: int


@dataclass(frozen=True, slots=True)
class FallbackLimits:
    """What is put up with.

    Attributes:
        timeout_seconds: how long a decision may take. Longer ones are left to a thread of their
            own; None: as long as it takes, in the caller's thread.
        failures: after so many in a row the policy is parked.
        parked_decisions: for how many decisions it is then not asked. It is tried again after that,
            and parked again if that one fails too; any success clears its record.
    """

    timeout_seconds: float | None = 5.0
    failures: int = 3
    parked_decisions: int = 100

    def __post_init__(self) -> None:
        """Refuses limits under which nothing could ever be decided."""
        if self.timeout_seconds is not None and not 0 < self.timeout_seconds <= TIMEOUT_MAX:
            raise ConfigurationError(
                "`timeout_seconds` must be a positive number of seconds, or None for no limit. "
                f"Received {self.timeout_seconds}."
            )
        if self.failures < 1 or self.parked_decisions < 0:
            raise ConfigurationError(
                "`failures` must be at least 1 and `parked_decisions` at least 0. "
                f"Received {self.failures} and {self.parked_decisions}."
            )


class FallbackPolicy:
    """Lets a policy decide while it can, and a fixed rule whenever it cannot.

    The policy sees a copy of the observation, so that neither what it writes nor what it still
    reads after its time is up touches anyone else. It is never asked twice at once. The rule is
    trusted: what it raises is raised. Not thread-safe: its session has the lock.
    """

    def __init__(self, policy: Policy, rule: Policy, limits: FallbackLimits | None = None) -> None:
        """Takes the policy, the fixed rule that stands in for it, and what is put up with."""
        self.name = policy.name
        self.limits = limits or FallbackLimits()
        self._policy, self._rule = policy, rule
        self._worker = Worker(f"contextpilot-policy-{self.name}")
        self._records: list[FallbackRecord] = []
        self._decisions = self._failures = self._parked = 0
        self._seed: int | None = None

    @property
    def records(self) -> tuple[FallbackRecord, ...]:
        """Every failed decision so far. Decisions while it is parked are no failures."""
        return tuple(self._records)

    @property
    def is_parked(self) -> bool:
        """True while the policy is not asked."""
        return self._parked > 0

    def reset(self, seed: int) -> None:
        """Begins an episode. The policy's own part is done before its next decision, guarded."""
        self._rule.reset(seed)
        self._seed = seed

    def close(self) -> None:
        """Ends the policy's thread, or leaves one that hangs to the end of the program."""
        self._worker.close()

    def __call__(self, observation: Observation) -> int:
        """Returns the policy's action, or the rule's where the policy has none to offer."""
        return self.plan(observation)[0]

    def plan(self, observation: Observation) -> Sequence[int]:
        """Returns the policy's next actions, or one of the rule's where it has none to offer."""
        decision = self._decisions
        self._decisions += 1
        if self._parked:
            self._parked -= 1
            return (self._rule(observation),)
        try:
            actions = self._ask(observation)
        except _PolicyFailedError as failed:
            actions = (self._rule(observation),)
            self._note(decision, failed, actions[0])
        else:
            self._failures = 0
        return actions

    def _ask(self, observation: Observation) -> Sequence[int]:
        """Returns the policy's next actions.

        Raises:
            _PolicyFailedError: where it has none that can be done.
        """
        if self._worker.is_busy:
            raise _PolicyFailedError(Reason.BUSY, "the last decision has not returned yet")
        job = self._run(_copied(observation))
        if job is None:
            text = f"no answer within {self.limits.timeout_seconds} seconds"
            raise _PolicyFailedError(Reason.TIMEOUT, text)
        if job.error is not None:
            raise _PolicyFailedError(Reason.ERROR, _short(job.error)) from job.error
        self._seed = None
        answers = job.answer if isinstance(job.answer, list | tuple) else ()
        if not answers:
            raise _PolicyFailedError(Reason.NO_ACTION, f"no plan: {_short(job.answer)}")
        mask = observation.arrays["action_mask"]
        return [_checked(answer, mask) for answer in answers]

    def _run(self, observation: Observation) -> Job | None:
        """Asks the policy, in its thread where there is a limit; None: it took too long."""
        policy, seed = self._policy, self._seed

        def decide() -> object:
            if seed is not None:
                policy.reset(seed)
            return plan_of(policy, observation)

        if self.limits.timeout_seconds is not None:
            return self._worker.run(decide, self.limits.timeout_seconds)
        job = Job(decide)
        job.run()
        if job.error is not None and not isinstance(job.error, Exception):
            raise job.error  # an interrupt is the program's, not the policy's
        return job

    def _note(self, decision: int, failed: _PolicyFailedError, action: int) -> None:
        """Appends a record, and parks the policy where it has failed too often."""
        self._failures += 1
        if self._failures >= self.limits.failures:
            self._parked = self.limits.parked_decisions
        self._records.append(
            FallbackRecord(
                decision, failed.reason, failed.detail, action, self._failures, self._parked
            )
        )


class _PolicyFailedError(Exception):
    """The policy has no action to offer."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def _checked(answer: object, mask: NDArray[np.int8]) -> int:
    """Returns an answer that is an allowed action of a mask, (A,)."""
    if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
        raise _PolicyFailedError(Reason.NO_ACTION, f"not an integer: {_short(answer)}")
    action = int(answer)
    if not 0 <= action < len(mask):
        raise _PolicyFailedError(Reason.NO_ACTION, f"not in [0, {len(mask)}): {_short(action)}")
    if not mask[action]:
        raise _PolicyFailedError(Reason.MASKED, f"action {action} is masked")
    return action


def _short(value: object) -> str:
    """Returns how a value shows itself, cut; its type where it cannot even do that."""
    try:
        return reprlib.repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def _copied(observation: Observation) -> Observation:
    """Returns an observation that shares no array with another."""
    arrays = {name: array.copy() for name, array in observation.arrays.items()}
    return Observation(arrays, observation.codec)
