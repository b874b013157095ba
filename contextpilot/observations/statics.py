"""What an observation needs of each segment and what never changes, computed once per task."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.interned import Interned
from contextpilot.observations.features import ARCHIVE_INDEX, SEGMENT_INDEX, TOKEN_SCALE
from contextpilot.observations.text import SEGMENT_TEXT_TOKENS, text_tokens


_SPARE = 32
"""Room for manager-made segments that a fork starts with."""


class Statics:
    """Constant features and text tokens of a list of interned segments.

    Attributes:
        segments: (N', F) float32, the constant columns of SEGMENT_FEATURES, the others zero.
        archive: (N', Fa) float32, likewise for ARCHIVE_FEATURES.
        tokens: (N', T) int16. N' is at least the number of segments.
    """

    __slots__ = ("_count", "archive", "segments", "tokens")

    def __init__(self, entries: Sequence[Interned]) -> None:
        self.segments, self.archive, self.tokens = _features(entries)
        self._count = len(entries)

    def fork(self) -> Statics:
        """Returns statics with the same segments that grow on their own."""
        twin = Statics(())
        twin._count = self._count
        twin._resize(self, self._count + _SPARE)
        return twin

    def extend(self, entries: Sequence[Interned]) -> None:
        """Adds what a longer list, which begins with the same segments, has more."""
        if len(entries) == self._count:
            return
        if len(entries) > len(self.segments):
            self._resize(self, 2 * len(entries))
        fresh = slice(self._count, len(entries))
        self.segments[fresh], self.archive[fresh], self.tokens[fresh] = _features(entries[fresh])
        self._count = len(entries)

    def _resize(self, source: Statics, length: int) -> None:
        for name in ("segments", "archive", "tokens"):
            old = getattr(source, name)[: self._count]
            new = np.zeros((length, old.shape[1]), old.dtype)
            new[: self._count] = old
            setattr(self, name, new)


def _features(
    entries: Sequence[Interned],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int16]]:
    n, s, a = len(entries), SEGMENT_INDEX, ARCHIVE_INDEX
    segments = np.zeros((n, len(s)), np.float32)
    archive = np.zeros((n, len(a)), np.float32)
    tokens = np.zeros((n, SEGMENT_TEXT_TOKENS), np.int16)
    for i, entry in enumerate(entries):
        segment, row = entry.segment, segments[i]
        full = math.log1p(entry.full_tokens) / TOKEN_SCALE
        row[s["full"]] = full
        row[s["stub"]] = math.log1p(entry.stub_tokens) / TOKEN_SCALE
        row[s["goal_relevance"]] = entry.goal_relevance
        row[s["trust"]] = trust = segment.trust / 3
        row[s["in_exchange"]] = bool(segment.exchange)
        row[s["resource"]] = bool(entry.resource)
        row[s["kind_text"] + segment.kind] = 1
        old = archive[i]
        old[a["full"]], old[a["goal_relevance"]], old[a["trust"]] = full, entry.goal_relevance, trust
        old[a["kind_text"] + segment.kind] = 1
        tokens[i] = text_tokens(segment.text, SEGMENT_TEXT_TOKENS)
    return segments, archive, tokens
