"""Which segments get a slot: all that are visible, or the largest where there are too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.segment import Form, Kind

Indices = NDArray[np.integer]

_NEVER_LAST = 1 << 30


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
