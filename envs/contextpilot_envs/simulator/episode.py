"""One episode of one task: edits, requests, and what comes of them. Knows no Gymnasium."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from contextpilot.archives import MemoryArchive
from contextpilot.core.columns import Columns
from contextpilot.core.context import Context, ContextSnapshot
from contextpilot.core.edit import Edit, EditRecord, Op
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Form, Segment
from contextpilot.edits.apply import commit_edit, reload_for_agent
from contextpilot.edits.check import check_edit
from contextpilot.edits.services import Services
from contextpilot.edits.settle import settle_marks
from contextpilot_envs.simulator.billing import prefix_rate, request_price
from contextpilot_envs.simulator.facing import (
    Need,
    answer_to,
    holder,
    is_noticed,
    is_read,
    locate,
    need_of,
    summary_over,
    unread_results,
)
from contextpilot_envs.simulator.kept import kept_summaries, refill
from contextpilot_envs.simulator.prepared import PreparedTask

_NATIVE_REMOVERS = (Op.FOLD, Op.SUMMARIZE, Op.DROP)


@dataclass(slots=True)
class Tally:
    """Running totals of an episode; plain numbers, cheap to copy."""

    bill: float = 0.0
    bill_without_prefix: float = 0.0
    miss_cost: float = 0.0
    request_tokens: int = 0
    peak_tokens: int = 0
    silent_misses: int = 0
    forced_reloads: int = 0
    failed_searches: int = 0
    demands: int = 0
    demands_met: int = 0
    facts: int = 0
    facts_kept: int = 0
    final_missed: int = 0
    overflows: int = 0
    latency_seconds: float = 0.0
    removed: list[dict[str, object]] = field(default_factory=list)

    def copy(self) -> Tally:
        """Returns an independent copy."""
        twin = Tally(*(getattr(self, name) for name in self.__slots__))
        twin.removed = list(self.removed)
        return twin


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What one request came to.

    Attributes:
        bill: its price and that of its forced reloads, in input-token equivalents.
        miss_cost: what its silent misses cost.
        silent_misses, forced_reloads: how many.
        refused: it was over the window; the task has failed.
        ended: the episode is over.
        raw_price: what it costs without edits; of a refused one, with all that follow.
        calls: model calls that asked for an original, found or not.
    """

    bill: float
    miss_cost: float
    silent_misses: int
    forced_reloads: int
    refused: bool
    ended: bool
    raw_price: float
    calls: int


@dataclass(frozen=True, slots=True)
class EpisodeSnapshot:
    """The whole state of an episode."""

    context: ContextSnapshot
    log: EditLog
    tally: Tally
    previous_tokens: int
    pending_bill: float
    noise_seed: int
    ended: bool
    failed: bool
    summaries: tuple[Segment, ...]


