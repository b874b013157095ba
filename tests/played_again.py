"""An episode played once more from its beginning, all of it or without one edit: brute force."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from contextpilot.core.edit import Drop, Edit, Fold, Op, Outcome
from contextpilot.core.invariants import is_legal
from contextpilot.core.segment import Form
from contextpilot.edits.check import check_edit
from contextpilot.edits.codec import Action, to_edit
from contextpilot.errors import IllegalEditError
from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import holder

FLUSHES = {Op.FOLD: "flush_fold", Op.DROP: "flush_drop"}


@dataclass(frozen=True)
class Step:
    """What was done at one step: the action's segment by a name that every play agrees on."""

    action: Action | None
    name: tuple
    sends: bool
    masked: bool


class Again:
    """One episode from scratch; names its segments by what made them."""

    def __init__(self, episode: Episode, weights: RewardWeights) -> None:
        self.episode, self.weights = episode, weights
        self.index = {("native", i): i for i in range(episode.context.native)}
        self.edits = self.masked = self.half_kept = self.good_summaries = 0

    @property
    def names(self) -> dict[int, tuple]:
        return {index: name for name, index in self.index.items()}

    def play(self, number: int, step: Step, *, leave_out: bool = False) -> None:
        if self.episode.ended:
            return
        self.masked += step.masked
        if step.action is not None and not leave_out and step.name in self.index:
            edit = self._edit(step.action, self.index[step.name])
            if edit is not None:
                self.edits += 1
                entries = len(self.episode.context.entries)
                record = self.episode.commit(edit)
                if record.op == Op.SUMMARIZE and record.outcome == Outcome.APPLIED:
                    self.good_summaries += self.episode.tally.silent_misses == 0
                if len(self.episode.context.entries) > entries:
                    self.index["edit", number] = entries
        if step.sends:
            self.send(number)

    def send(self, number: int) -> None:
        self.half_kept += bool(self.weights.half_kept) and self._half_kept()
        entries = len(self.episode.context.entries)
        self.episode.send()
        fetched: Counter[int] = Counter()
        for made, entry in enumerate(self.episode.context.entries[entries:], entries):
            self.index["forced", number, entry.origin, fetched[entry.origin]] = made
            fetched[entry.origin] += 1

    def _edit(self, action: Action, index: int) -> Edit | None:
        context = self.episode.context
        if action.preset == "flush":
            order = list(context.columns.order[: context.length])
            behind = order[order.index(index) :]
            leaving = tuple(i for i in behind if is_legal(FLUSHES[action.op], context, i))
            if not leaving:
                return None
            return Fold(leaving) if action.op == Op.FOLD else Drop(leaving)
        try:
            edit = to_edit(context, action, index)
            check_edit(context, edit)
        except IllegalEditError:
            return None
        return edit

    def _half_kept(self) -> bool:
        twin = self.episode.fork()
        twin.settle()
        context, prepared = twin.context, twin.prepared
        if context.overflows:
            return False
        demanded = {f for demands in prepared.demands for d in demands for f in d.facts}
        facts = [prepared.task.facts[f] for f in demanded]
        there = [f for f in facts if any(context.columns.rank[i] >= 0 for i in f.segments)]
        kept = all(holder(prepared, context, fact) >= 0 for fact in there)
        return kept and context.used_tokens < prepared.raw.tokens[context.request] / 2

    def thrashed(self) -> int:
        """Reloads of what some edit hid at most three requests before."""
        log, entries, count = list(self.episode.log), self.episode.context.entries, 0
        ids = {entry.segment.id: i for i, entry in enumerate(entries)}
        for k, reload in enumerate(log):
            if reload.op == Op.RELOAD:
                target = ids[reload.targets[0]]
                count += any(
                    change.index == target
                    and change.form[0] == Form.FULL != change.form[1]
                    and reload.request - hiding.request <= 3
                    for hiding in log[:k]
                    for change in hiding.changes
                )
        return count

    def value(self) -> float:
        """The weighted terms without the potentials, from the episode's totals."""
        weights, episode, tally = self.weights, self.episode, self.episode.tally
        raw, requests = episode.prepared.raw.total, episode.prepared.task.requests
        calls = tally.forced_reloads + tally.failed_searches
        calls += sum(any(record.summarizer_tokens) for record in episode.log)
        refused = tally.overflows
        price = episode.prepared.config.miss_price_requests
        return (
            weights.token_savings * (1 - tally.bill / raw)
            - weights.demand * price * tally.miss_cost / raw
            - weights.action_cost * (0.1 * self.edits + calls) / requests
            - weights.budget * refused
            - weights.invalid * self.masked
            - weights.task * (episode.failed and not refused)
            - weights.thrash * self.thrashed()
            + weights.outcome * (1 - (tally.bill + price * tally.miss_cost) / raw)
            + weights.half_kept * self.half_kept
            - weights.reload_required * tally.forced_reloads
            + weights.summary_kept * self.good_summaries
        )


def from_scratch(
    engine: Engine, noise_seed: int, steps: list[Step], removed: int = -1
) -> tuple[Again, float]:
    """Plays all steps, or all but one edit; goes on without edits where they end too early."""
    prepared = engine.episodes[0].prepared
    again = Again(Episode(prepared, noise_seed), engine.reward)
    for number, step in enumerate(steps):
        again.play(number, step, leave_out=number == removed)
    while not again.episode.ended:
        again.send(len(steps))
    return again, again.value()
