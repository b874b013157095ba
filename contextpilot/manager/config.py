"""What a manager is set up with, besides the parts that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import EditRecord
from contextpilot.core.prices import PRICE_PRESETS, Prices
from contextpilot.core.segment import Trust
from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.manager.windows import context_window

Pins: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Takes one of the host's messages; True: no edit may touch any of it."""

Trusts: TypeAlias = Callable[[Mapping[str, Any]], Trust | None]
"""Takes one of the host's messages; returns the most authority that it has, None: its role's."""

EditCallback: TypeAlias = Callable[[str, EditRecord], object]
"""Takes a session's id and a record of its log, once for each record, in order."""

DEFAULT_RESERVED_TOKENS = 4096
"""Kept free for the answer where no budget is given, or a quarter of a small window."""

DEFAULT_WINDOW = 128_000
"""Assumed where neither budget nor model is given: the smallest window of today's large models."""


@dataclass(frozen=True, slots=True)
class ManagerConfig:
    """Settings that all sessions of a manager share.

    Attributes:
        format: of the messages; a name in `contextpilot.manager.formats.FORMATS`.
        budget: limits in the agent's tokens.
        target: share of the input limit that an edited request is brought down to, as far as
            that is possible; None: where the policy stops, if that fits.
        max_edits: K, edit steps a request.
        cooldown: requests after an edit in which the policy is not asked again, unless the request
            would not fit.
        pending_wait: how many turns may follow a call before its made-up result says that none
            came; until then it says that the result is pending.
        reload_tool: whether requests carry the tool by which the model fetches an original. The
            host then answers its calls with `Session.dispatch_reload`.
        context_slots, archive_slots: size of the action layout; a checkpoint has its own.
        prices: what tokens cost.
        reload_output_tokens: what the model writes to ask for an original.
        pins: which messages stay as they are, besides system, goal and latest user request.
        pin_goal: whether the first user text stays. In a chat of many subjects it need not.
        synthetic: which messages of role user were written by a manager, not by the user: earlier
            summaries, reminders. They are never taken for a request, and summaries consume them.
        trust: how much authority messages have, where it is less than their role's.
        allow_tools: the results of these tools alone may be edited; None: of all.
        deny_tools: the exchanges of these tools are never edited.
        on_edit: is told every record of a log; what it raises is logged and goes no further.
        secret: keys the boundaries around data, so that a text which knows the id of its session
            cannot foresee them.
        trust_note: whether the system prompt says how data is framed and what trust means.
    """

    format: str = "openai"
    budget: TokenBudget = field(default_factory=TokenBudget)
    target: float | None = None
    max_edits: int = 16
    cooldown: int = 0
    pending_wait: int = 8
    reload_tool: bool = False
    context_slots: int = 128
    archive_slots: int = 32
    prices: Prices = field(default_factory=Prices)
    reload_output_tokens: int = 600
    pins: Pins | None = None
    pin_goal: bool = True
    synthetic: Pins | None = None
    trust: Trusts | None = None
    allow_tools: frozenset[str] | None = None
    deny_tools: frozenset[str] = frozenset()
    on_edit: EditCallback | None = None
    secret: bytes = b""
    trust_note: bool = False

    def __post_init__(self) -> None:
        """Refuses settings that nothing could be done with."""
        for name, least in (
            ("max_edits", 1), ("cooldown", 0), ("pending_wait", 0), ("reload_output_tokens", 0),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ConfigurationError(
                    f"`{name}` must be at least {least}. Received {getattr(self, name)}."
                )
        number = isinstance(self.target, int | float)
        if self.target is not None and not (number and 0.0 < self.target <= 1.0):
            raise ConfigurationError(
                f"`target` must lie in (0, 1], or be None. Received {self.target!r}."
            )


def budget_for(
    model: str | None, budget: TokenBudget | None, windows: Mapping[str, int] | None = None
) -> TokenBudget:
    """Returns the budget of a manager: the given one, what the model's window allows, or a default.

    Args:
        model: the name that requests are made with; None: unknown.
        budget: goes before the model.
        windows: tokens by model name, going before the table in `windows.py`.

    Raises:
        ConfigurationError: for a model whose window is not known.
    """
    if budget is not None:
        return budget
    if model is None:
        return TokenBudget(DEFAULT_WINDOW, DEFAULT_RESERVED_TOKENS)
    window = context_window(model, windows)
    return TokenBudget(window, min(DEFAULT_RESERVED_TOKENS, window // 4))


def prices_of(prices: Prices | str) -> Prices:
    """Returns prices, by name or as given.

    Raises:
        ConfigurationError: for an unknown name, with the nearest known one.
    """
    if isinstance(prices, Prices):
        return prices
    if prices not in PRICE_PRESETS:
        raise ConfigurationError(
            f"unknown `prices` preset. Received {prices!r}.{did_you_mean(prices, PRICE_PRESETS)}"
        )
    return PRICE_PRESETS[prices]
