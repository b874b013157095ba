"""Which segments get a slot: all that are visible, or the largest where there are too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.segment import Form, Kind
from contextpilot.observations.batch import ColumnBatch

Indices = NDArray[np.integer]

_NEVER_LAST = 1 << 30


class SlotTable:
    """Which segment each slot of B rows holds, and which slot each segment has.

    Attributes:
        context_slots: S; slots from here on are the M archive slots.
        held: (B, S + M) segment indices; -1 where a slot is empty.
        of: (B, N) slots; -1 for a segment that has none.
    """

    def __init__(self, batch: ColumnBatch, context_slots: int, archive_slots: int) -> None:
        self._batch, self.context_slots = batch, context_slots
        self.held: NDArray[np.intp] = np.full(
            (batch.rows, context_slots + archive_slots), -1, np.intp
        )
        self.of: NDArray[np.intp] = np.full((batch.rows, batch.capacity), -1, np.intp)

    def keep_up_with_growth(self) -> None:
        """Makes room for as many segments as the batch has."""
        missing = self._batch.capacity - self.of.shape[1]
        if missing > 0:
            self.of = np.pad(self.of, ((0, 0), (0, missing)), constant_values=-1)

    def assign(
        self, rows: Indices, lengths: Indices, given: dict[int, tuple[Indices, Indices]]
    ) -> tuple[Indices, Indices, Indices]:
        """Gives some rows their slots anew.

        Args:
            rows: (R,) row numbers.
            lengths: (R,) how many positions each one's context has.
            given: by row, the context and archive slots that it must have.

        Returns:
            Row, slot and segment of every slot that is taken now.
        """
        arrays, slots = self._batch.arrays, self.context_slots
        order = arrays["order"][rows, : lengths.max()].astype(np.intp)
        order[np.arange(order.shape[1]) >= lengths[:, None]] = -1
        at = rows[:, None] * self._batch.capacity + order
        form, size, pinned, kind, edited = (
            arrays[name].take(at) for name in ("form", "size", "pinned", "kind", "edited")
        )
        held = np.full((len(rows), self.held.shape[1]), -1, np.intp)
        listed = listed_positions(order, form, size, pinned, slots)
        row_of, position = np.nonzero(listed)
        slot = (np.cumsum(listed, axis=1) - 1)[row_of, position]
        held[row_of, slot] = order[row_of, position]
        latest, counts = archived_positions(
            order, form, kind, edited, held.shape[1] - slots
        )  # fmt: skip
        row_of, slot = np.nonzero(np.arange(latest.shape[1]) < counts[:, None])
        held[row_of, slots + slot] = order[row_of, latest[row_of, slot]]
        for number in np.flatnonzero(np.isin(rows, list(given))) if given else ():
            held[number] = np.concatenate(given[int(rows[number])])
        self.held[rows] = held
        self.of[rows] = -1
        taken = self.occupied(rows)
        self.of[taken[0], taken[2]] = taken[1]
        return taken

    def occupied(self, rows: Indices) -> tuple[Indices, Indices, Indices]:
        """Returns row, slot and segment of every slot of some rows that is not empty."""
        held = self.held[rows]
        row_of, slot = np.nonzero(held >= 0)
        return rows[row_of], slot, held[row_of, slot]


def listed_positions(
    order: Indices, form: Indices, size: Indices, pinned: Indices, slots: int
) -> NDArray[np.bool_]:
    """Returns which positions of each row get a context slot, (R, L) bool.

    All arrays are (R, L): `order` has the segment index by position, -1 behind a row's end, and
    the others are of the segments in that order. Where there are too many for the slots, pinned
    segments go first, since nothing can be done to them.
    """
    listed: NDArray[np.bool_] = (form != Form.ABSENT) & (order >= 0)
    for row in np.flatnonzero(listed.sum(axis=1) > slots):
        candidates = np.flatnonzero(listed[row])
        worth = np.where(pinned[row, candidates] != 0, 0, size[row, candidates])
        # Stable, so that equal sizes always give the same slots.
        largest = np.argsort(-worth, kind="stable")[:slots]
        listed[row] = False
        listed[row, candidates[largest]] = True
    return listed


def archived_positions(
    order: Indices, form: Indices, kind: Indices, edited: Indices, slots: int
) -> tuple[Indices, Indices]:
    """Returns the positions of the originals that left last, the latest first, and how many.

    The arrays are as in `listed_positions`.

    Returns:
        (R, slots) or narrower positions, of which the first `count` (R,) of each row count.
    """
    gone = (
        (form == Form.ABSENT) & (order >= 0) & (kind != Kind.COPY) & (kind != Kind.SUMMARY)
    )  # fmt: skip
    latest = np.argsort(np.where(gone, -edited, _NEVER_LAST), axis=1, kind="stable")[:, :slots]
    return latest, np.minimum(gone.sum(axis=1), slots)
