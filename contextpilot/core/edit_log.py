"""The append-only log of a context's edits."""

from __future__ import annotations

from collections.abc import Iterator

from contextpilot.core.edit import EditRecord, Op, Outcome
from contextpilot.errors import ConfigurationError

RECENT_OPS = 4
RECENT_BITS = 3
"""How many of the latest operations a log has at hand, as one small number."""

_APPLIED = Outcome.APPLIED
_RECENT_MASK = (1 << RECENT_OPS * RECENT_BITS) - 1


class EditLog:
    """Records in the order they were made. Nothing is ever removed; undo appends.

    Attributes:
        recent: the latest operations in `RECENT_BITS` each, the newest lowest; 0 is none.
    """

    __slots__ = ("_records", "_undone", "recent")

    def __init__(self, records: tuple[EditRecord, ...] = ()) -> None:
        self.recent = 0
        self._records: list[EditRecord] = []
        self._undone: set[int] = set()
        for record in records:
            self.append(record)

    def append(self, record: EditRecord) -> None:
        """Adds a record, whose id must be the log's length."""
        if record.id != len(self._records):
            raise ConfigurationError(
                f"a record's `id` must be the length of its log ({len(self._records)}). "
                f"Received {record.id}."
            )
        self._records.append(record)
        self.recent = (self.recent << RECENT_BITS | record.op + 1) & _RECENT_MASK
        if record.undoes >= 0:
            self._undone.add(record.undoes)

    def is_live(self, record: EditRecord) -> bool:
        """True where a record was applied, changed something, and was not undone."""
        return (
            record.outcome == _APPLIED
            and record.undoes < 0
            and bool(record.rows)
            and record.id not in self._undone
        )

    def live_since(self, record_id: int) -> list[EditRecord]:
        """Returns the live records after `record_id`, oldest first."""
        undone = self._undone
        return [
            r
            for r in self._records[record_id + 1 :]
            if r.rows and r.outcome == _APPLIED and r.undoes < 0 and r.id not in undone
        ]

    def last_ops(self, count: int) -> list[Op]:
        """Returns the latest operations, newest first."""
        return [r.op for r in reversed(self._records[-count:])]

    def fork(self) -> EditLog:
        """Returns a log with the same records that grows on its own."""
        log = EditLog()
        log.recent = self.recent
        log._records, log._undone = list(self._records), set(self._undone)
        return log

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[EditRecord]:
        return iter(self._records)

    def __reversed__(self) -> Iterator[EditRecord]:
        return reversed(self._records)

    def __getitem__(self, record_id: int) -> EditRecord:
        return self._records[record_id]
