"""The state of many contexts in one array per column, so that they can be read at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.columns import COLUMN_TYPES, Columns


class ColumnBatch:
    """One (B, N) array per column; row b is the `Columns` of context b, without a copy.

    A single context (the environment's, the manager's) is a batch of one row.
    """

    def __init__(self, rows: int, capacity: int = 64) -> None:
        self.rows = rows
        self.capacity = capacity
        self.arrays: dict[str, NDArray[np.integer]] = {}
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
        old = self.arrays
        self.arrays = {
            name: np.zeros((self.rows, capacity), dtype=np.dtype(code))
            for name, code in COLUMN_TYPES.items()
        }
        for name, array in old.items():
            self.arrays[name][:, : array.shape[1]] = array
        self.arrays["rank"][:, old["rank"].shape[1] if old else 0 :] = -1
        self.capacity = capacity

    def _grow(self) -> None:
        self._allocate(2 * self.capacity)
        for row, columns in enumerate(self._columns):
            columns.attach(self._views(row))

    def _views(self, row: int) -> dict[str, memoryview]:
        return {name: memoryview(array[row]) for name, array in self.arrays.items()}  # type: ignore[arg-type]
