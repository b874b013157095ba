"""What an observation needs of each segment and what never changes, computed once per task."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Kind, Role
from contextpilot.edits.made import copy_segment
from contextpilot.observations.features import ARCHIVE_INDEX, SEGMENT_INDEX, TOKEN_SCALE
from contextpilot.observations.scales import log_tokens
from contextpilot.observations.text import SEGMENT_TEXT_TOKENS, text_tokens

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
        n = len(entries)
        self.segments = np.zeros((n, len(_S)), np.float32)
        self.archive = np.zeros((n, len(_A)), np.float32)
        self.tokens = np.zeros((n, SEGMENT_TEXT_TOKENS), np.int16)
        self.copy_tokens = np.zeros((n, SEGMENT_TEXT_TOKENS), np.int16)
        self.tool = np.zeros(n, bool)
        for i, entry in enumerate(entries):
            segment, row, old = entry.segment, self.segments[i], self.archive[i]
            full = math.log1p(entry.full_tokens) / TOKEN_SCALE
            row[_S["full"]] = full
            row[_S["stub"]] = math.log1p(entry.stub_tokens) / TOKEN_SCALE
            row[_S["goal_relevance"]] = entry.goal_relevance
            row[_S["trust"]] = trust = segment.trust / 3
            row[_S["in_exchange"]] = bool(segment.exchange)
            row[_S["resource"]] = bool(entry.resource)
            row[_S["kind_text"] + entry.kind] = 1
            old[_A["full"]], old[_A["goal_relevance"]] = full, entry.goal_relevance
            old[_A["trust"]] = trust
            old[_A["kind_text"] + entry.kind] = 1
            self.tokens[i] = self.copy_tokens[i] = text_tokens(segment.text, SEGMENT_TEXT_TOKENS)
            if segment.kind == Kind.TURN:
                copied = copy_segment(segment, "").text
                self.copy_tokens[i] = text_tokens(copied, SEGMENT_TEXT_TOKENS)
            self.tool[i] = segment.role == Role.TOOL


class BatchStatics:
    """The statics of B rows side by side, manager-made segments included.

    Attributes:
        segments, archive, tokens, copy_tokens, tool: (B, N, ...) as in `Statics`; what edits have
            made has features and tokens only, as it is not reloaded.
    """

    __slots__ = (*_FIELDS, "_copies", "_known")

    def __init__(self, rows: int) -> None:
        self.segments: NDArray[np.float32] = np.zeros((rows, 0, len(_S)), np.float32)
        self.archive: NDArray[np.float32] = np.zeros((rows, 0, len(_A)), np.float32)
        self.tokens: NDArray[np.int16] = np.zeros((rows, 0, SEGMENT_TEXT_TOKENS), np.int16)
        self.copy_tokens: NDArray[np.int16] = np.zeros((rows, 0, SEGMENT_TEXT_TOKENS), np.int16)
        self.tool: NDArray[np.bool_] = np.zeros((rows, 0), bool)
        self._known = [0] * rows
        self._copies: list[tuple[int, int, int, int]] = []

    def reserve(self, capacity: int) -> None:
        """Makes room for at least `capacity` segments a row."""
        if capacity <= self.tool.shape[1]:
            return
        for name in _FIELDS:
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
        self._known[row] = n

    def extend(self, row: int, context: Context) -> None:
        """Adds what a row's edits have made; `settle` completes it."""
        entries = context.entries
        for index in range(self._known[row], len(entries)):
            entry = entries[index]
            if entry.origin >= 0:
                self._copies.append((row, index, entry.origin, entry.stub_tokens))
            else:
                made = Statics((entry,))
                self.segments[row, index], self.tokens[row, index] = made.segments, made.tokens
        self._known[row] = len(entries)

    def settle(self) -> None:
        """Writes all copies at once: what they show is known from their originals."""
        if not self._copies:
            return
        row, made, origin, stub = np.array(self._copies, np.intp).T
        self._copies.clear()
        features = self.segments[row, origin]
        features[:, _S["stub"]] = log_tokens(stub)
        features[:, _S["in_exchange"]] = features[:, _S["resource"]] = 0
        features[:, _KINDS] = 0
        features[:, _S["kind_copy"]] = 1
        self.segments[row, made] = features
        self.tokens[row, made] = self.copy_tokens[row, origin]

    def forget(self, row: int, context: Context) -> None:
        """Drops what was made in a row: another branch may have given the indices anew."""
        self._known[row] = min(self._known[row], context.native)
