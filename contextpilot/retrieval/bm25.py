"""BM25 over a fixed corpus, for Chinese and for English."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from contextpilot.errors import ConfigurationError
from contextpilot.retrieval.base import Retriever
from contextpilot.retrieval.terms import text_terms

if TYPE_CHECKING:
    import bm25s

_REMEMBERED_QUERIES = 64


class Bm25Retriever(Retriever):
    """Ranks texts by BM25 (Lucene's form). The index is made at the first search.

    Equal scores are ranked by index, so results do not depend on the machine. Thread-safe.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Takes the corpus; a text's index in it is what `search` returns."""
        self._texts = tuple(texts)
        self._vocabulary: dict[str, int] = {}
        self._index: bm25s.BM25 | None = None
        self._indexed = False
        self._lock = threading.Lock()
        # Agents ask the same again; what they may find differs.
        self._ranking = lru_cache(maxsize=_REMEMBERED_QUERIES)(self._ranked)

    def search(
        self, query: str, limit: int, allowed: Collection[int] | None = None
    ) -> Sequence[tuple[int, float]]:
        """Returns up to `limit` (corpus index, score), best first, scores above zero only.

        Raises:
            ConfigurationError: when `limit` is negative.
        """
        if limit < 0:
            raise ConfigurationError(f"limit must be 0 or more. Received {limit}.")
        ranking = self._ranking(query)
        if allowed is not None:
            permitted = set(allowed)
            ranking = tuple(found for found in ranking if found[0] in permitted)
        return ranking[:limit]

    def _ranked(self, query: str) -> tuple[tuple[int, float], ...]:
        """Returns the whole corpus as far as it has a score, best first."""
        with self._lock:
            if not self._indexed:
                self._make_index()
        known = [self._vocabulary[term] for term in text_terms(query) if term in self._vocabulary]
        if self._index is None or not known:
            return ()
        scores = self._index.get_scores_from_ids(known)
        found = np.flatnonzero(scores > 0)
        best = found[np.argsort(-scores[found], kind="stable")]
        return tuple(zip(best.tolist(), scores[best].tolist(), strict=True))

    def _make_index(self) -> None:
        """Builds the vocabulary and the index; an empty corpus has none."""
        vocabulary = self._vocabulary
        documents = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in text_terms(text)]
            for text in self._texts
        ]
        if vocabulary:
            import bm25s  # a third of a second, which only who searches should pay

            index = bm25s.BM25(method="lucene", backend="numpy")
            # Its `index` method would log to the host's handlers whatever their level.
            index.scores = index.build_index_from_ids(
                list(vocabulary.values()), documents, show_progress=False
            )
            self._index = index
        self._indexed = True
