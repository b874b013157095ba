"""Plays a plan: on an episode directly, or action by action like any policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contextpilot.core.edit import Drop, Edit, Fold, Op, Placement, Reload, Summarize
from contextpilot.core.invariants import is_legal
from contextpilot.core.segment import Form
from contextpilot.edits.codec import summary_limit
from contextpilot_envs.engine import Engine
from contextpilot_envs.oracle.plan import FORMS, Plan, PlanModel
from contextpilot_envs.oracle.search import best_plans
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.prepared import PreparedTask


@dataclass(frozen=True, slots=True)
class Step:
    """One planned edit: an operation with the preset of the action layout, on a segment."""

    op: Op
    preset: str
    index: int
    rule: str


_FORM_STEPS = {
    Form.STUB: (Op.FOLD, "stub", "fold"),
    Form.OUTLINE: (Op.FOLD, "outline", "outline"),
    Form.SUMMARY: (Op.SUMMARIZE, "this", "summarize"),
}


def steps_at(episode: Episode, plan: Plan, request: int) -> Iterator[Step]:
    """Yields what the plan wants before a request and is not done yet, copies first."""
    context = episode.context
    c = context.columns
    copied = {
        context.entries[i].segment.lineage[0]: i
        for i in range(context.native, len(context.entries))
        if context.entries[i].segment.lineage
    }
    for i in np.nonzero(plan.copy == request)[0]:
        if context.entries[int(i)].segment.id not in copied and c.rank[int(i)] >= 0:
            yield Step(Op.RELOAD, "at_end", int(i), "reload_at_end")
    for i in np.nonzero((plan.copy < request) & (plan.copy_leave <= request))[0]:
        copy = copied.get(context.entries[int(i)].segment.id, -1)
        if copy >= 0 and c.form[copy] == Form.FULL:
            yield Step(Op.FOLD, "stub", copy, "fold")
    for i in np.nonzero((plan.drop <= request) & (plan.drop > 0))[0]:
        if c.rank[int(i)] >= 0 and c.form[int(i)]:
            yield Step(Op.DROP, "this", int(i), "drop")
    for i in np.nonzero((plan.leave <= request) & (plan.drop > request))[0]:
        if c.rank[int(i)] >= 0 and c.form[int(i)] == Form.FULL and c.reloads[int(i)] == 0:
            yield Step(*_FORM_STEPS[FORMS[plan.form[int(i)]]][:2], int(i), _FORM_STEPS[FORMS[plan.form[int(i)]]][2])


def play(prepared: PreparedTask, plan: Plan, noise_seed: int) -> Episode:
    """Returns the episode that a plan leads to, played on the simulator itself."""
    episode = Episode(prepared, noise_seed)
    while not episode.ended:
        for _ in range(prepared.config.max_edits - 1):
            step = next(
                (
                    s
                    for s in steps_at(episode, plan, episode.context.request)
                    if is_legal(s.rule, episode.context, s.index)
                ),
                None,
            )
            if step is None:
                break
            episode.edit(_edit(prepared, episode, step))
        episode.send()
    return episode


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


def oracle_plan(prepared: PreparedTask, noise_seed: int) -> Plan:
    """Returns the plan whose played episode has the highest objective."""
    plans = best_plans(PlanModel(prepared))
    return max(plans, key=lambda plan: play(prepared, plan, noise_seed).objective)


class OraclePolicy:
    """Plays the hindsight plan of whatever task its row is at. Sees the simulator itself."""

    name = "oracle"

    def __init__(self, engine: Engine, row: int) -> None:
        self._engine, self._row = engine, row
        self._plan: Plan | None = None

    def reset(self, seed: int) -> None:
        """Forgets the last task's plan."""
        self._plan = None

    def __call__(self, observation: object) -> int:
        """Returns the next planned edit that has a slot, or keep."""
        engine, row = self._engine, self._row
        episode = engine.episodes[row]
        if self._plan is None:
            self._plan = oracle_plan(episode.prepared, episode.noise_seed)
        mask, encoder = engine.encoder.action_mask[row], engine.encoder
        for step in steps_at(episode, self._plan, episode.context.request):
            for archived, slots in ((False, encoder.slot_index), (True, encoder.archive_index)):
                found = np.nonzero(slots[row] == step.index)[0]
                if len(found) and (not archived or step.op == Op.RELOAD):
                    action = engine.codec.encode(
                        step.op, step.preset, int(found[0]), archived=archived
                    )
                    if mask[action]:
                        return action
        return 0
