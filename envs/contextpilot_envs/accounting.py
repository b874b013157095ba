"""What a step of an episode came to, as the facts that reward terms are made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from contextpilot.core.edit import MOVED_FROM, UNCHANGED, EditRecord, Op, Outcome
from contextpilot.core.segment import Form
from contextpilot.rewards.terms import THRASH_REQUESTS, StepFacts
from contextpilot_envs.potentials import PotentialTracker, Shaping
from contextpilot_envs.simulator.episode import Episode, RequestResult

_FULL = int(Form.FULL)
_RELOAD, _SUMMARIZE = Op.RELOAD, Op.SUMMARIZE
_HIDING = (Op.SUMMARIZE, Op.FOLD, Op.DROP)
_APPLIED = Outcome.APPLIED


def send_request(episode: Episode, tracker: PotentialTracker | None) -> tuple[RequestResult, bool]:
    """Sends an episode's request.

    Args:
        episode: sent and billed.
        tracker: of its key facts, where a weighted term needs it.

    Returns:
        What came of it, and whether it had every key fact in less than half of raw's tokens; False
        without a tracker.
    """
    half_kept = False
    if tracker is not None:
        episode.settle()  # so that facts are looked for in what the agent is about to see
        context = episode.context
        raw_tokens = episode.prepared.raw.tokens[context.request]
        if 2 * context.used_tokens < raw_tokens and not context.overflows:
            half_kept = tracker.all_readable()
    return episode.send(), half_kept


def step_facts(
    episode: Episode,
    logged: int,
    record: EditRecord | None = None,
    result: RequestResult | None = None,
    *,
    masked: bool = False,
    half_kept: bool = False,
    shaping: Shaping = (0.0, 0.0, 0.0),
) -> StepFacts:
    """Returns what a step came to.

    Args:
        episode: after the step.
        logged: the length of its log before the step.
        record: of the step's edit, where it made one.
        result: of the request, where it sent one.
        masked: the action was forbidden.
        half_kept: as `send_request` says.
        shaping: how much the potentials changed.
    """
    prepared, tally = episode.prepared, episode.tally
    total, requests = prepared.raw.total, prepared.task.requests
    edits = calls = thrashed = summaries = 0
    if record is not None:
        edits, calls = 1, int(any(record.summarizer_tokens))
        if record.op == _RELOAD:
            thrashed = int(is_thrash(episode, record))
        elif record.op == _SUMMARIZE and record.outcome == _APPLIED:
            missed = tally.silent_misses - (result.silent_misses if result else 0)
            summaries = int(missed == 0)
    if result is None:
        return _edit_facts(total, requests, masked, edits, calls, thrashed, shaping, summaries)
    if result.forced_reloads:
        start = logged if record is None else record.id + 1
        thrashed += sum(is_thrash(episode, reload) for reload in _reloads(episode, start))
    miss_price, outcome = prepared.config.miss_price_requests, 0.0
    if result.ended:
        outcome = 1.0 - (tally.bill + miss_price * tally.miss_cost) / total
    return StepFacts(
        total, requests, int(masked), edits, calls + result.calls, result.raw_price, result.bill,
        miss_price * result.miss_cost, int(result.refused),
        int(episode.failed and not result.refused), result.forced_reloads, thrashed, *shaping,
        outcome, int(half_kept), summaries,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _edit_facts(
    total: float, requests: int, masked: bool, edits: int, calls: int, thrashed: int,
    shaping: Shaping, summaries: int,
) -> StepFacts:  # fmt: skip
    """Returns what a step came to that sent nothing; most of them are alike."""
    return StepFacts(
        total, requests, int(masked), edits, calls, thrashed=thrashed, key_info=shaping[0],
        reload=shaping[1], rent=shaping[2], summaries_kept=summaries,
    )  # fmt: skip


def is_thrash(episode: Episode, reload: EditRecord) -> bool:
    """True where a reload shows what an edit hid at most `THRASH_REQUESTS` requests before."""
    log, entries = episode.log, episode.context.entries
    since, edited = reload.request - THRASH_REQUESTS, episode.context.columns.edited
    reloaded = {
        row[0]
        for row in reload.rows
        if row[MOVED_FROM] == UNCHANGED and entries[row[0]].id in reload.targets
    }
    if all(edited[index] < since for index in reloaded):
        return False  # no edit has hidden them lately
    for record in reversed(log):
        if record.request < since:
            return False
        if record.id < reload.id and record.op in _HIDING:
            for row in record.rows:
                if row[0] in reloaded and row[1] == _FULL != row[2] and log.is_live(record):
                    return True
    return False


def _reloads(episode: Episode, start: int) -> Iterator[EditRecord]:
    """Yields the reloads in an episode's log from a record on."""
    log = episode.log
    return (log[n] for n in range(start, len(log)) if log[n].op == _RELOAD)
