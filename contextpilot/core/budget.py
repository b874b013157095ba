"""How many tokens a request may have, and from where on an edit is due."""

from __future__ import annotations

from dataclasses import dataclass

from contextpilot.errors import ConfigurationError

UNLIMITED = 1 << 30
"""A window that no request reaches."""


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The limits of one agent's model.

    Attributes:
        max_context_tokens: the model's window, input and output together.
        reserved_output_tokens: kept free for the answer.
        compression_threshold: share of the input limit from where on there is pressure.
        summarize_max_tokens: the longest summary that an edit may ask for.
    """

    max_context_tokens: int = UNLIMITED
    reserved_output_tokens: int = 0
    compression_threshold: float = 0.8
    summarize_max_tokens: int = 600

    def __post_init__(self) -> None:
        """Refuses limits that no request could satisfy."""
        if self.max_context_tokens <= 0:
            raise ConfigurationError(
                f"`max_context_tokens` must be positive. Received {self.max_context_tokens}."
            )
        if not 0 <= self.reserved_output_tokens < self.max_context_tokens:
            raise ConfigurationError(
                "`reserved_output_tokens` must be at least 0 and below `max_context_tokens` "
                f"({self.max_context_tokens}). Received {self.reserved_output_tokens}."
            )
        if not 0.0 < self.compression_threshold <= 1.0:
            raise ConfigurationError(
                "`compression_threshold` must lie in (0, 1]. "
                f"Received {self.compression_threshold}."
            )
        if self.summarize_max_tokens <= 0:
            raise ConfigurationError(
                f"`summarize_max_tokens` must be positive. Received {self.summarize_max_tokens}."
            )

    @property
    def input_limit(self) -> int:
        """Tokens that a request may have, fixed prefix included."""
        return self.max_context_tokens - self.reserved_output_tokens

    @property
    def threshold_tokens(self) -> int:
        """Tokens from which on a request is under pressure."""
        return int(self.compression_threshold * self.input_limit)
