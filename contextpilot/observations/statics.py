"""What an observation needs of each segment and what never changes, computed once per task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextpilot.core.interned import Interned
from contextpilot.observations.features import ARCHIVE_INDEX, SEGMENT_INDEX, TOKEN_SCALE
from contextpilot.observations.text import SEGMENT_TEXT_TOKENS, text_tokens


class Statics:
    """Constant features and text tokens of a list of interned segments.

    Attributes:
        segments: (N, F) float32, the constant columns of SEGMENT_FEATURES, the others zero.
        archive: (N, Fa) float32, likewise for ARCHIVE_FEATURES.
        tokens: (N, T) int16.
    """

    __slots__ = ("archive", "segments", "tokens")

    def __init__(self, entries: Sequence[Interned]) -> None:
        n = len(entries)
        self.segments = np.zeros((n, len(SEGMENT_INDEX)), np.float32)
        self.archive = np.zeros((n, len(ARCHIVE_INDEX)), np.float32)
        self.tokens = np.zeros((n, SEGMENT_TEXT_TOKENS), np.int16)
        full = np.array([e.full_tokens for e in entries], np.float32)
        stub = np.array([e.stub_tokens for e in entries], np.float32)
        overlap = [e.goal_overlap for e in entries]
        trust = [e.segment.trust / 3 for e in entries]
        kinds = np.array([e.segment.kind for e in entries], np.intp)
        s, a = SEGMENT_INDEX, ARCHIVE_INDEX
        self.segments[:, s["full"]] = self.archive[:, a["full"]] = np.log1p(full) / TOKEN_SCALE
        self.segments[:, s["stub"]] = np.log1p(stub) / TOKEN_SCALE
        self.segments[:, s["goal_overlap"]] = self.archive[:, a["goal_overlap"]] = overlap
        self.segments[:, s["trust"]] = self.archive[:, a["trust"]] = trust
        self.segments[:, s["in_exchange"]] = [bool(e.segment.exchange) for e in entries]
        self.segments[:, s["resource"]] = [bool(e.resource) for e in entries]
        rows = np.arange(n)
        self.segments[rows, s["kind_text"] + kinds] = 1
        self.archive[rows, a["kind_text"] + kinds] = 1
        for i, entry in enumerate(entries):
            self.tokens[i] = text_tokens(entry.segment.text, SEGMENT_TEXT_TOKENS)

    def __len__(self) -> int:
        return len(self.segments)

    def extended(self, entries: Sequence[Interned]) -> Statics:
        """Returns statics for a longer list that begins with the same segments."""
        more = Statics(entries[len(self) :])
        joined = Statics(())
        joined.segments = np.concatenate([self.segments, more.segments])
        joined.archive = np.concatenate([self.archive, more.archive])
        joined.tokens = np.concatenate([self.tokens, more.tokens])
        return joined

    def covers(self, entries: Sequence[Interned]) -> bool:
        """True where every segment of a context is in here."""
        return len(self) >= len(entries)


