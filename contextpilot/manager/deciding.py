"""The edit steps of one request: the policy's, and what makes the request fit."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from contextpilot.core.edit import EditRecord, Outcome
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.desk import Desk
from contextpilot.manager.fallback import FallbackLimits, FallbackPolicy
from contextpilot.policies.base import Policy
from contextpilot.policies.guard import FitGuard
from contextpilot.policies.rules import ThresholdFold


class Decider:
    """Asks a policy up to K times a request; a fixed rule stands in where it fails.

    Whatever the policy does, the request fits in the end if it can be made to: where it is over
    the limit after the last step, the oldest that may go goes, as it does under every baseline.

    Attributes:
        policy: the policy behind its guard; it has a record of each decision that failed.
    """

    def __init__(
        self, policy: Policy, rule: Policy, limits: FallbackLimits | None, config: ManagerConfig
    ) -> None:
        self.policy = FallbackPolicy(policy, rule, limits)
        self._rule, self._guard = rule, FitGuard(rule)
        self._steps, self._target = config.max_edits, config.target
        share = config.target if config.target is not None else 1.0
        self._compaction = ThresholdFold(share, share, 0, "target")

    def reset(self, seed: int) -> None:
        """Begins a conversation."""
        self.policy.reset(seed)

    def decide(self, desk: Desk) -> list[EditRecord]:
        """Makes the edits of one request; returns their records."""
        made: list[EditRecord] = []
        rejected: set[int] = set()
        planned = deque[int]()
        for step in range(self._steps):
            failed = len(self.policy.records)
            if not planned:
                planned.extend(self.policy.plan(desk.observe(step)))
            action = planned.popleft()
            if action == 0 or action in rejected:
                break  # no progress: asking a summarizer again would not help
            by_rule = self.policy.is_parked or len(self.policy.records) > failed
            name = f"{self._rule.name}, for {self.policy.name}" if by_rule else self.policy.name
            record = desk.play(action, name)
            made.append(record)
            if record.outcome != Outcome.APPLIED:
                rejected.add(action)
                planned.clear()
            else:
                rejected.clear()
        if desk.context.overflows:
            made += self._until_kept(self._guard, desk, self._steps)
        if self._target is not None:
            made += self._until_kept(self._compaction, desk, 1)
            made += self._oversized(desk)
        context = desk.context
        if context.has_pending_break or context.cold or context.under_pressure:
            settled = desk.settle()
            made += [settled] if settled is not None else []
        return made

    def _oversized(self, desk: Desk) -> list[EditRecord]:
        """Folds inside their messages what alone keeps the request over its threshold.

        Only then may it be something that the agent has not seen: a stub that says what is there
        and how to fetch it, in place of a result that takes more room than the host allows.
        Nothing is tried where what must stay is over the target already.
        """
        context, target = desk.context, self._target
        if target is None or not context.under_pressure:
            return []
        budget, c = context.budget, context.columns
        goal = int(target * budget.input_limit)
        pinned = sum(c.size[i] for i in context.visible() if c.pinned[i])
        if context.prefix_tokens + pinned >= goal:
            return []
        context.budget = replace(budget, max_context_tokens=goal + budget.reserved_output_tokens)
        desk.refresh()  # limits are read with the slots
        try:
            return self._until_kept(ThresholdFold(1.0, 1.0, 0, "oversized"), desk, 1)
        finally:
            context.budget = budget
            desk.refresh()

    def _until_kept(self, rule: Policy, desk: Desk, step: int) -> list[EditRecord]:
        """Lets a rule act until it keeps, with fresh slots too; each step makes the request less.

        What has no slot gets one once what had it is gone.
        """
        made: list[EditRecord] = []
        refreshed = False
        while True:
            action = rule(desk.observe(step))
            if action == 0:
                if refreshed:
                    return made
                desk.refresh()
                refreshed = True
                continue
            before = desk.context.total
            made.append(desk.play(action, rule.name))
            refreshed = False
            if desk.context.total >= before:
                return made
