"""A task made ready to play: interned, priced, its facts indexed. Shared by all its episodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from contextpilot.archives import MemoryArchive
from contextpilot.core.budget import UNLIMITED, TokenBudget
from contextpilot.core.context import constant_columns
from contextpilot.core.invariants import OUTLINE_MIN_TOKENS, SUMMARY_MIN_TOKENS
from contextpilot.core.segment import Form, Kind, Role
from contextpilot.edits.codec import summary_limit
from contextpilot.edits.services import Services
from contextpilot.errors import ConfigurationError
from contextpilot.observations.statics import Statics
from contextpilot.retrieval.base import Retriever
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot_envs.simulator.billing import RawBill, raw_bill
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import Demand, Task


class PreparedTask:
    """Everything about a task that does not change while it is played.

    Attributes:
        task, config: as given.
        services: for `apply_edit`; its archive is replaced per episode.
        entries, members: the interned segments and exchanges.
        statics: constant observation features.
        arriving: per request, the indices that arrive before it.
        demands: per request, the demands that it faces.
        raw: the bill without any edit.
        budget: limits in tokens.
        prefix_tokens: fixed prefix that counts and is billed.
        output_tokens: per request, what the agent's turn costs as output.
        memo: what others have computed of the task (the oracle's plans) and want to keep with it.
    """

    def __init__(
        self, task: Task, config: SimulatorConfig, tokenizer: Tokenizer, summarizer: Summarizer
    ) -> None:
        self.task, self.config = task, config
        self.services = Services(
            tokenizer, summarizer, MemoryArchive(), task.goal, task.id, task.token_scale
        )
        self.entries, self.members = self.services.intern(task.segments)
        self.prefix_tokens = task.prefix_tokens if config.bill_prefix else 0
        arriving: list[list[int]] = [[] for _ in range(task.requests)]
        for index, arrival in enumerate(task.arrivals):
            if arrival < task.requests:
                arriving[arrival].append(index)
        self.arriving: Sequence[Sequence[int]] = arriving
        faced: list[list[Demand]] = [[] for _ in range(task.requests)]
        for demand in task.demands:
            for fact in (task.facts[f] for f in demand.facts):
                if all(task.arrivals[i] > demand.request for i in fact.segments):
                    raise ConfigurationError(
                        f"task {task.id!r} demands a fact of kind {fact.kind!r} at request "
                        f"{demand.request}, before any segment that states it has arrived."
                    )
            faced[demand.request].append(demand)
        self.demands: Sequence[Sequence[Demand]] = faced
        self.output_tokens = task.output_tokens if config.bill_output else (0,) * task.requests
        self.raw: RawBill = raw_bill(
            task, self.entries, config.price_table, self.prefix_tokens, self.output_tokens
        )
        self.budget = self._budget()
        self.cold = frozenset(task.cold_requests)
        self.memo: dict[str, Any] = {}

    @cached_property
    def constants(self) -> dict[str, memoryview]:
        """Constant columns of its contexts."""
        return constant_columns(self.entries, self.members)

    @cached_property
    def statics(self) -> Statics:
        """Constant observation features; built when first observed."""
        return Statics(self.entries)

    @cached_property
    def retriever(self) -> Retriever:
        """BM25 over all originals; built when an agent first has to search."""
        from contextpilot.retrieval import Bm25Retriever

        return Bm25Retriever([segment.text for segment in self.task.segments])

    def allows(self, index: int, form: Form) -> bool:
        """True where a segment may ever be shown in a form, whatever the moment."""
        entry = self.entries[index]
        if entry.segment.pinned:
            return False
        kind, size = entry.segment.kind, entry.full_tokens
        if form == Form.SUMMARY:
            return size >= SUMMARY_MIN_TOKENS and kind not in (
                Kind.TURN, Kind.SUMMARY, Kind.IMAGE
            )  # fmt: skip
        if form == Form.OUTLINE:
            return entry.foldable and size >= OUTLINE_MIN_TOKENS and kind != Kind.TURN
        return entry.foldable

    def summary_of(self, index: int) -> tuple[int, float]:
        """Returns the tokens of a segment's own summary, and what asking for it costs."""
        entry = self.entries[index]
        limit = summary_limit(entry.full_tokens, self.budget.summarize_max_tokens)
        text = self.services.summarize([entry.segment], limit)
        tokens = self.services.shown_tokens(text)
        entry.set_summary(text, tokens)
        prices = self.config.price_table
        read = self.services.count(entry.segment.text)
        return tokens, prices.input * read + prices.output * self.services.count(text)

    def _budget(self) -> TokenBudget:
        config = self.config
        window = UNLIMITED
        if config.max_context_tokens is not None:
            window = config.max_context_tokens
        elif config.budget_fraction is not None:
            peak = max(self.raw.tokens)
            floor = self._least_tokens() + config.reserved_output_tokens
            share = round(config.budget_fraction * peak) + config.reserved_output_tokens
            window = max(share, floor)
        return TokenBudget(
            window, config.reserved_output_tokens, config.compression_threshold,
            config.summarize_max_tokens,
        )  # fmt: skip

    def _least_tokens(self) -> int:
        """Returns what no edit can remove before some request.

        That is the fixed prefix, what is pinned, what is unread, and in an open tool loop turns
        with reasoning and the stubs of their results. A window below it cannot be satisfied by
        any policy, so a budget given as a share never goes below it.
        """
        fixed, loop, least = self.prefix_tokens, 0, 0
        for indices in self.arriving:
            unread = 0
            for i in indices:
                entry = self.entries[i]
                segment = entry.segment
                if segment.role == Role.USER and segment.kind == Kind.TEXT:
                    loop = 0  # a new user text closes the tool loop
                leader = self.entries[entry.leader].segment
                if segment.pinned:
                    fixed += entry.full_tokens
                    continue
                unread += entry.full_tokens
                if leader.has_reasoning:
                    kept = entry.full_tokens if segment is leader else entry.stub_tokens
                    loop += kept
                    unread -= kept
            least = max(least, fixed + loop + unread)
        return least
