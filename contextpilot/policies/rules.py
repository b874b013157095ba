"""Rules that clear, truncate, fold and select: the baselines that agents use today.

Every rule decides from the observation alone, one edit step at a time, and stops by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.edit import Op
from contextpilot.core.segment import Kind
from contextpilot.observations.observation import Observation

_KEEP = (0,)

MAX_STEPS = 16
"""Edit steps that a rule counts on; a longer batch is marked first and flushed as a whole."""


def used_share(observation: Observation) -> float:
    """Returns the used share of the input limit; near 0 where there is no limit."""
    return observation.state_tokens("used_tokens") / observation.state_tokens("limit_tokens")


def first(mask: NDArray[np.bool_]) -> int:
    """Returns the first slot of a mask, in context order."""
    return int(mask.argmax())


@dataclass(frozen=True)
class DropOldest:
    """Hard truncation: the oldest exchanges go until the request fits.

    Attributes:
        trigger: share of the input limit above which it begins.
        target: share at which it stops; None: the trigger.
        keep_segments: where not None, all but the latest N segments go, whatever they take; an
            exchange goes as a whole.
    """

    trigger: float = 1.0
    target: float | None = None
    keep_segments: int | None = None
    name: str = "truncation"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a drop of the oldest that may go while the context is over the trigger."""
        dropping = _begun(observation) and _last_op(observation) == Op.DROP
        if self.keep_segments is None:
            stop = self.trigger if self.target is None or not dropping else self.target
            if used_share(observation) <= stop:
                return 0
        elif not dropping and used_share(observation) < self.trigger:
            return 0
        allowed = observation.allowed(Op.DROP, "this") & _older(observation, self.keep_segments)
        return observation.action(Op.DROP, "this", first(allowed)) if allowed.any() else 0


@dataclass(frozen=True)
class ClearOldResults:
    """Folds tool results older than `older_than` requests, once enough of them has gathered.

    Attributes:
        older_than: k; 0 folds a result as soon as it was read.
        batch_tokens: s; nothing happens until folding would hide this many tokens.
        floor_tokens: smaller results stay.
        keep_last: the latest N results stay whatever their age.
        trigger: share of the input limit below which nothing happens.
        calls: fold long call arguments too.
        everything: fold whatever may be folded: documents and user texts as well as results.
    """

    older_than: int = 3
    batch_tokens: int = 8000
    floor_tokens: int = 200
    keep_last: int = 0
    trigger: float = 0.0
    calls: bool = False
    everything: bool = False
    name: str = "clear_old_results"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns the next fold of the batch, or keep."""
        return self.plan(observation)[0]

    def plan(self, observation: Observation) -> Sequence[int]:
        """Returns the folds of the batch; above a trigger one, as that may be enough."""
        actions = self._batch(observation)
        return actions[:1] if self.trigger else actions

    def _batch(self, observation: Observation) -> Sequence[int]:
        allowed = observation.allowed(Op.FOLD, "stub")
        if not allowed.any() or used_share(observation) < self.trigger:
            return _KEEP
        due = self._due(observation, allowed)
        count = int(due.sum())
        if not count:
            return _KEEP
        if observation.state("step") == 0.0 or not _in_batch(observation):
            saved = observation.tokens("size") - observation.tokens("stub")
            if int(saved[due].sum()) < self.batch_tokens:
                return _KEEP
        return _hide_all(observation, due, count)

    def _due(self, observation: Observation, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        kinds = observation.kinds
        clearable = kinds == Kind.RESULT
        if self.keep_last:
            results = np.nonzero(clearable & observation.visible)[0]
            clearable[results[-self.keep_last :]] = False
        if self.everything:
            clearable |= kinds != Kind.TURN
        if self.calls:
            clearable |= kinds == Kind.TURN
        due: NDArray[np.bool_] = (
            allowed
            & clearable
            & (observation.requests("age") > self.older_than)
            & (observation.tokens("full") >= self.floor_tokens)
        )
        return due


def _last_op(observation: Observation) -> int:
    return round(observation.state("last_op_0") * 6)


def _in_batch(observation: Observation) -> bool:
    """True where this request's last edit belongs to a batch that has begun."""
    return _last_op(observation) in (Op.FOLD, Op.EXPIRE)


def _older(observation: Observation, keep: int | None) -> NDArray[np.bool_]:
    """Returns the slots before the latest `keep` visible ones; all of them for None."""
    visible: NDArray[np.bool_] = observation.visible
    older = np.ones_like(visible)
    if keep is not None:
        shown = np.nonzero(visible)[0]
        older[shown[len(shown) - min(keep, len(shown)) :]] = False
    return older


