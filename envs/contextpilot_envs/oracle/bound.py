"""A certified lower bound on the bill of any policy that reads everything and misses nothing."""

from __future__ import annotations

from contextpilot.core.segment import Form, Kind
from contextpilot_envs.oracle.needs import needs_of
from contextpilot_envs.simulator.prepared import PreparedTask


def lower_bound(prepared: PreparedTask, *, results_only: bool = False) -> float:
    """Returns a bill that no miss-free policy can go below, in input-token equivalents.

    Prefix breaks are free and segments are independent: fixed prefix and pinned segments pay rent
    to the end; everything else is written once and may vanish as soon as it was read, but what only
    one segment states must be there whenever it is demanded, in its smallest form that shows it,
    by staying (rent) or by being written again. Cold caches and summarizer calls are left out.

    Args:
        prepared: the task.
        results_only: the bound for policies that only fold tool results: everything else stays,
            and of a result at least its stub.
    """
    task, prices = prepared.task, prepared.config.price_table
    needs, horizon = needs_of(prepared), task.requests
    # Below the minimum prefix every token costs `input`, which is never less than these two.
    rent, write = min(prices.cached_read, prices.input), min(prices.cache_write, prices.input)
    bill = prices.output * sum(prepared.output_tokens)
    bill += prepared.prefix_tokens * (write + rent * (horizon - 1))
    for i, entry in enumerate(prepared.entries):
        arrival, segment = task.arrivals[i], entry.segment
        if arrival >= horizon:
            continue
        bill += write * entry.full_tokens
        later = horizon - 1 - arrival
        if segment.pinned or (results_only and segment.kind != Kind.RESULT):
            bill += rent * entry.full_tokens * later
            continue
        least = entry.stub_tokens if results_only else 0
        bill += rent * least * later
        bill += _kept(prepared, i, needs.sole[i], least, rent, write)
    return bill


def _kept(
    prepared: PreparedTask,
    index: int,
    pairs: tuple[tuple[int, int], ...],
    least: int,
    rent: float,
    write: float,
) -> float:
    """Returns what keeping or fetching one segment for the demands that only it serves costs.

    `least` tokens of it are paid for anyway.
    """
    cost, since = 0.0, prepared.task.arrivals[index]
    for request in sorted({request for request, _ in pairs}):
        values = [prepared.task.facts[f].value for r, f in pairs if r == request]
        size = max(0, _smallest(prepared, index, values) - least)
        gap = request - since
        if gap > 0:
            cost += min(rent * size * gap, write * size)
        since = request
    return cost


def _smallest(prepared: PreparedTask, index: int, values: list[str]) -> int:
    """Returns the tokens of the smallest form that shows all values, or of the longest of them.

    Not of all of them: one value may hold another.
    """
    entry = prepared.entries[index]
    bare = max(prepared.services.count(value) for value in values)
    sizes = [entry.full_tokens, bare]
    for form in (Form.STUB, Form.OUTLINE):
        if prepared.allows(index, form):
            text = entry.text(form)
            if all(value in text for value in values):
                sizes.append(entry.tokens(form))
    return min(sizes)