class Episode:
    """Plays one task. Edits change the context at once; `send` makes the request."""

    def __init__(
        self, prepared: PreparedTask, noise_seed: int = 0, columns: Columns | None = None
    ) -> None:
        self.prepared, self.noise_seed = prepared, noise_seed
        self.context = Context(
            prepared.entries, prepared.members, prepared.budget,
            prefix_tokens=prepared.prefix_tokens, columns=columns, constants=prepared.constants,
        )  # fmt: skip
        base = prepared.services
        self.services = Services(
            base.tokenizer, base.summarizer, MemoryArchive(), base.goal, base.session,
            base.token_scale,
        )  # fmt: skip
        self.log = EditLog()
        self.tally = Tally()
        self.ended = self.failed = False
        self._previous_tokens = 0
        self._pending_bill = self._prefix_bill = 0.0
        self._arrive()

    # ---- editing -----------------------------------------------------------------------------

    def edit(self, edit: Edit, reason: str = "") -> EditRecord:
        """Applies an edit and bills its summarizer.

        Raises:
            IllegalEditError: when an invariant forbids it.
        """
        check_edit(self.context, edit)
        return self.commit(edit, reason)

    def commit(self, edit: Edit, reason: str = "") -> EditRecord:
        """Does the same with an edit that the action mask has already allowed."""
        record = commit_edit(self.context, edit, self.services, self.log, reason)
        self._bill_summarizer(record)
        return record

    def settle(self) -> None:
        """Lets marked segments leave that would leave on sending; once is as good as twice."""
        context = self.context
        if context.has_pending_break or context.cold or context.under_pressure:
            settle_marks(context, self.services, self.log)

    def send(self) -> RequestResult:
        """Sends the request, faces its demands, and brings what arrives after it."""
        context, prepared, tally = self.context, self.prepared, self.tally
        self.settle()
        request, tokens = context.request, context.used_tokens
        summarized, self._pending_bill = self._pending_bill, 0.0
        if context.overflows:
            return self._refuse(summarized)
        price = self._price(tokens)
        output = prepared.output_tokens[request] * prepared.config.price_table.output
        tally.request_tokens += tokens
        tally.peak_tokens = max(tally.peak_tokens, tokens)
        tally.latency_seconds += prepared.config.price_table.latency_seconds
        unread = tuple(unread_results(context))
        self._previous_tokens = tokens
        before = tally.silent_misses, tally.forced_reloads, tally.failed_searches
        extra = self._face(request, unread)
        bill = summarized + price + output + extra
        misses, reloads = tally.silent_misses - before[0], tally.forced_reloads - before[1]
        raw_price = prepared.raw.requests[request]
        miss_cost = misses * raw_price
        tally.bill += bill
        tally.bill_without_prefix += bill - self._prefix_bill
        self._prefix_bill = 0.0
        tally.miss_cost += miss_cost
        context.send()
        self._arrive()
        return RequestResult(
            bill, miss_cost, misses, reloads, False, self.ended, raw_price,
            reloads + tally.failed_searches - before[2],
        )  # fmt: skip

    # ---- requests ----------------------------------------------------------------------------

    def _refuse(self, summarized: float) -> RequestResult:
        # Somebody has to do the rest all the same: it is billed as raw's, so that failing early
        # is never cheaper than going on.
        raw = self.prepared.raw
        rest = sum(raw.requests[self.context.request :])
        self.tally.overflows += 1
        self.tally.bill += summarized + rest
        self.tally.bill_without_prefix += summarized + rest * raw.total_without_prefix / raw.total
        self.ended = self.failed = True
        for demands in self.prepared.demands[self.context.request :]:
            self.tally.demands += len(demands)
            self.tally.facts += sum(len(d.facts) for d in demands)
        return RequestResult(summarized + rest, 0.0, 0, 0, True, True, rest, 0)

    def _arrive(self) -> None:
        """Brings the segments of the next request, or ends the episode after the last one."""
        request = self.context.request
        if request >= self.prepared.task.requests:
            self.ended = True
            self.failed = self.failed or not self.succeeded
            return
        for index in self.prepared.arriving[request]:
            self.context.arrive(index)
        self.context.cold = request in self.prepared.cold

    def _bill_summarizer(self, record: EditRecord) -> None:
        read, written = record.summarizer_tokens
        if read or written:
            prices = self.prepared.config.price_table
            self._pending_bill += prices.input * read + prices.output * written
            self.tally.latency_seconds += prices.latency_seconds

    # ---- demands -----------------------------------------------------------------------------

    def _face(self, request: int, unread: tuple[int, ...]) -> float:
        """Faces all demands of a request; returns what forced reloads cost."""
        tally, prepared = self.tally, self.prepared
        spent, left = 0.0, prepared.config.max_reloads
        self.context.mark_sent()
        for index in unread:
            need = Need(index, self._seen_instead(index), "", "whole", "")
            met, cost, used = self._resolve(request, need, f"whole:{index}", left)
            spent, left = spent + cost, left - used
            if not met:  # an unread result is a demand of its own only when it was missed
                tally.demands += 1
        for demand in prepared.demands[request]:
            met = True
            tally.demands += 1
            missed_sources: set[int] = set()
            answer = answer_to(prepared, self.context, demand)
            for fact_id in demand.facts:
                fact = prepared.task.facts[fact_id]
                tally.facts += 1
                kept = holder(prepared, self.context, fact) >= 0
                tally.facts_kept += kept
                if is_read(prepared, self.context, fact_id, self.noise_seed, answer):
                    continue
                need = need_of(self.context, fact, demand.query)
                if need.source in missed_sources:
                    continue  # one wrong action for one thing that was not there
                fact_met, cost, used = self._resolve(request, need, f"fact:{fact_id}", left, answer)
                spent, left = spent + cost, left - used
                if not fact_met:
                    missed_sources.add(need.source)
                    met = False
                    tally.final_missed += demand.final
            tally.demands_met += met
        return spent

    def _resolve(
        self, request: int, need: Need, what: str, reloads_left: int, answer: str | None = None
    ) -> tuple[bool, float, int]:
        """Lets the agent notice and fetch, or not; returns (met, cost, reloads used)."""
        config = self.prepared.config
        noticed = is_noticed(self.prepared, request, need, what, self.noise_seed, answer)
        if not noticed or reloads_left <= 0:
            self._miss(request, need)
            return False, 0.0, 0
        index = locate(self.prepared, self.context, need)
        cost = config.reload_output_tokens * config.price_table.output
        if index < 0:
            self.tally.failed_searches += 1
            cost += self._resend()
            self._miss(request, need)
            return False, cost, 1
        room = self.context.budget.input_limit - self.context.used_tokens
        if self.context.entries[index].full_tokens > room:
            self._miss(request, need)
            return False, 0.0, 0
        reload_for_agent(self.context, index, self.services, self.log, "forced: the agent asked")
        self.tally.forced_reloads += 1
        cost += self._resend()
        return True, cost, 1

    def _resend(self) -> float:
        """Returns the price of sending the context again, with what was fetched."""
        context, tally = self.context, self.tally
        tokens = context.used_tokens
        price = self._price(tokens)
        context.mark_sent()
        self._previous_tokens = tokens
        tally.peak_tokens = max(tally.peak_tokens, tokens)
        tally.latency_seconds += self.prepared.config.price_table.latency_seconds
        return price

    def _price(self, tokens: int) -> float:
        """Returns what sending the context now costs; notes the fixed prefix's share of it."""
        prices, prefix = self.prepared.config.price_table, self.context.prefix_tokens
        cached = self.context.cached_tokens()
        price = request_price(prices, cached, tokens, self._previous_tokens)
        if prefix:
            warm = cached >= prefix and self._previous_tokens >= prices.minimum_prefix_tokens
            self._prefix_bill += prefix * prefix_rate(prices, tokens, warm=warm)
        return price

    def _miss(self, request: int, need: Need) -> None:
        self.tally.silent_misses += 1
        op, when = self._remover(need.source)
        self.tally.removed.append(
            {
                "request": request,
                "fact_kind": need.kind,
                "removed_by": op,
                "removed_at": when,
                "seen": need.seen,
            }
        )

    def _remover(self, index: int) -> tuple[str, int]:
        """Returns which edit hid a segment last, and before which request; "none": no edit did."""
        for record in reversed(self.log.live_since(-1)):
            if record.op in _NATIVE_REMOVERS:
                for change in record.changes:
                    if change.index == index and change.form[1] != Form.FULL:
                        return record.op.name.lower(), record.request
        return "none", -1

    def _seen_instead(self, index: int) -> str:
        form = self.context.columns.form[index]
        if form in (Form.STUB, Form.OUTLINE):
            return "stub"
        if form == Form.SUMMARY or summary_over(self.context, index) >= 0:
            return "summary"
        return "nothing"

    # ---- results -----------------------------------------------------------------------------

    @property
    def carried(self) -> tuple[int, float]:
        """What the next bill takes over: the last request's tokens, and what summaries cost."""
        return self._previous_tokens, self._pending_bill

    @property
    def succeeded(self) -> bool:
        """Whether the task is a success so far, by its own criterion."""
        tally = self.tally
        if tally.overflows:
            return False
        if self.prepared.task.success == "no_silent_miss":
            return tally.silent_misses == 0
        return tally.final_missed == 0

    @property
    def objective(self) -> float:
        """J of what has happened so far (the task's failure counts once it has ended)."""
        config, tally = self.prepared.config, self.tally
        cost = tally.bill + config.miss_price_requests * tally.miss_cost
        return -cost / self.prepared.raw.total - config.task_weight * (self.ended and self.failed)

    def edits_by_op(self) -> dict[str, int]:
        """Returns how many edits changed something, by operation; forced reloads excluded."""
        counts = Counter(
            [r.op for r in self.log.live_since(-1) if not r.reason.startswith("forced")]
        )
        return dict(sorted((op.name.lower(), count) for op, count in counts.items()))

    # ---- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> EpisodeSnapshot:
        """Returns the whole state; small arrays and numbers only."""
        return replace(self.bookmark(), summaries=kept_summaries(self.log, self.services))

    def bookmark(self) -> EpisodeSnapshot:
        """Returns the state without the archive's part of it, for `rewind`."""
        return EpisodeSnapshot(
            self.context.snapshot(), self.log.fork(), self.tally.copy(), self._previous_tokens,
            self._pending_bill, self.noise_seed, self.ended, self.failed, (),
        )  # fmt: skip

    def restore(self, snapshot: EpisodeSnapshot) -> None:
        """Returns to a snapshot of this task that this episode or another one has made."""
        self.rewind(snapshot)
        refill(self.context, self.services, snapshot.summaries)

    def rewind(self, snapshot: EpisodeSnapshot) -> None:
        """Does the same but for the archive, for whoever plays on and never looks into it."""
        self.context.restore(snapshot.context)
        self.log = snapshot.log.fork()
        self.tally = snapshot.tally.copy()
        self._previous_tokens = snapshot.previous_tokens
        self._pending_bill = snapshot.pending_bill
        self.noise_seed = snapshot.noise_seed
        self.ended, self.failed = snapshot.ended, snapshot.failed

    def fork(self, noise_seed: int | None = None) -> Episode:
        """Returns an independent episode in the same state, with its own columns."""
        twin = Episode(self.prepared, self.noise_seed)
        twin.restore(self.snapshot())
        if noise_seed is not None:
            twin.noise_seed = noise_seed
        return twin
