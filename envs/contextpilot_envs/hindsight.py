"""Hindsight credit: what an episode would have returned without one of its edits.

The stream is exogenous and noise depends on nothing but its seed, so the episode without an edit
can be played exactly. All other actions are repeated on the segments that they were chosen for,
wherever that is still legal: a flush takes what is marked then, a run begins at the last summary
there is then, and an edit that is illegal or has nothing to do is left out. A flush is removed as a
whole, or its members would hide behind each other's prefix break. Where a refused request cut the
episode short and the other one survives it, the other one goes on without edits.

Returns are of the weighted terms without the potentials, which sum to 0 in either episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from contextpilot.archives import MemoryArchive
from contextpilot.core.context import Context
from contextpilot.core.edit import Drop, Edit, EditRecord, Fold, Op, Outcome
from contextpilot.core.edit_log import EditLog
from contextpilot.core.invariants import legal_among
from contextpilot.core.segment import Segment
from contextpilot.edits.check import check_edit
from contextpilot.edits.codec import Action, to_edit
from contextpilot.errors import IllegalEditError
from contextpilot.rewards.terms import TERMS, raw_terms
from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.accounting import send_request, step_facts
from contextpilot_envs.potentials import PotentialTracker
from contextpilot_envs.simulator.episode import Episode, EpisodeSnapshot
from contextpilot_envs.simulator.equality import plays_on_alike

POTENTIALS = ("key_info", "reload", "rent")
"""The terms that sum to 0 over an episode."""


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """One step of an episode as it was played.

    Attributes:
        logged: length of the edit log before it.
        action: of the edit that it made; None for keep and for a masked action.
        index: the segment that the action was chosen for.
        sends: whether it sent the request.
        masked: whether its action was forbidden.
        terms: its raw reward terms.
    """

    logged: int
    action: Action | None
    index: int
    sends: bool
    masked: bool
    terms: tuple[float, ...]


@dataclass(slots=True)
class Trace:
    """An episode's steps, and by the number of each edit's step the state that it was made in."""

    steps: list[PlayedStep] = field(default_factory=list)
    states: dict[int, EpisodeSnapshot] = field(default_factory=dict)

    def before_edit(self, episode: Episode) -> None:
        """Notes the state in which the next step's edit is made."""
        self.states[len(self.steps)] = episode.bookmark()

    def fork(self) -> Trace:
        """Returns a trace with the same steps that grows on its own."""
        return Trace(list(self.steps), dict(self.states))


def hindsight(trace: Trace, episode: Episode, reward: RewardWeights) -> NDArray[np.float64]:
    """Returns what each step's edit was worth.

    Args:
        trace: of the whole episode.
        episode: after its end; not changed.
        reward: what the return is made of.

    Returns:
        (L,) per step the return as played minus the return without the step's edit; 0 for keep,
        for rejected edits and for masked actions.
    """
    values = np.zeros(len(trace.steps))
    replay = _Replay(trace, episode, reward)
    for number in trace.states:
        if episode.log[trace.steps[number].logged].outcome == Outcome.APPLIED:
            values[number] = replay.worth(number)
    return values


