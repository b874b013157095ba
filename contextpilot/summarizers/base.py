"""What a summarizer is given and what it returns."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SourceText(NamedTuple):
    """One original: its segment id, its readable text, and what it is ("result", "turn", ...)."""

    id: str
    text: str
    kind: str


class SummaryRequest(NamedTuple):
    """Everything that a summary may depend on."""

    sources: tuple[SourceText, ...]
    goal: str
    max_tokens: int


class Summarizer(Protocol):
    """Turns originals into one shorter text that names their ids."""

    name: str

    def summarize(self, request: SummaryRequest) -> str:
        """Returns a text of at most `request.max_tokens` tokens.

        Raises:
            SummarizerError: when no summary can be made; the caller then replaces nothing.
        """
        ...
