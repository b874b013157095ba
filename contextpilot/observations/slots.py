"""Which segments get a slot: all that are visible, or the largest where there are too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.segment import Form, Kind

Indices = NDArray[np.integer]


def context_slots(order: Indices, form: Indices, size: Indices, pinned: Indices, slots: int) -> Indices:
    """Returns the segment indices that get a context slot, in context order.

    Args:
        order: (n,) segment index by position.
        form, size, pinned: (N,) columns by segment index.
        slots: how many there are; pinned segments go first when some must do without.
    """
    candidates = order[form[order] != Form.ABSENT]
    if len(candidates) <= slots:
        return candidates
    worth = np.where(pinned[candidates] != 0, 0, size[candidates])
    # Stable, so that equal sizes always give the same slots.
    largest = np.argsort(-worth, kind="stable")[:slots]
    return candidates[np.sort(largest)]


def archive_slots(
    order: Indices, form: Indices, kind: Indices, edited: Indices, slots: int
) -> Indices:
    """Returns the indices of the originals that left last, the latest first."""
    gone = order[
        (form[order] == Form.ABSENT) & (kind[order] != Kind.COPY) & (kind[order] != Kind.SUMMARY)
    ]
    latest = np.argsort(-edited[gone].astype(np.int32), kind="stable")[:slots]
    return gone[latest]
