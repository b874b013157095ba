"""What changes about segments: features and legality of many (row, segment) pairs at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.columns import COLUMN_DEFAULTS
from contextpilot.core.invariants import FACT_COLUMNS, LEGAL, Facts
from contextpilot.core.segment import Form
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.features import ARCHIVE_INDEX, SEGMENT_INDEX
from contextpilot.observations.scales import (
    log_age,
    log_references,
    log_reloads,
    log_tokens,
    recency,
)

Floats = NDArray[np.float32]
Indices = NDArray[np.integer]

_S, _A = SEGMENT_INDEX, ARCHIVE_INDEX
_NO_ROOM_LIMIT = 1 << 30
"""Room changes with every edit, so the encoder applies it to all rows at once."""
_CONTEXT_NUMBERS = ("request", "overflows", "latest_user_rank")
_COLUMNS = tuple(name for name in COLUMN_DEFAULTS if name != "order")
_FORM_FULL = _S["form_full"]


class Rules:
    """Some legality rules, to be judged together: each invariant is asked once."""

    def __init__(self, names: Sequence[str]) -> None:
        needed = [LEGAL[name] for name in names]
        self._invariants = tuple(dict.fromkeys(chain.from_iterable(needed)))
        # Eight invariants a byte: a rule is a few bytes that must be there.
        bits = [[invariant in rule for invariant in self._invariants] for rule in needed]
        self._needed = np.packbits(np.array(bits), axis=1)[:, :, None]

    def verdicts(self, facts: Facts) -> NDArray[np.bool_]:
        """Returns where every invariant of each rule holds, (rules, n)."""
        holds = np.empty((len(self._invariants), len(facts.form)), bool)
        for k, invariant in enumerate(self._invariants):
            holds[k] = invariant(facts)
        found = np.packbits(holds, axis=0)
        verdict: NDArray[np.bool_] = ((found & self._needed) == self._needed).all(axis=1)
        return verdict


class Live:
    """The columns of n (row, segment) pairs, read at once.

    Attributes:
        columns: (n,) int32 each, by name.
        facts: the same for the invariants.
    """

    def __init__(
        self, batch: ColumnBatch, rows: Indices, index: Indices, numbers: dict[str, Indices]
    ) -> None:
        """Reads the pairs (rows, index), (n,) each, with `numbers` (B,) of their contexts."""
        count = len(_COLUMNS)
        flat = batch.table.reshape(len(batch.table), -1)[:count]
        values = flat.take(rows * batch.capacity + index, axis=1)
        self.columns = dict(zip(_COLUMNS, values, strict=True))
        facts: list[Any] = [self.columns[name] for name in FACT_COLUMNS]
        facts += [numbers[name].take(rows) for name in _CONTEXT_NUMBERS]
        facts.append(_NO_ROOM_LIMIT)
        self.facts = Facts(*facts)

    def write_features(self, out: Floats) -> None:
        """Fills the live columns of the first m pairs' features, (m, F); the rest are there."""
        count, live = len(out), self.columns
        request, mark = self.facts.request[:count], live["mark"][:count]
        out[:, _S["size"]] = log_tokens(live["size"][:count])
        for name in ("sent", "pinned", "superseded", "settled", "locked"):
            out[:, _S[name]] = live[name][:count]
        out[:, _S["marked"]] = mark >= 0
        out[:, _S["wait"]] = (mark - request).clip(0, 8) / 8
        edited = live["edited"][:count]
        out[:, _S["edit_recency"]] = recency(edited >= 0, request - edited)
        form = live["form"][:count]
        out[:, _FORM_FULL : _FORM_FULL + len(_FORM_ROWS[0])] = _FORM_ROWS.take(form, axis=0)
        for name, values in self._shared.items():
            out[:, _S[name]] = values[:count]

    def write_archive_features(self, out: Floats) -> None:
        """Fills the live columns of the last m pairs' archive features, (m, Fa)."""
        first, live = len(self.facts.request) - len(out), self.columns
        gone = self.facts.request[first:] - live["edited"][first:]
        out[:, _A["archived_age"]] = log_age(np.maximum(0, gone))
        out[:, _A["superseded"]] = live["superseded"][first:]
        out[:, _A["covered"]] = live["covered"][first:] >= 0
        for name, values in self._shared.items():
            out[:, _A[name]] = values[first:]

    @cached_property
    def _shared(self) -> dict[str, Floats]:
        """The features that segments have wherever they are."""
        live, request, references = self.columns, self.facts.request, self.columns["references"]
        return {
            "age": log_age(request - live["arrival"]),
            "references": log_references(references),
            "reference_recency": recency(references > 0, request - live["referenced"]),
            "reloads": log_reloads(live["reloads"]),
        }


_FORM_ROWS = np.eye(len(Form), dtype=np.float32)[:, 1:]
