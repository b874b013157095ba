"""Finding archived originals by what they say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol


class Retriever(Protocol):
    """Ranks a fixed corpus against queries."""

    def search(
        self, query: str, limit: int, allowed: Collection[int] | None = None
    ) -> Sequence[tuple[int, float]]:
        """Returns up to `limit` (corpus index, score), best first, scores above zero only.

        `allowed` restricts the ranking to these indices; None means the whole corpus.
        """
        ...
