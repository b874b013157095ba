"""Plays a plan: on an episode directly, or action by action like any policy.

Where the plan leaves a need or the window unmet (copies end up where the plan cannot know), two
repairs act before a request is sent: what is needed last makes room, and what is needed now is
shown again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contextpilot.core.context import Context
from contextpilot.core.edit import Drop, Edit, Fold, Op, Placement, Reload, Summarize
from contextpilot.core.invariants import is_legal
from contextpilot.core.segment import Form
from contextpilot.edits.codec import ActionCodec, summary_limit
from contextpilot.observations.slots import archived_positions, listed_positions
from contextpilot_envs.engine import Engine
from contextpilot_envs.oracle.exhaustive import every_plan
from contextpilot_envs.oracle.plan import EDITS_PER_REQUEST, Plan, PlanModel
from contextpilot_envs.oracle.search import best_plans
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.facing import holder
from contextpilot_envs.simulator.prepared import PreparedTask


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: an operation with the preset of the action layout, on a segment."""

    op: Op
    preset: str
    index: int
    rule: str


_LEAVING = (
    (Op.FOLD, "stub", "fold"),
    (Op.FOLD, "outline", "outline"),
    (Op.SUMMARIZE, "this", "summarize"),
)
"""How a segment leaves its full form, in the order of `FORMS`."""


@dataclass(frozen=True, slots=True)
class Score:
    """What is played: a plan, and whether it is mended where it leaves something unmet."""

    plan: Plan
    mended: bool = True


def steps_at(episode: Episode, score: Score) -> Iterator[Step]:
    """Yields what is to be done before the present request and is not done yet, best first."""
    context = episode.context
    yield from _planned(episode, score.plan)
    if not score.mended:
        return
    needed = tuple(_needed_now(episode))
    lacking = sum(context.entries[i].full_tokens for i in needed)
    lacking -= context.budget.input_limit - context.used_tokens
    if lacking > 0:
        yield from _room_makers(episode, needed, lacking)
    for i in needed:
        yield Step(Op.RELOAD, "at_end", i, "reload_at_end")


def _planned(episode: Episode, plan: Plan) -> Iterator[Step]:
    context = episode.context
    c, request = context.columns, context.request
    copies = _copies(context)
    for i in np.nonzero((plan.copy < request) & (plan.copy_leave <= request))[0].tolist():
        for copy in copies.get(context.entries[i].segment.id, ()):
            if c.form[copy] == Form.FULL:
                yield Step(Op.DROP, "this", copy, "drop")
    for i in np.nonzero((plan.drop <= request) & (plan.drop > 0))[0].tolist():
        if c.rank[i] >= 0 and c.form[i]:
            yield Step(Op.DROP, "this", i, "drop")
    for i in np.nonzero((plan.leave <= request) & (plan.drop > request))[0].tolist():
        if c.rank[i] >= 0 and c.form[i] == Form.FULL and c.reloads[i] == 0:
            yield Step(*_LEAVING[plan.form[i]][:2], i, _LEAVING[plan.form[i]][2])
    for i in np.nonzero(plan.copy == request)[0].tolist():
        if context.entries[i].segment.id not in copies and c.rank[i] >= 0:
            yield Step(Op.RELOAD, "at_end", i, "reload_at_end")


def _copies(context: Context) -> dict[str, list[int]]:
    """Returns the indices of manager-made segments by the first id that they stand for."""
    found: dict[str, list[int]] = {}
    for i in range(context.native, len(context.entries)):
        lineage = context.entries[i].segment.lineage
        if lineage:
            found.setdefault(lineage[0], []).append(i)
    return found


def _needed_now(episode: Episode) -> Iterator[int]:
    """Yields segments whose facts this request demands and nothing visible shows."""
    context, prepared = episode.context, episode.prepared
    if context.request >= prepared.task.requests:
        return
    served: set[int] = set()
    for demand in prepared.demands[context.request]:
        for fact_id in demand.facts:
            fact = prepared.task.facts[fact_id]
            known = [i for i in fact.segments if context.columns.rank[i] >= 0]
            if not known or served.intersection(known) or holder(prepared, context, fact) >= 0:
                continue
            chosen = min(known, key=lambda i: context.entries[i].full_tokens)
            served.add(chosen)
            yield chosen


def _room_makers(episode: Episode, needed: tuple[int, ...], lacking: int) -> Iterator[Step]:
    """Yields folds, then drops, of what is needed last (Belady, 1966), the largest first.

    A request allows few edits, so what would hardly help is passed over at first. Where not all
    that is needed now fits, it goes too: a miss is cheaper than a refusal.
    """
    context = episode.context
    c, now, later = context.columns, context.request, _next_need(episode)
    shown = [i for i in context.visible() if not c.pinned[i] and i not in needed]
    shown.sort(key=lambda i: (not c.sent[i], -later.get(i, 1 << 20), -c.size[i]))
    worth = lacking / EDITS_PER_REQUEST
    for least in (worth, 0.0):
        for i in shown:
            if later.get(i) != now and c.size[i] - c.stub[i] > least:
                yield Step(Op.FOLD, "stub", i, "fold")
        for i in shown:
            group = context.group(i)
            free = sum(c.size[j] for j in group)
            if free > least and all(later.get(j) != now for j in group):
                yield Step(Op.DROP, "this", i, "drop")
    if context.overflows:
        for i in sorted(shown, key=lambda i: (not c.sent[i], -c.size[i])):
            yield Step(Op.FOLD, "stub", i, "fold")


