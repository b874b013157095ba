"""Summarizing more than a summarizer can read at once."""

from __future__ import annotations

from collections.abc import Iterator

from contextpilot.errors import ConfigurationError, SummarizerError
from contextpilot.summarizers.base import SourceText, Summarizer, SummaryRequest
from contextpilot.tokenizers.base import Tokenizer

_MARGIN_TOKENS = 4
"""A source's id and kind, which a summarizer may be shown beside its text."""


class ChunkedSummarizer(Summarizer):
    """Gives a summarizer at most so many tokens at a time, then has it sum up its own summaries.

    A source that is longer than the limit is read in pieces. What fits goes through as it is.
    """

    def __init__(self, inner: Summarizer, tokenizer: Tokenizer, max_input_tokens: int) -> None:
        """Wraps a summarizer, whose name becomes this one's.

        Args:
            inner: what makes the summaries.
            tokenizer: what counts its input.
            max_input_tokens: of all sources of one of its requests together.

        Raises:
            ConfigurationError: when the limit leaves no room for a source.
        """
        if max_input_tokens <= _MARGIN_TOKENS:
            raise ConfigurationError(
                f"`max_input_tokens` must be above {_MARGIN_TOKENS}. Received {max_input_tokens}."
            )
        self.name = inner.name
        self._inner, self._tokenizer, self._limit = inner, tokenizer, max_input_tokens

    def summarize(self, request: SummaryRequest) -> str:
        """Returns the inner summarizer's text, of all sources or of the summaries of their parts.

        Raises:
            SummarizerError: when the inner summarizer does, or its summaries do not get shorter.
        """
        before = None
        while True:
            batches = list(self._batches(request.sources))
            if len(batches) <= 1:
                return self._inner.summarize(request)
            if before is not None and len(batches) >= before:
                raise SummarizerError(
                    f"the summaries of {len(batches)} parts are too long to be summed up within "
                    f"{self._limit} tokens. Raise `max_input_tokens`, or use another summarizer."
                )
            before = len(batches)
            request = request._replace(sources=tuple(self._parts(request, batches)))

    def _parts(
        self, request: SummaryRequest, batches: list[tuple[SourceText, ...]]
    ) -> Iterator[SourceText]:
        """Yields the summary of each batch as a source of its own."""
        limit = min(request.max_tokens, max(1, (self._limit - _MARGIN_TOKENS) // 2))
        for batch in batches:
            text = self._inner.summarize(request._replace(sources=batch, max_tokens=limit))
            yield SourceText(batch[0].id, text, "summary")

    def _batches(self, sources: tuple[SourceText, ...]) -> Iterator[tuple[SourceText, ...]]:
        """Yields the sources in order, as many at a time as fit."""
        batch: list[SourceText] = []
        used = 0
        for source in self._pieces(sources):
            tokens = self._tokenizer.count(source.text) + _MARGIN_TOKENS
            if batch and used + tokens > self._limit:
                yield tuple(batch)
                batch, used = [], 0
            batch.append(source)
            used += tokens
        if batch:
            yield tuple(batch)

    def _pieces(self, sources: tuple[SourceText, ...]) -> Iterator[SourceText]:
        """Yields the sources, those that are too long in pieces."""
        room = self._limit - _MARGIN_TOKENS
        for source in sources:
            text = source.text
            while self._tokenizer.count(text) > room:
                piece = self._tokenizer.truncate(text, room) or text[:1]
                yield source._replace(text=piece)
                text = text[len(piece) :]
            if text or not source.text:
                yield source._replace(text=text)
