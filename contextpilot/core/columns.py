"""The live state of a context: one small typed array per property, indexed by segment.

Rows may be slices of a larger batch (the vector environment keeps one array for all copies and
hands each context its row), so columns are memoryviews over whatever buffer holds them. All have
the same type, so that a batch can read every column of many segments at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

NEVER = -1000
"""The request number of what has not happened yet."""

COLUMN_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        # constant from the start on
        "kind": 0,
        "full": 0,
        "stub": 0,
        "reasoning": 0,
        "foldable": 0,
        "leader": 0,
        "exchange": 0,  # full tokens of its whole exchange
        # constant from arrival on
        "pinned": 0,  # on every member of an exchange that has a pinned one
        "locked": 0,  # on every member of an exchange whose turn has reasoning
        "arrival": 0,
        # live
        "form": 0,
        "size": 0,  # tokens in the present form
        "mark": -1,  # first request at which it may leave; -1: unmarked
        "sent": 0,  # has been in a request
        "settled": 0,  # every call of its exchange has its result
        "edited": NEVER,  # request of the last edit
        "reloads": 0,
        "reloaded": NEVER,  # request of the last reload of anything in its exchange
        "references": 0,
        "referenced": NEVER,  # request of the last reference
        "superseded": 0,  # a newer reading of the same resource has arrived
        "covered": -1,  # index of the summary that stands for it; -1: none
        "rank": -1,  # position in `order`; -1: not arrived
        "order": 0,  # by position: segment index
    }
)
"""Column names and what a segment has before it arrives."""

COLUMN_TYPE: Final = "i"
"""The struct code of every column: int32."""


class Columns:
    """Typed views by name. `grow` replaces all of them by longer ones with the same content."""

    __slots__ = (*COLUMN_DEFAULTS, "_grow", "capacity")

    kind: memoryview
    leader: memoryview
    exchange: memoryview
    full: memoryview
    stub: memoryview
    pinned: memoryview
    reasoning: memoryview
    locked: memoryview
    foldable: memoryview
    arrival: memoryview
    form: memoryview
    size: memoryview
    mark: memoryview
    sent: memoryview
    settled: memoryview
    edited: memoryview
    reloads: memoryview
    reloaded: memoryview
    references: memoryview
    referenced: memoryview
    superseded: memoryview
    covered: memoryview
    rank: memoryview
    order: memoryview
    capacity: int

    def __init__(
        self, views: Mapping[str, memoryview], grow: Callable[[], None] | None = None
    ) -> None:
        self._grow = grow
        self.attach(views)

    @classmethod
    def allocate(cls, capacity: int) -> Columns:
        """Returns columns of their own, for a context outside any batch."""
        return cls(_allocate(capacity))

    def attach(self, views: Mapping[str, memoryview]) -> None:
        """Points every column at a new buffer."""
        for name in COLUMN_DEFAULTS:
            setattr(self, name, views[name])
        self.capacity = len(self.form)

    def grow(self) -> None:
        """Makes room for at least twice as many segments."""
        if self._grow is not None:
            self._grow()
            return
        views = _allocate(2 * self.capacity)
        for name, view in views.items():
            view[: self.capacity] = getattr(self, name)
        self.attach(views)

    def reset(self, start: int = 0) -> None:
        """Gives every segment from `start` on its defaults."""
        for name, blank in _blank(self.capacity - start).items():
            getattr(self, name)[start:] = blank

    def dump(self, count: int) -> tuple[bytes, ...]:
        """Returns copies of the first `count` entries of every column."""
        return tuple(getattr(self, name)[:count].tobytes() for name in COLUMN_DEFAULTS)

    def load(self, dumped: tuple[bytes, ...], count: int) -> None:
        """Puts back what `dump` returned."""
        while count > self.capacity:
            self.grow()
        self.reset(count)
        for name, data in zip(COLUMN_DEFAULTS, dumped, strict=True):
            getattr(self, name)[:count] = memoryview(data).cast("i")


def _allocate(capacity: int) -> dict[str, memoryview]:
    return {name: memoryview(array(COLUMN_TYPE, blank)) for name, blank in _blank(capacity).items()}


@lru_cache(maxsize=16)
def _blank(capacity: int) -> dict[str, memoryview]:
    """Returns unused columns, to be copied."""
    return {
        name: memoryview(array(COLUMN_TYPE, [default]) * capacity).toreadonly()
        for name, default in COLUMN_DEFAULTS.items()
    }
