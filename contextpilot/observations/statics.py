"""What an observation needs of each segment and what never changes, computed once per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.edits.made import copy_segment
from contextpilot.observations.features import ARCHIVE_INDEX, SEGMENT_INDEX
from contextpilot.observations.scales import log_tokens
from contextpilot.observations.text import SEGMENT_TEXT_TOKENS, text_tokens

Indices = NDArray[np.integer]

_S, _A = SEGMENT_INDEX, ARCHIVE_INDEX
_KINDS = slice(_S["kind_text"], _S["kind_text"] + len(Kind))
_FIELDS = ("segments", "archive", "tokens", "copy_tokens", "tool")


class Statics:
    """Constant features and text tokens of a list of interned segments.

    Attributes:
        segments: (N, F) float32, the constant columns of SEGMENT_FEATURES, the others zero.
        archive: (N, Fa) float32, likewise for ARCHIVE_FEATURES.
        tokens: (N, T) int16.
        copy_tokens: (N, T) int16, of a segment's copy: it shows calls as text.
        tool: (N,) bool, whether a segment has the tool's role.
    """

    __slots__ = _FIELDS

    def __init__(self, entries: Sequence[Interned]) -> None:
        segments = [entry.segment for entry in entries]
        self.segments = _features(entries)
        n, kind = len(entries), np.array([entry.kind for entry in entries], np.intp)
        self.archive = np.zeros((n, len(_A)), np.float32)
        for name in ("full", "goal_relevance", "trust"):
            self.archive[:, _A[name]] = self.segments[:, _S[name]]
        self.archive[np.arange(n), _A["kind_text"] + kind] = 1
        self.tokens = _tokens_of(segments)
        self.copy_tokens = self.tokens.copy()
        turns = np.flatnonzero(kind == Kind.TURN)
        self.copy_tokens[turns] = _tokens_of([copy_segment(segments[i], "") for i in turns])
        self.tool = np.array([segment.role == Role.TOOL for segment in segments], bool)


def _features(entries: Sequence[Interned]) -> NDArray[np.float32]:
    """Returns the constant columns of SEGMENT_FEATURES, the others zero, (n, F)."""
    segments = [entry.segment for entry in entries]
    numbers = np.array(
        [(entry.full_tokens, entry.stub_tokens, entry.kind) for entry in entries], np.intp
    ).reshape(-1, 3)
    out = np.zeros((len(entries), len(_S)), np.float32)
    out[:, _S["full"]] = log_tokens(numbers[:, 0])
    out[:, _S["stub"]] = log_tokens(numbers[:, 1])
    out[:, _S["goal_relevance"]] = [entry.goal_relevance for entry in entries]
    out[:, _S["trust"]] = [segment.trust / 3 for segment in segments]
    out[:, _S["in_exchange"]] = [bool(segment.exchange) for segment in segments]
    out[:, _S["resource"]] = [bool(entry.resource) for entry in entries]
    out[np.arange(len(entries)), _S["kind_text"] + numbers[:, 2]] = 1
    return out


def _tokens_of(segments: Sequence[Segment]) -> NDArray[np.int16]:
    tokens = np.zeros((len(segments), SEGMENT_TEXT_TOKENS), np.int16)
    for row, segment in zip(tokens, segments, strict=True):
        row[:] = text_tokens(segment.text, SEGMENT_TEXT_TOKENS)
    return tokens


class BatchStatics:
    """The statics of B rows side by side, manager-made segments included.

    Attributes:
        segments, archive, tokens, copy_tokens, tool: (B, N, ...) as in `Statics`; what edits have
            made has features and tokens only, as it is not reloaded.
    """

    __slots__ = (*_FIELDS, "_known")

    def __init__(self, rows: int) -> None:
        self.segments: NDArray[np.float32] = np.zeros((rows, 1, len(_S)), np.float32)
        self.archive: NDArray[np.float32] = np.zeros((rows, 1, len(_A)), np.float32)
        self.tokens: NDArray[np.int16] = np.zeros((rows, 1, SEGMENT_TEXT_TOKENS), np.int16)
        self.copy_tokens: NDArray[np.int16] = np.zeros((rows, 1, SEGMENT_TEXT_TOKENS), np.int16)
        self.tool: NDArray[np.bool_] = np.zeros((rows, 1), bool)
        self._known: NDArray[np.bool_] = np.zeros((rows, 1), bool)

    def reserve(self, capacity: int) -> None:
        """Makes room for at least `capacity` segments a row."""
        if capacity <= self.tool.shape[1]:
            return
        for name in self.__slots__:
            old = getattr(self, name)
            new = np.zeros((len(old), capacity, *old.shape[2:]), old.dtype)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)

    def start(self, row: int, statics: Statics) -> None:
        """Begins a row with a task's own segments."""
        n = len(statics.tool)
        self.reserve(n)
        for name in _FIELDS:
            getattr(self, name)[row, :n] = getattr(statics, name)
        self.tool[row, n:] = False
        self._known[row] = np.arange(self.tool.shape[1]) < n

    def forget(self, row: int, context: Context) -> None:
        """Drops what was made in a row: another branch may have given the indices anew."""
        self._known[row, context.native :] = False

    def complete(self, contexts: Mapping[int, Context], rows: Indices, index: Indices) -> None:
        """Computes what is missing of some segments: those that edits have made, when first shown.

        Args:
            contexts: by row.
            rows: (n,) of the segments.
            index: (n,) of the segments.
        """
        missing = np.flatnonzero(~self._known[rows, index])
        if not len(missing):
            return
        places = list(zip(rows[missing].tolist(), index[missing].tolist(), strict=True))
        self._known[rows[missing], index[missing]] = True
        made = [contexts[row].entries[index] for row, index in places]
        copies = [
            (row, index, entry.origin, entry.stub_tokens)
            for (row, index), entry in zip(places, made, strict=True)
            if entry.origin >= 0
        ]
        others = [n for n, entry in enumerate(made) if entry.origin < 0]
        if others:
            at = np.array([places[n] for n in others], np.intp).T
            self.segments[at[0], at[1]] = _features([made[n] for n in others])
            self.tokens[at[0], at[1]] = _tokens_of([made[n].segment for n in others])
        if copies:
            self._complete_copies(*np.array(copies, np.intp).T)

    def _complete_copies(
        self, row: Indices, index: Indices, origin: Indices, stub: Indices
    ) -> None:
        """Does the same for copies: what they show is known from their originals."""
        features = self.segments[row, origin]
        features[:, _S["stub"]] = log_tokens(stub)
        features[:, _S["in_exchange"]] = features[:, _S["resource"]] = 0
        features[:, _KINDS] = 0
        features[:, _S["kind_copy"]] = 1
        self.segments[row, index] = features
        self.tokens[row, index] = self.copy_tokens[row, origin]

    def of_segments(self, rows: Indices, index: Indices) -> NDArray[np.float32]:
        """Returns the constant features of some segments, (n, F)."""
        capacity = self.tool.shape[1]
        flat = self.segments.reshape(-1, len(_S))
        features: NDArray[np.float32] = flat.take(rows * capacity + index, axis=0)
        return features

    def of_archive(self, rows: Indices, index: Indices) -> NDArray[np.float32]:
        """Returns the constant archive features of some segments, (n, Fa)."""
        capacity = self.tool.shape[1]
        flat = self.archive.reshape(-1, len(_A))
        features: NDArray[np.float32] = flat.take(rows * capacity + index, axis=0)
        return features
