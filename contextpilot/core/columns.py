"""The live state of a context: one small typed array per property, indexed by segment.

Rows may be slices of a larger batch (the vector environment keeps one array for all copies and
hands each context its row), so columns are memoryviews over whatever buffer holds them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from types import MappingProxyType

COLUMN_TYPES: Mapping[str, str] = MappingProxyType(
    {
        # constant from arrival on
        "kind": "b",
        "leader": "h",
        "full": "i",
        "stub": "i",
        "pinned": "b",  # on every member of an exchange that has a pinned one
        "reasoning": "b",
        "locked": "b",  # on every member of an exchange whose turn has reasoning
        "foldable": "b",
        "arrival": "h",
        # live
        "form": "b",
        "size": "i",  # tokens in the present form
        "mark": "h",  # first request at which it may leave; -1: unmarked
        "sent": "b",  # has been in a request
        "settled": "b",  # every call of its exchange has its result
        "edited": "h",  # request of the last edit
        "reloads": "h",
        "reloaded": "h",  # request of the last reload of anything in its exchange
        "references": "h",
        "referenced": "h",  # request of the last reference
        "superseded": "b",  # a newer reading of the same resource has arrived
        "covered": "h",  # index of the summary that stands for it; -1: none
        "rank": "h",  # position in `order`; -1: not arrived
        "order": "h",  # by position: segment index
    }
)
"""Column names and their struct codes: b int8, h int16, i int32."""

NEVER = -1000
"""The request number of what has not happened yet."""

_ITEM_BYTES = {"b": 1, "h": 2, "i": 4}


class Columns:
    """Typed views by name. `grow` replaces all of them by longer ones with the same content."""

    __slots__ = (*COLUMN_TYPES, "_grow", "capacity")

    kind: memoryview
    leader: memoryview
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
        for name in COLUMN_TYPES:
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

    def dump(self, count: int) -> tuple[bytes, ...]:
        """Returns copies of the first `count` entries of every column."""
        return tuple(getattr(self, name)[:count].tobytes() for name in COLUMN_TYPES)

    def load(self, dumped: tuple[bytes, ...], count: int) -> None:
        """Puts back what `dump` returned."""
        while count > self.capacity:
            self.grow()
        for (name, code), data in zip(COLUMN_TYPES.items(), dumped, strict=True):
            getattr(self, name)[:count] = memoryview(data).cast(code)


def _allocate(capacity: int) -> dict[str, memoryview]:
    return {
        name: memoryview(array(code, bytes(capacity * _ITEM_BYTES[code])))
        for name, code in COLUMN_TYPES.items()
    }
