"""What requests cost: with a prompt cache, the price depends on where the prefix breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contextpilot.core.interned import Interned
from contextpilot.core.prices import Prices
from contextpilot_envs.tasks.base import Task


@dataclass(frozen=True, slots=True)
class RawBill:
    """What a task costs when nothing is ever edited and no limit holds.

    Attributes:
        requests: price of each request, output included, in input-token equivalents.
        tokens: input tokens of each request, fixed prefix included.
        total: the sum of `requests`.
        total_without_prefix: the same, had the fixed prefix been free.
    """

    requests: tuple[float, ...]
    tokens: tuple[int, ...]
    total: float
    total_without_prefix: float


def request_price(prices: Prices, cached_tokens: int, tokens: int, previous_tokens: int) -> float:
    """Returns the price of one request's input.

    Args:
        prices: relative prices.
        cached_tokens: longest prefix that equals the previous request's.
        tokens: input tokens of this request.
        previous_tokens: of the one before; below the minimum nothing was cached.
    """
    if previous_tokens < prices.minimum_prefix_tokens:
        cached_tokens = 0
    return prices.request(cached_tokens, tokens - cached_tokens)


def prefix_rate(prices: Prices, tokens: int, *, warm: bool) -> float:
    """Returns what a token of the fixed prefix costs in a request of so many tokens."""
    if tokens < prices.minimum_prefix_tokens:
        return prices.input
    return prices.cached_read if warm else prices.cache_write


def raw_bill(
    task: Task,
    entries: Sequence[Interned],
    prices: Prices,
    prefix_tokens: int,
    output_tokens: Sequence[int],
) -> RawBill:
    """Returns what the task costs as it was recorded."""
    arriving = [0] * task.requests
    for arrival, entry in zip(task.arrivals, entries, strict=False):
        if arrival < task.requests:
            arriving[arrival] += entry.full_tokens
    cold = set(task.cold_requests)
    requests, tokens = [], []
    previous, total, of_prefix = 0, prefix_tokens, 0.0
    for t in range(task.requests):
        total += arriving[t]
        cached = 0 if t in cold else previous
        price = request_price(prices, cached, total, previous)
        requests.append(price + prices.output * output_tokens[t])
        tokens.append(total)
        warm = cached > 0 and previous >= prices.minimum_prefix_tokens
        of_prefix += prefix_tokens * prefix_rate(prices, total, warm=warm)
        previous = total
    bill = sum(requests)
    return RawBill(tuple(requests), tuple(tokens), bill, bill - of_prefix)