class _Replay:
    """Plays an ended episode once more from one of its edits on, without that edit."""

    def __init__(self, trace: Trace, episode: Episode, reward: RewardWeights) -> None:
        self._trace, self._played = trace, episode
        self._other = Episode(episode.prepared, episode.noise_seed)
        self._other.services.archive = _NoArchive()
        self._tracker = PotentialTracker(self._other, past=True) if reward.half_kept else None
        self._weights = [
            (place, float(weight))
            for place, (name, weight) in enumerate(zip(TERMS, reward.vector(), strict=True))
            if weight and name not in POTENTIALS
        ]
        self._reward = reward
        # Thrash and kept summaries look back, so that equal states do not have equal futures.
        self._may_stop = not reward.thrash and not reward.summary_kept
        self._returns = [self._weigh(step.terms) for step in trace.steps]
        ends = [step.logged for step in trace.steps[1:]]
        self._log_ends = [*ends, len(episode.log)]

    def worth(self, removed: int) -> float:
        """Returns the return as played minus the return without the edit of a step."""
        steps, states, other = self._trace.steps, self._trace.states, self._other
        start = states[removed]
        other.rewind(start)
        if self._tracker is not None:
            self._tracker.rebuild()
        self._native, self._made = start.context.indices, dict[int, int]()
        difference = self._returns[removed] - self._repeat(removed, without=True)
        for number in range(removed + 1, len(steps)):
            if other.ended:
                return difference + sum(self._returns[number:])
            state = states.get(number)
            if (
                self._may_stop
                and state is not None
                and steps[number - 1].sends
                and plays_on_alike(other, state)
            ):
                return difference + self._difference_of_ends(state)
            difference += self._returns[number] - self._repeat(number)
        while not other.ended:
            difference -= self._send(len(other.log), None)
        return difference

    def _weigh(self, terms: Sequence[float]) -> float:
        return sum([weight * terms[place] for place, weight in self._weights])

    def _repeat(self, number: int, *, without: bool = False) -> float:
        """Plays a step's action again, where it can be; returns the step's return."""
        step, other = self._trace.steps[number], self._other
        logged, record = len(other.log), None
        if step.action is not None and not without:
            edit = repeated(other.context, step.action, self._same_segment(step.index))
            if edit is not None:
                record = other.commit(edit)
                self._match(self._played.log[step.logged], record)
        if step.sends:
            value = self._send(logged, record, masked=step.masked)
            begun = step.logged + (step.action is not None)
            self._match_forced(begun, self._log_ends[number], logged + (record is not None))
            return value
        facts = step_facts(other, logged, record, masked=step.masked)
        return self._weigh(raw_terms(facts))

    def _send(self, logged: int, record: EditRecord | None, *, masked: bool = False) -> float:
        result, half_kept = send_request(self._other, self._tracker)
        facts = step_facts(
            self._other, logged, record, result, masked=masked, half_kept=half_kept
        )  # fmt: skip
        return self._weigh(raw_terms(facts))

    def _difference_of_ends(self, state: EpisodeSnapshot) -> float:
        """Returns how the ends differ where from `state` on both episodes are the same.

        The requests to come are alike, but the last step looks back on the whole episode.
        """
        other, end, then = self._other.tally, self._played.tally, state.tally
        config, raw = self._other.prepared.config, self._other.prepared.raw
        cost = other.bill - then.bill
        cost += config.miss_price_requests * (other.miss_cost - then.miss_cost)
        difference = self._reward.outcome * cost / raw.total
        if not end.overflows:
            other.silent_misses += end.silent_misses - then.silent_misses
            other.final_missed += end.final_missed - then.final_missed
            failures = int(not self._other.succeeded) - int(self._played.failed)
            difference += self._reward.task * failures
        return difference

    # ---- the same segments -------------------------------------------------------------------

    def _same_segment(self, index: int) -> int:
        """Returns what a segment is called here; -1 where it was never made."""
        return index if index < self._native else self._made.get(index, -1)

    def _match(self, played: EditRecord, repeated: EditRecord) -> None:
        """Notes that what both edits made is the same segment."""
        here = _made_by(repeated)
        if here >= 0 and _made_by(played) >= 0:
            self._made[_made_by(played)] = here

    def _match_forced(self, start: int, end: int, start_here: int) -> None:
        """Matches what the agent fetched in a request, by what was fetched."""
        fetched: dict[tuple[str, ...], list[EditRecord]] = {}
        for record in _reloads(self._other.log, start_here, len(self._other.log)):
            fetched.setdefault(record.targets, []).append(record)
        for record in _reloads(self._played.log, start, end):
            if fetched.get(record.targets):
                self._match(record, fetched[record.targets].pop(0))


def repeated(context: Context, action: Action, index: int) -> Edit | None:
    """Returns the edit that an action asks for on a segment; None where there is nothing to do.

    Args:
        context: perhaps another one than the action was chosen in.
        action: its slot does not matter.
        index: the segment that it was chosen for; -1 where this context never had it.
    """
    if index < 0:
        return None
    if action.preset == "flush":
        fold = action.op == Op.FOLD
        c = context.columns
        behind = c.order[c.rank[index] : context.length].tolist()
        marked = [i for i in behind if c.mark[i] >= 0]
        targets = tuple(legal_among("flush_fold" if fold else "flush_drop", context, marked))
        return None if not targets else Fold(targets) if fold else Drop(targets)
    try:
        edit = to_edit(context, action, index)
        check_edit(context, edit)
    except IllegalEditError:
        return None
    return edit


def _made_by(record: EditRecord) -> int:
    """Returns the index of the segment that an edit made; -1 for none."""
    for change in record.changes[:1]:
        if change.after is not None and record.op != Op.REORDER:
            return change.index
    return -1


def _reloads(log: EditLog, start: int, end: int) -> list[EditRecord]:
    return [log[n] for n in range(start, end) if log[n].op == Op.RELOAD]


class _NoArchive(MemoryArchive):
    """Keeps nothing: nobody looks into the archive of an episode that is only played again."""

    def put(self, session: str, segment: Segment) -> None:
        """Forgets the segment."""
