"""A summarizer that remembers: the same originals under the same goal are summarized once."""

from __future__ import annotations

import threading
from collections import OrderedDict

from contextpilot.errors import ConfigurationError
from contextpilot.summarizers.base import Summarizer, SummaryRequest


class CachedSummarizer(Summarizer):
    """Keeps the latest summaries of another summarizer. Thread-safe; failures are not kept.

    Attributes:
        hits: requests that were answered from memory.
        misses: requests that the inner summarizer had to answer.
    """

    def __init__(self, inner: Summarizer, max_entries: int = 1024) -> None:
        """Wraps a summarizer, whose name becomes this one's.

        Args:
            inner: what makes the summaries.
            max_entries: how many are kept; the one unused for longest is given up first.

        Raises:
            ConfigurationError: when `max_entries` is below 1.
        """
        if max_entries < 1:
            raise ConfigurationError(
                f"max_entries must be 1 or more. Received {max_entries}. To cache nothing, use "
                "the inner summarizer itself."
            )
        self.name = inner.name
        self.hits = 0
        self.misses = 0
        self._inner = inner
        self._max_entries = max_entries
        self._summaries: OrderedDict[SummaryRequest, str] = OrderedDict()
        self._lock = threading.Lock()

    def summarize(self, request: SummaryRequest) -> str:
        """Returns the inner summarizer's text, from memory where it was made before.

        Raises:
            SummarizerError: when the inner summarizer does.
        """
        with self._lock:
            summary = self._summaries.get(request)
            if summary is not None:
                self._summaries.move_to_end(request)
                self.hits += 1
                return summary
        # Outside the lock: a model-backed summarizer takes seconds.
        summary = self._inner.summarize(request)
        with self._lock:
            self.misses += 1
            self._summaries[request] = summary
            self._summaries.move_to_end(request)
            while len(self._summaries) > self._max_entries:
                self._summaries.popitem(last=False)
        return summary
