"""What happens when the agent needs facts: it reads them, fetches them, or acts wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from contextpilot.core.context import Context
from contextpilot.core.segment import Form, Kind
from contextpilot.readers.base import says_missing, states
from contextpilot_envs.simulator.asking import ask
from contextpilot_envs.simulator.noise import uniform
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.simulator.readers import unread_probability
from contextpilot_envs.tasks.base import Demand, KeyFact

_FULL = int(Form.FULL)


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that cannot be read now: where it is, and what the agent sees instead.

    Attributes:
        source: index of the segment to fetch.
        seen: "stub", "summary", "nothing" or "stale".
        value: what must be readable; "" where the whole segment must be.
        kind: the fact's kind.
        query: what the agent would search for.
    """

    source: int
    seen: str
    value: str
    kind: str
    query: str


def holder(prepared: PreparedTask, context: Context, fact: KeyFact) -> int:
    """Returns a visible segment in whose present form the fact can be read; -1: none."""
    c, entries = context.columns, context.entries
    partly = []
    for i in fact.segments:
        if c.rank[i] < 0:
            continue
        form = c.form[i]
        if form == _FULL:
            return i
        if form:
            partly.append(i)
    for i in partly:
        if fact.value in entries[i].text(Form(c.form[i])):
            return i
    for i in range(len(prepared.entries), len(entries)):
        if c.form[i] and fact.value in entries[i].text(Form(c.form[i])):
            return i
    return -1


def answer_to(prepared: PreparedTask, context: Context, demand: Demand) -> str | None:
    """Returns what a model answers to a demand; None where the reader is simulated.

    Raises:
        ReaderError: when the model cannot answer.
    """
    if prepared.config.model is None:
        return None
    task = prepared.task
    return ask(prepared.config.model, context, demand, task.goal, task.language)


def is_read(
    prepared: PreparedTask, context: Context, fact_id: int, seed: int, answer: str | None = None
) -> bool:
    """True where the reader finds the fact in the context as it stands, or has answered with it."""
    fact = prepared.task.facts[fact_id]
    if answer is not None:
        return states(answer, fact.value)
    index = holder(prepared, context, fact)
    if index < 0:
        return False
    p = unread_probability(prepared.config.reader, context, index)
    return p == 0.0 or uniform(seed, prepared.task.id, context.request, f"read:{fact_id}:0") >= p


def is_noticed(
    prepared: PreparedTask, request: int, need: Need, what: str, seed: int, answer: str | None
) -> bool:
    """True where the agent notices that something is missing: by chance, or as it answered."""
    if answer is not None:
        return says_missing(answer)
    chance = prepared.config.notice_table.of(need.seen)
    return uniform(seed, prepared.task.id, request, what) < chance


def need_of(context: Context, fact: KeyFact, query: str) -> Need:
    """Returns what the agent sees in place of a fact that it cannot read.

    A stale visible copy misleads whatever else is there; a stub or a summary that stands for a
    source names it; otherwise nothing tells that there was something.
    """
    c = context.columns
    known = [i for i in fact.segments if c.rank[i] >= 0]
    folded = [i for i in known if c.form[i] in (Form.STUB, Form.OUTLINE)]
    summarized = [i for i in known if c.form[i] == Form.SUMMARY or summary_over(context, i) >= 0]
    seen = "stub" if folded else "summary" if summarized else "nothing"
    if any(c.rank[i] >= 0 and c.form[i] == _FULL for i in fact.stale_segments):
        seen = "stale"
    source = (folded or summarized or known[-1:] or fact.segments[-1:])[0]
    return Need(source, seen, fact.value, fact.kind, query)


def summary_over(context: Context, index: int) -> int:
    """Returns the visible summary that stands for a segment, or for its summary; -1: none."""
    c = context.columns
    covering = c.covered[index]
    while covering >= 0 and not c.form[covering]:
        covering = c.covered[covering]
    return covering


def unread_results(context: Context) -> Iterable[int]:
    """Yields results that were edited before the agent saw them once."""
    c = context.columns
    for i in context.unread:
        if c.kind[i] == Kind.RESULT and c.form[i] != _FULL:
            yield i


def locate(prepared: PreparedTask, context: Context, need: Need) -> int:
    """Returns the segment that the agent fetches for a need; -1 where its search fails.

    What is shown in any form is fetched by its id. A summary of several names the ids that it
    stands for, so the search is among these; otherwise it is among everything that is not visible.
    Finding a call is finding its results.
    """
    c = context.columns
    if c.form[need.source]:
        return need.source
    covering = summary_over(context, need.source)
    native = len(prepared.entries)
    allowed = [
        i
        for i in range(native)
        if c.rank[i] >= 0
        and not c.form[i]
        and (covering < 0 or summary_over(context, i) == covering)
    ]
    found = prepared.retriever.search(need.query or prepared.task.goal, 1, allowed)
    if not found:
        return -1
    best = found[0][0]
    if prepared.entries[best].leader == prepared.entries[need.source].leader:
        return need.source
    return best if need.value and need.value in context.entries[best].segment.text else -1