def _next_need(episode: Episode) -> dict[int, int]:
    """Returns per segment the next request, from now on, that needs a fact of it."""
    prepared, found = episode.prepared, dict[int, int]()
    copies = _copies(episode.context)
    for demand in prepared.task.demands:
        if demand.request < episode.context.request:
            continue
        for fact_id in demand.facts:
            for i in prepared.task.facts[fact_id].segments:
                for j in (i, *copies.get(prepared.task.segments[i].id, ())):
                    found[j] = min(found.get(j, 1 << 20), demand.request)
    return found


def play(
    prepared: PreparedTask,
    plan: Plan,
    noise_seed: int,
    *,
    mended: bool = True,
    codec: ActionCodec | None = None,
) -> Episode:
    """Returns the episode that a plan leads to, played on the simulator itself.

    With a codec, only what has one of its slots is edited, as a policy could.
    """
    score = Score(plan, mended)
    episode = Episode(prepared, noise_seed)
    while not episode.ended:
        listed = None if codec is None else _listed(episode.context, codec)
        for _ in range(prepared.config.max_edits - 1):
            step = next(
                (
                    s
                    for s in steps_at(episode, score)
                    if (listed is None or s.index in listed)
                    and is_legal(s.rule, episode.context, s.index)
                ),
                None,
            )
            if step is None:
                break
            episode.edit(_edit(prepared, episode, step))
        episode.send()
    return episode


def _listed(context: Context, codec: ActionCodec) -> frozenset[int]:
    """Returns the segments that have a slot for the present request."""
    count, c = len(context.entries), context.columns
    order = np.array(c.order[: context.length], np.intp)[None]
    form, size, pinned, kind, edited = (
        np.array(column[:count])[order] for column in (c.form, c.size, c.pinned, c.kind, c.edited)
    )
    shown = listed_positions(order, form, size, pinned, codec.context_slots)
    latest, gone = archived_positions(order, form, kind, edited, codec.archive_slots)
    return frozenset([*order[shown].tolist(), *order[0, latest[0, : gone[0]]].tolist()])


def _edit(prepared: PreparedTask, episode: Episode, step: Step) -> Edit:
    if step.op == Op.RELOAD:
        return Reload((step.index,), Placement.AT_END)
    if step.op == Op.DROP:
        return Drop((step.index,))
    if step.op == Op.SUMMARIZE:
        limit = summary_limit(
            episode.context.columns.size[step.index], prepared.budget.summarize_max_tokens
        )
        return Summarize((step.index,), limit)
    return Fold((step.index,), Form.OUTLINE if step.preset == "outline" else Form.STUB)


def oracle_score(
    prepared: PreparedTask, noise_seed: int, codec: ActionCodec | None = None
) -> Score:
    """Returns the plan whose played episode has the highest objective, mended or not.

    Args:
        prepared: the task.
        noise_seed: what its agent will notice.
        codec: the action layout that it is to be played through; None: edits need no slot.
    """
    slots = (codec.context_slots, codec.archive_slots) if codec else None
    scores: list[Score] | None = prepared.memo.get(f"scores {slots}")
    if scores is None:
        model = PlanModel(prepared, archive_slots=codec.archive_slots if codec else None)
        scores = [Score(p, mended) for p in best_plans(model) for mended in (True, False)]
        scores += [Score(plan, mended=False) for plan in every_plan(model)]
        prepared.memo[f"scores {slots}"] = scores
    return max(
        scores,
        key=lambda s: play(prepared, s.plan, noise_seed, mended=s.mended, codec=codec).objective,
    )


class OraclePolicy:
    """Plays the hindsight plan of whatever task its row is at. Sees the simulator itself."""

    name = "oracle"

    def __init__(self, engine: Engine, row: int) -> None:
        self._engine, self._row = engine, row
        self._score: Score | None = None

    def reset(self, seed: int) -> None:  # noqa: ARG002 - the noise seed is the episode's
        """Forgets the last task's plan."""
        self._score = None

    def __call__(self, observation: object) -> int:  # noqa: ARG002 - it looks behind it
        """Returns the next edit that has a slot, or keep."""
        engine, row = self._engine, self._row
        episode, encoder = engine.episodes[row], engine.encoder
        if self._score is None:
            self._score = oracle_score(episode.prepared, episode.noise_seed, engine.codec)
        if engine.states[row].step >= engine.simulator.max_edits - 1:
            return 0
        mask = encoder.action_mask[row]
        for step in steps_at(episode, self._score):
            for archived, slots in ((False, encoder.slot_index), (True, encoder.archive_index)):
                found = np.nonzero(slots[row] == step.index)[0]
                if len(found) and (not archived or step.op == Op.RELOAD):
                    action = engine.codec.encode(
                        step.op, step.preset, int(found[0]), archived=archived
                    )
                    if mask[action]:
                        return action
        return 0