def _hide_all(observation: Observation, due: NDArray[np.bool_], count: int) -> Sequence[int]:
    """Returns the next steps of folding all that is due: one by one, or by marking and a flush."""
    marked = due & (observation.feature("marked") > 0)
    flush = observation.allowed(Op.FOLD, "flush") & marked
    steps_left = MAX_STEPS - round(observation.state("step") * MAX_STEPS)
    if count <= steps_left and not marked.any():
        return _each(observation, Op.FOLD, "stub", due)
    unmarked = due & ~marked & observation.allowed(Op.EXPIRE, "0")
    if unmarked.any() and steps_left > 1:
        return _each(observation, Op.EXPIRE, "0", unmarked)[: steps_left - 1]
    if flush.any() and not unmarked.any():
        return (observation.action(Op.FOLD, "flush", first(flush)),)
    return _KEEP


def _each(observation: Observation, op: Op, preset: str, slots: NDArray[np.bool_]) -> Sequence[int]:
    """Returns the same action for each of some slots, in context order."""
    return [observation.action(op, preset, int(slot)) for slot in np.flatnonzero(slots)]


@dataclass(frozen=True)
class ThresholdFold:
    """Structure-aware folding under pressure: outlines of the oldest, until below the target."""

    trigger: float = 0.8
    target: float = 0.6
    floor_tokens: int = 200
    name: str = "threshold_fold"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns an outline of the oldest large segment, then stubs, while over the target."""
        if not _is_due(observation, self.trigger, self.target):
            return 0
        large = observation.tokens("size") >= self.floor_tokens
        for preset in ("outline", "stub"):
            allowed = observation.allowed(Op.FOLD, preset) & large
            if allowed.any():
                return observation.action(Op.FOLD, preset, first(allowed))
        return 0


def _begun(observation: Observation) -> bool:
    """True after the first edit step of a request."""
    return observation.state("step") > 0


def _is_due(observation: Observation, trigger: float, target: float) -> bool:
    """True over the trigger, and once folding has begun until below the target."""
    folding = _begun(observation) and _in_batch(observation)
    return used_share(observation) > (target if folding else trigger)


@dataclass(frozen=True)
class GoalSelection:
    """BM25 selection: under pressure, what says least about the goal is folded first."""

    trigger: float = 0.8
    target: float = 0.6
    name: str = "goal_selection"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a fold of the least relevant segment while over the target."""
        if not _is_due(observation, self.trigger, self.target):
            return 0
        allowed = observation.allowed(Op.FOLD, "stub")
        if not allowed.any():
            return 0
        relevance = np.where(allowed, observation.feature("goal_relevance"), np.inf)
        return observation.action(Op.FOLD, "stub", int(relevance.argmin()))


@dataclass(frozen=True)
class SummarizeAtThreshold:
    """The fixed summary: over the trigger, everything but the latest requests is summarized.

    Attributes:
        trigger: share of the input limit above which it acts.
        keep_requests: what is younger than so many requests stays.
        keep_segments: where not None, the latest N segments stay instead, whatever their age.
    """

    trigger: float = 0.8
    keep_requests: int = 3
    keep_segments: int | None = None
    name: str = "fixed_summary"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns one summary a request, through the latest segment that is old enough."""
        if _begun(observation) or used_share(observation) <= self.trigger:
            return 0
        if self.keep_segments is None:
            return _summarize_through(observation, self.keep_requests)
        allowed = observation.allowed(Op.SUMMARIZE, "through")
        slots = np.nonzero(allowed & _older(observation, self.keep_segments))[0]
        return observation.action(Op.SUMMARIZE, "through", int(slots[-1])) if len(slots) else 0


@dataclass(frozen=True)
class RollingSummary:
    """A summary is rolled forward whenever enough has gathered behind the last one."""

    every_tokens: int = 4000
    keep_requests: int = 2
    name: str = "rolling_summary"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a summary once the segments that are old enough reach `every_tokens`."""
        if _begun(observation):
            return 0
        old = _summarizable(observation, self.keep_requests)
        fresh = old & (observation.kinds != Kind.SUMMARY)
        if int(observation.tokens("size")[fresh].sum()) < self.every_tokens:
            return 0
        return _summarize_through(observation, self.keep_requests)


def _summarizable(observation: Observation, keep_requests: int) -> NDArray[np.bool_]:
    allowed = observation.allowed(Op.SUMMARIZE, "through")
    old: NDArray[np.bool_] = allowed & (observation.requests("age") >= keep_requests)
    return old


def _summarize_through(observation: Observation, keep_requests: int) -> int:
    slots = np.nonzero(_summarizable(observation, keep_requests))[0]
    return observation.action(Op.SUMMARIZE, "through", int(slots[-1])) if len(slots) else 0
