"""One scripted policy per edit, to ask whether the edit has a use: the same policy without it.

They are written for the study of the edits, not to be good; each uses its edit where a person
would, and falls back on the guard where the edit is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.edit import Op
from contextpilot.core.segment import Kind
from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.guard import FitGuard
from contextpilot.policies.rules import (
    MAX_STEPS,
    ClearOldResults,
    ThresholdFold,
    first,
    used_share,
)


class Masked:
    """A policy that plays as if one operation were never legal."""

    def __init__(self, policy: Policy, op: Op) -> None:
        self._policy, self._op = policy, op
        self.name = f"{policy.name} without {op.name.lower()}"

    def reset(self, seed: int) -> None:
        """Begins an episode of the policy."""
        self._policy.reset(seed)

    def __call__(self, observation: Observation) -> int:
        """Returns the policy's action under the narrower mask."""
        mask = observation.arrays["action_mask"].copy()
        slots, archived = observation.codec.context_slots, observation.codec.archive_slots
        for p, preset in enumerate(CONTEXT_PRESETS):
            if preset.op == self._op:
                mask[1 + p * slots : 1 + (p + 1) * slots] = 0
        for q, preset in enumerate(ARCHIVE_PRESETS):
            if preset.op == self._op:
                start = observation.codec.archive_start + q * archived
                mask[start : start + archived] = 0
        return self._policy(
            Observation({**observation.arrays, "action_mask": mask}, observation.codec)
        )


@dataclass(frozen=True)
class SummarizeOldest:
    """Under pressure the oldest large segments are summarized in place."""

    trigger: float = 0.8
    floor_tokens: int = 150
    name: str = "summarize_oldest"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a summary of the oldest while over the trigger."""
        if used_share(observation) <= self.trigger:
            return 0
        allowed = observation.allowed(Op.SUMMARIZE, "this")
        allowed &= observation.tokens("size") >= self.floor_tokens
        return observation.action(Op.SUMMARIZE, "this", first(allowed)) if allowed.any() else 0


@dataclass(frozen=True)
class MarkWhenRead:
    """Every result is marked as soon as it was read; marks leave together when it is cheap."""

    name: str = "mark_when_read"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a mark on the oldest result that was read and has none."""
        allowed = observation.allowed(Op.EXPIRE, "0") & (observation.feature("sent") > 0)
        allowed &= observation.kinds != Kind.TURN
        return observation.action(Op.EXPIRE, "0", first(allowed)) if allowed.any() else 0


@dataclass(frozen=True)
class ReloadWhenAnnounced:
    """Folds all that was read; what the user has named returns before the agent has to ask for it.

    A user text announces what the agent will look for one request later. Just before that request
    the folded segment that shares the most rare words with the text is shown at the end; being
    unread there, it stays in full for the request. Words are the hashed ones of the observation,
    most of them from the opening of a text.

    Attributes:
        least: shared rarity below which nothing is reloaded; a word that only the user text has
            would count 1, one that every segment has 0.
    """

    least: float = 1.5
    name: str = "reload_when_announced"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns the next fold of what was read, then at most one reload."""
        begun = observation.state("step") > 0
        if begun and round(observation.state("last_op_0") * 6) == Op.RELOAD:
            return 0
        return _FOLD_AS_READ(observation) or self._reload(observation)

    def _reload(self, observation: Observation) -> int:
        said = observation.visible & (observation.kinds == Kind.TEXT)
        said &= observation.requests("age") == 1
        hidden = observation.allowed(Op.RELOAD, "at_end") & (observation.kinds != Kind.TURN)
        if not said.any() or not hidden.any():
            return 0
        newest = int(np.nonzero(said)[0][-1])
        shared = np.where(hidden, _shared_rarity(observation, newest), -1.0)
        best = int(shared.argmax())
        return observation.action(Op.RELOAD, "at_end", best) if shared[best] >= self.least else 0


_FOLD_AS_READ = ClearOldResults(older_than=0, batch_tokens=0, floor_tokens=0, everything=True)


def _shared_rarity(observation: Observation, of: int) -> NDArray[np.float64]:
    """Returns the summed inverse frequency of the words that each slot shares with slot `of`, (S,).

    The unit is the rarity of a word that one visible segment has.
    """
    tokens, visible = observation.arrays["segment_tokens"], observation.visible
    words = np.unique(tokens[of][tokens[of] > 0])
    has = (tokens[:, :, None] == words).any(axis=1) & visible[:, None]
    count = int(visible.sum())
    rarity = np.log(count / has.sum(axis=0)) / np.log(count)
    return np.asarray(has @ rarity, np.float64)


@dataclass(frozen=True)
class RelevantToFront:
    """What is most relevant to the goal moves to the front, where a rotting reader still reads."""

    at_request: int = 12
    moves: int = 4
    name: str = "relevant_to_front"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a move of the most relevant document that has not been moved yet."""
        request = round(float(np.expm1(observation.state("request") * 6.0)))
        steps = round(observation.state("step") * MAX_STEPS)
        if request != self.at_request or steps >= self.moves:
            return 0
        allowed = observation.allowed(Op.REORDER, "front")
        allowed &= observation.feature("edit_recency") == 0
        if not allowed.any():
            return 0
        relevance = np.where(allowed, observation.feature("goal_relevance"), -1.0)
        return observation.action(Op.REORDER, "front", int(relevance.argmax()))


@dataclass(frozen=True)
class DropDuplicates:
    """What says word for word what an earlier segment says is dropped as soon as it was read."""

    name: str = "drop_duplicates"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns a drop of a segment with the same words and size as an earlier visible one."""
        allowed = observation.allowed(Op.DROP, "this") & (observation.kinds != Kind.TURN)
        allowed &= observation.tokens("tokens_behind") < 2 * observation.tokens("size")
        tokens, sizes = observation.arrays["segment_tokens"], observation.tokens("full")
        for slot in np.nonzero(allowed)[0]:
            same = (tokens[:slot] == tokens[slot]).all(axis=1) & (sizes[:slot] == sizes[slot])
            if (same & observation.visible[:slot]).any():
                return observation.action(Op.DROP, "this", int(slot))
        return 0


def _guarded(make: Callable[[], Policy]) -> Callable[[], Policy]:
    return lambda: FitGuard(make())


SCRIPTED: Mapping[Op, Callable[[], Policy]] = MappingProxyType(
    {
        Op.SUMMARIZE: _guarded(SummarizeOldest),
        Op.FOLD: _guarded(ThresholdFold),
        Op.EXPIRE: _guarded(MarkWhenRead),
        Op.DROP: DropDuplicates,
        Op.RELOAD: _guarded(ReloadWhenAnnounced),
        Op.REORDER: RelevantToFront,
    }
)
"""Per edit, a policy that uses it."""


@dataclass(frozen=True)
class ScriptedSpec:
    """A scripted policy with or without its edit; survives pickling."""

    op: Op
    masked: bool

    def __call__(self, _engine: object = None, _row: int = 0) -> Policy:
        """Makes the policy."""
        policy = SCRIPTED[self.op]()
        return Masked(policy, self.op) if self.masked else policy
