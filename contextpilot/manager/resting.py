"""Requests that call for no decision: what was sent last, and what the agent's loop has added.

Most requests of an agent are the one before, the model's turn and what answers it. Below the
threshold nothing is decided about them, and where the history before is all that there ever
was and no edit sleeps, what was edited shows as it did. Such a request is the last one with what is
new behind it. The context need not follow each of them: to read a longer history at once is the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextpilot.core.budget import TokenBudget
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.manager.accounting import Category, TokenAccount, category_of
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.formats import Rendering
from contextpilot.manager.history import Message, Said
from contextpilot.manager.report import Report, Status
from contextpilot.manager.tails import LOCAL, alike
from contextpilot.messages.repair_record import Repaired


@dataclass(frozen=True, slots=True)
class Rest:
    """A request from which others go on.

    Attributes:
        history: what it shows, as the session keeps it.
        segments: how many segments that has.
        messages: the request's, as the session keeps them.
        report: of the request.
        uncounted: what its messages take beyond what is counted.
        prefix: copies of its tools and its system prompt.
        budget: the limits that held.
    """

    history: Sequence[Message]
    segments: int
    messages: Sequence[Message]
    report: Report
    uncounted: int
    prefix: tuple[Any, Any]
    budget: TokenBudget

    def precedes(self, history: Sequence[Message], prefix: tuple[Any, Any]) -> bool:
        """True where a history begins with this one, and its request as this one's does."""
        is_same = alike(history, self.history) == len(self.history)
        return is_same and prefix == self.prefix

    def grown(
        self,
        whole: Repaired,
        segments: Sequence[Segment],
        tokens_of: Callable[[Segment], int],
        budget: TokenBudget,
    ) -> Rest | None:
        """Returns the request of a history that this one precedes; None where more is to be done.

        Args:
            whole: the history.
            segments: all of its segments.
            tokens_of: counts one.
            budget: the limits that hold now.
        """
        report = self.report
        new, before = segments[self.segments :], segments[: self.segments]
        added = dict.fromkeys(Category, 0)
        for segment in new:
            added[category_of(segment)] += tokens_of(segment)
        kept = sum(tokens_of(s) for s in before if s.pinned and s.role != Role.SYSTEM)
        tokens = report.after_tokens + sum(added.values())
        if tokens > budget.threshold_tokens or tokens + self.uncounted > budget.input_limit:
            return None
        report = replace(
            report,
            request=report.request + sum(segment.kind == Kind.TURN for segment in new),
            before_tokens=tokens,
            after_tokens=tokens,
            input_limit=budget.input_limit,
            threshold_tokens=budget.threshold_tokens,
            account=_grown(report.account, added, kept, budget),
            edits=(),
            failures=(),
            repairs=whole.repairs,
        )
        more = whole.messages[len(self.history) :]
        messages = [*self.messages, *more]
        return replace(
            self, history=whole.messages, segments=len(segments), messages=messages,
            report=report, budget=budget,
        )  # fmt: skip


def rests(
    config: ManagerConfig,
    history: Sequence[Message],
    said: Sequence[Said],
    out: Rendering,
    report: Report,
) -> bool:
    """True where the next request may go on from one.

    Args:
        config: what the host says of its messages by functions is asked at each request.
        history: as it was passed, repaired.
        said: what it stands for.
        out: the request's messages.
        report: of the request.
    """
    is_plain = config.format in LOCAL and all(
        each is None for each in (config.pins, config.synthetic, config.trust, config.allow_tools)
    )
    is_own = len(said) == len(history) and all(
        one.message is message and one.number >= 0
        for one, message in zip(said, history, strict=True)
    )
    is_settled = (
        report.status in (Status.OK, Status.EDITED)
        and report.after_tokens <= report.threshold_tokens
        and not (report.asleep or report.problems)
    )
    if not (history and is_plain and config.pin_goal and not config.deny_tools):
        return False
    return is_own and is_settled and _ends_alike(out.messages, history)


def _ends_alike(messages: Sequence[Message], history: Sequence[Message]) -> bool:
    """True where what follows goes on from the same in both: from the last turn, as it is."""
    at = len(history) - 1
    while at > 0 and history[at]["role"] != "assistant":
        at -= 1
    length = len(history) - at
    return alike(messages[-length:], history[at:]) == length


def _grown(
    account: TokenAccount, added: Mapping[Category, int], kept: int, budget: TokenBudget
) -> TokenAccount:
    """Returns an account with more in it.

    Args:
        account: before.
        added: tokens of what is new.
        kept: tokens of what was pinned before and still is; the rest of it is history now.
        budget: the limits that hold now.
    """
    tokens = {name.value: getattr(account, name.value) + more for name, more in added.items()}
    tokens["pinned"] = kept + added[Category.PINNED]
    tokens["history"] += account.pinned - kept
    return replace(account, **tokens, reserved_output=budget.reserved_output_tokens)
