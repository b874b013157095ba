"""Computes with the tokens that are there: padding is more than half of a batch of episodes.

All tokens of a batch lie behind one another, (N, D), rows with few tokens first. Only attention
needs them row by row: rows of similar length form groups, each padded to its own longest.

Shapes: B rows, T tokens a row with padding, N tokens present, D width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

GROUP_ROWS = 32
"""Rows that are padded together: fewer waste less padding, but need more calls. Between 8 and 64
it matters little on a CPU; without groups, a minibatch of 512 takes 1.6 times as long."""


class Group(NamedTuple):
    """Rows of similar length.

    Attributes:
        tokens: how many of the N tokens are theirs; those of the groups lie in order.
        rows, length: how many rows, and the tokens of the longest.
        place: (tokens,) where each one stands in (rows * length).
        mask: (rows, 1, 1, length) bool, which places hold a token; None: all do.
    """

    tokens: int
    rows: int
    length: int
    place: Tensor
    mask: Tensor | None

    def pad(self, tokens: Tensor) -> Tensor:
        """Returns (tokens, D) as (rows, length, D), zero where padded."""
        if self.mask is not None:
            empty = tokens.new_zeros(self.rows * self.length, tokens.shape[1])
            tokens = empty.index_copy(0, self.place, tokens)
        return tokens.view(self.rows, self.length, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Returns (rows, length, D) as (tokens, D)."""
        flat = padded.flatten(0, 1)
        return flat if self.mask is None else flat.index_select(0, self.place)


class Packing(NamedTuple):
    """Where the tokens of a batch lie.

    Attributes:
        token: (N,) which of the B * T tokens each one is.
        first: (B,) where the first token of each row lies.
        groups: the rows for attention.
    """

    token: Tensor
    first: Tensor
    groups: tuple[Group, ...]


def pack(present: Tensor) -> Packing:
    """Returns how the tokens marked in (B, T) bool lie; every row has its first."""
    counts, order = present.sum(1).sort(stable=True)
    row, column = present[order].nonzero(as_tuple=True)
    ends = counts.cumsum(0)
    starts = ends - counts
    within = torch.arange(len(row), device=row.device) - starts[row]
    lengths, stops = counts.tolist(), ends.tolist()
    groups = []
    for begin in range(0, len(lengths), GROUP_ROWS):
        rows = min(GROUP_ROWS, len(lengths) - begin)
        shortest, length = lengths[begin], lengths[begin + rows - 1]
        start, end = stops[begin] - shortest, stops[begin + rows - 1]
        mask = None
        if shortest < length:
            held = torch.arange(length, device=row.device) < counts[begin : begin + rows, None]
            mask = held[:, None, None, :]
        place = (row[start:end] - begin) * length + within[start:end]
        groups.append(Group(end - start, rows, length, place, mask))
    token = order[row] * present.shape[1] + column
    return Packing(token, torch.empty_like(starts).index_copy(0, order, starts), tuple(groups))
