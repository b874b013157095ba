"""What a `prepare` returns: the request, and what was done for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from contextpilot.core.edit import EditRecord
from contextpilot.manager.accounting import TokenAccount
from contextpilot.manager.fallback import FallbackRecord
from contextpilot.messages.problem import Problem
from contextpilot.messages.repair import Repair

System: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A system prompt: text, or blocks as Anthropic takes them."""


class Status(StrEnum):
    """What became of a request."""

    OK = "ok"
    """It goes out as the host's history is."""
    EDITED = "edited"
    """Edits show in it, of now or of earlier requests."""
    BUDGET_UNREACHABLE = "budget_unreachable"
    """Everything that may leave has left, and it is still over the limit; or, where a target is
    set, over the threshold. `Report.over_budget` tells which; `pinned` names what stays."""
    OFF = "off"
    """Nothing was looked at."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a `prepare` did. Tokens are counted ones; the agent's are `token_scale` times as many.

    Attributes:
        session: its id.
        request: number of the request: how many turns the agent has had.
        status: as in the request.
        before_tokens, after_tokens: of the input, before and after this call's edits.
        input_limit, threshold_tokens: what it may have, and from where on edits are due.
        account: where the tokens go.
        token_scale: the agent's tokens per counted one, by the usage that was reported.
        edits: the records of this call, rejected ones included.
        failures: decisions that the policy failed to make.
        repairs: what was wrong with the host's history, and is repaired in the request.
        problems: what a provider would still refuse.
        asleep: ids of records whose targets this history does not have.
        pinned: (id, tokens) of what no edit may make smaller now, the largest first, where the
            budget is unreachable: what is pinned, open tool loops, what the agent has not seen.
        usage: what the provider reported for the request before, as far as it was told.
    """

    session: str
    request: int
    status: Status
    before_tokens: int = 0
    after_tokens: int = 0
    input_limit: int = 0
    threshold_tokens: int = 0
    account: TokenAccount = field(default_factory=TokenAccount)
    token_scale: float = 1.0
    edits: tuple[EditRecord, ...] = ()
    failures: tuple[FallbackRecord, ...] = ()
    repairs: tuple[Repair, ...] = ()
    problems: tuple[Problem, ...] = ()
    asleep: tuple[int, ...] = ()
    pinned: tuple[tuple[str, int], ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)

    @property
    def over_budget(self) -> bool:
        """True where the input is over the hard limit, not only over what was aimed at."""
        return self.after_tokens > self.input_limit

    @property
    def pinned_tokens(self) -> int:
        """Tokens of what no edit may touch, where the budget is unreachable."""
        return sum(tokens for _, tokens in self.pinned)


@dataclass(frozen=True, slots=True)
class Request:
    """What to send.

    Attributes:
        messages: untouched ones are the host's own objects.
        tools: the host's, and the reload tool behind them where it is enabled; None: none.
        system: as it came.
        status: whether it was edited, and whether it fits.
        report: what was done.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    system: System | None
    status: Status
    report: Report
