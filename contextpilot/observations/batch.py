"""The state of many contexts in one array, so that they can be read at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.columns import COLUMN_DEFAULTS, COLUMN_TYPE, Columns


class ColumnBatch:
    """All columns of B contexts; row b is the `Columns` of context b, without a copy.

    A single context (the environment's, the manager's) is a batch of one row.

    Attributes:
        rows, capacity: B, and the room N for segments in each row.
        table: (C, B, N) int32, the columns in the order of `COLUMN_DEFAULTS`.
        arrays: by column name, its (B, N) part of the table.
    """

    def __init__(self, rows: int, capacity: int = 64) -> None:
        self.rows = rows
        self.capacity = 0
        self.table: NDArray[np.int32] = np.zeros((len(COLUMN_DEFAULTS), rows, 0), np.int32)
        self.arrays: dict[str, NDArray[np.int32]] = {}
        self._columns: list[Columns] = []
        self._allocate(capacity)
        self._columns = [Columns(self._views(row), self._grow) for row in range(rows)]

    def columns(self, row: int) -> Columns:
        """Returns the live columns of one row."""
        return self._columns[row]

    def reserve(self, capacity: int) -> None:
        """Makes room for at least `capacity` segments a row."""
        while self.capacity < capacity:
            self._grow()

    def _allocate(self, capacity: int) -> None:
        defaults = np.array(list(COLUMN_DEFAULTS.values()), COLUMN_TYPE)[:, None, None]
        table = np.empty((len(COLUMN_DEFAULTS), self.rows, capacity), COLUMN_TYPE)
        table[:, :, : self.capacity] = self.table
        table[:, :, self.capacity :] = defaults
        self.table, self.capacity = table, capacity
        self.arrays = dict(zip(COLUMN_DEFAULTS, table, strict=True))

    def _grow(self) -> None:
        self._allocate(2 * self.capacity)
        for row, columns in enumerate(self._columns):
            columns.attach(self._views(row))

    def _views(self, row: int) -> dict[str, memoryview]:
        return {name: memoryview(array[row]) for name, array in self.arrays.items()}
