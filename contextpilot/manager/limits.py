"""What a request may take, by what is set and by what providers said."""

from __future__ import annotations

from dataclasses import replace

from contextpilot.core.budget import TokenBudget
from contextpilot.manager.overflow import Overflow
from contextpilot.manager.usage import read_usage, token_scale

_SHORTER = 0.8
"""What a request that a provider refused is brought down to, where it did not say to what."""


class Limits:
    """The limits of one conversation.

    Attributes:
        scale: the agent's tokens per counted token.
        window: what a provider said the model's window is; 0: nothing.
        ceiling: what an input may have by what was refused, in the agent's tokens; 0: nothing was.
        usage: what was reported of the latest request.
    """

    def __init__(self) -> None:
        self.scale, self.window, self.ceiling = 1.0, 0, 0
        self.usage: dict[str, int] = {}

    def budget(self, budget: TokenBudget) -> TokenBudget:
        """Returns what is set, in counted tokens, so that counts and stubs never change."""
        if self.window:  # what a provider said goes before what was set
            reserved = min(budget.reserved_output_tokens, self.window // 4)
            window = min(self.window, budget.max_context_tokens)
            budget = replace(budget, max_context_tokens=window, reserved_output_tokens=reserved)
        if self.ceiling:
            window = min(self.ceiling + budget.reserved_output_tokens, budget.max_context_tokens)
            budget = replace(budget, max_context_tokens=window)
        if self.scale == 1.0:
            return budget
        return replace(
            budget,
            max_context_tokens=max(1, int(budget.max_context_tokens / self.scale)),
            reserved_output_tokens=int(budget.reserved_output_tokens / self.scale),
        )

    def record_usage(self, usage: object, counted: int) -> None:
        """Takes what a provider reported of a request of so many counted tokens."""
        self.usage = read_usage(usage)
        self.scale = token_scale(self.usage["input"], counted, self.scale)

    def refused(self, overflow: Overflow, counted: int, budget: TokenBudget) -> None:
        """Takes that a provider refused a request of so many counted tokens as too long.

        What it said of the window and of the request's length holds from now on; where it said
        nothing, a request of this length is taken to be too long.
        """
        if overflow.window:
            self.window = min(overflow.window, self.window or overflow.window)
        if overflow.sent:
            self.scale = max(self.scale, token_scale(overflow.sent, counted, self.scale))
        if counted <= self.budget(budget).input_limit:  # by all that is known it would fit
            ceiling = max(1, int(counted * self.scale * _SHORTER))
            self.ceiling = min(ceiling, self.ceiling or ceiling)
