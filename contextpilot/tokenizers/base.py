"""How many tokens a text costs: the protocol that every tokenizer satisfies."""

from __future__ import annotations

from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens. Implementations are deterministic and never touch a network."""

    name: str

    def count(self, text: str) -> int:
        """Returns the number of tokens of `text`; 0 for the empty string."""
        ...

    def truncate(self, text: str, max_tokens: int) -> str:
        """Returns the longest prefix of `text` (whole characters) of at most `max_tokens`."""
        ...
