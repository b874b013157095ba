"""One encoding for the environment and the manager: contexts in, arrays and action mask out.

Encoding is incremental. A refresh (new arrivals) encodes a whole row; an edit re-encodes the
slots that it changed; what depends on the row as a whole (tokens behind a slot, room in the
budget) is computed for all rows at once.

Shapes: B rows, S context slots, M archive slots, F features, T text tokens, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.edit_log import EditLog
from contextpilot.core.invariants import FACT_COLUMNS, Facts, legal_facts
from contextpilot.core.prices import Prices
from contextpilot.core.segment import Form
from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS, ActionCodec
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.features import (
    AGE_SCALE,
    ARCHIVE_FEATURES,
    ARCHIVE_INDEX,
    SEGMENT_FEATURES,
    SEGMENT_INDEX,
    STATE_FEATURES,
    STATE_INDEX,
    TOKEN_SCALE,
)
from contextpilot.observations.slots import archive_slots, context_slots
from contextpilot.observations.statics import Statics
from contextpilot.observations.text import GOAL_TEXT_TOKENS, SEGMENT_TEXT_TOKENS, text_tokens

Floats = NDArray[np.float32]
Indices = NDArray[np.integer]

_S, _A, _G = SEGMENT_INDEX, ARCHIVE_INDEX, STATE_INDEX
_NO_ROOM_LIMIT = 1 << 30
_RELOADS = [p for p, preset in enumerate(CONTEXT_PRESETS) if preset.rule.startswith("reload")]
_LAST_OPS = 4


class ObservationEncoder:
    """Holds the observation arrays of B rows and keeps them up to date.

    Attributes:
        segments: (B, S, F) float32; segment_tokens: (B, S, T) int16; segment_mask: (B, S) int8.
        archive: (B, M, Fa) float32; archive_tokens: (B, M, T) int16; archive_mask: (B, M) int8.
        goal_tokens: (B, Tg) int16; state: (B, G) float32; action_mask: (B, A) int8.
        slot_index, archive_index: (B, S) and (B, M) segment indices; -1 where a slot is empty.
    """

    def __init__(
        self,
        batch: ColumnBatch,
        codec: ActionCodec,
        *,
        max_edits: int,
        prices: Prices,
        reload_output_tokens: int,
    ) -> None:
        rows, slots, archived = batch.rows, codec.context_slots, codec.archive_slots
        self.batch, self.codec, self.max_edits = batch, codec, max_edits
        self.segments = np.zeros((rows, slots, len(SEGMENT_FEATURES)), np.float32)
        self.segment_tokens = np.zeros((rows, slots, SEGMENT_TEXT_TOKENS), np.int16)
        self.segment_mask = np.zeros((rows, slots), np.int8)
        self.archive = np.zeros((rows, archived, len(ARCHIVE_FEATURES)), np.float32)
        self.archive_tokens = np.zeros((rows, archived, SEGMENT_TEXT_TOKENS), np.int16)
        self.archive_mask = np.zeros((rows, archived), np.int8)
        self.goal_tokens = np.zeros((rows, GOAL_TEXT_TOKENS), np.int16)
        self.state = np.zeros((rows, len(STATE_FEATURES)), np.float32)
        self.action_mask = np.zeros((rows, codec.size), np.int8)
        self.slot_index = np.full((rows, slots), -1, np.intp)
        self.archive_index = np.full((rows, archived), -1, np.intp)
        self._legal = np.zeros((rows, codec.size), np.int8)
        self._legal[:, 0] = 1
        # Integer copies of what the row-wide part needs of every slot.
        self._size = np.zeros((rows, slots), np.int32)
        self._full = np.zeros((rows, slots), np.int32)
        self._rank = np.zeros((rows, slots), np.int32)
        self._due = np.zeros((rows, slots), np.int32)
        self._archive_full = np.zeros((rows, archived), np.int32)
        self._unlisted_behind = np.zeros((rows, slots), np.int32)
        self._overflowed = np.zeros(rows, bool)
        self._statics: list[Statics] = [Statics(())] * rows
        self._unlisted = np.zeros((rows, 2), np.float32)
        self._pending: list[tuple[int, Indices]] = []
        self._pending_archives: list[int] = []
        self._pending_unlisted: list[int] = []
        reload_output = np.log1p(reload_output_tokens) / TOKEN_SCALE
        first = _G["price_cached"]
        self.state[:, first : first + 4] = (
            prices.cached_read, prices.cache_write, prices.output / 10, reload_output,
        )  # fmt: skip

    # ---- rows ------------------------------------------------------------------------------

    def start(self, row: int, statics: Statics, goal: str) -> None:
        """Begins an episode in a row."""
        self._statics[row] = statics.fork()
        self.goal_tokens[row] = text_tokens(goal, GOAL_TEXT_TOKENS)

    def refresh(self, row: int, context: Context) -> None:
        """Gives a row's visible and archived segments their slots, to be encoded by `finish`."""
        columns = {name: self.batch.arrays[name][row] for name in _SLOT_COLUMNS}
        order = columns["order"][: context.length].astype(np.intp)
        chosen = context_slots(
            order, columns["form"], columns["size"], columns["pinned"], self.codec.context_slots
        )
        gone = archive_slots(
            order, columns["form"], columns["kind"], columns["edited"], self.codec.archive_slots
        )
        self._fill(row, context, chosen, gone)

    def reassign(self, row: int, context: Context, slots: Indices, archived: Indices) -> None:
        """Gives a row the slots that a restored snapshot had, to be encoded by `finish`."""
        # Manager-made segments of the abandoned branch may have had the same indices.
        self._statics[row].extend(context.entries[: context.native])
        self._fill(row, context, slots[slots >= 0], archived[archived >= 0])

    def update(self, row: int, indices: Sequence[int]) -> None:
        """Notes the segments that an edit changed, to be encoded by `finish`.

        No indices mean the whole row: after an edit that moved segments.
        """
        if len(indices) == 1:
            found = np.nonzero(self.slot_index[row] == indices[0])[0]
            self._pending.append((row, found))
            if not len(found):
                self._pending_archives.append(row)
                self._pending_unlisted.append(row)
            return
        of_row = self.slot_index[row]
        found = np.nonzero(np.isin(of_row, indices) if indices else of_row >= 0)[0]
        self._pending.append((row, found))
        self._pending_archives.append(row)
        if not indices or len(found) < len(indices):
            self._pending_unlisted.append(row)

    def finish(
        self, contexts: Sequence[Context], logs: Sequence[EditLog], steps: Sequence[int]
    ) -> None:
        """Computes what depends on whole rows; afterwards the arrays are the observation.

        Args:
            contexts, logs: all B of them, by row.
            steps: edit steps used in the present request, by row.
        """
        rows = self._row_numbers(contexts)
        for row in np.nonzero(rows["overflows"] != self._overflowed)[0]:
            self.update(int(row), ())
        self._overflowed[:] = rows["overflows"]
        self._encode_pending(rows)
        self._count_unlisted(contexts)
        self._finish_slots(rows)
        self._finish_state(rows, logs, np.asarray(steps))
        self._finish_mask(rows["room"])

    # ---- slots -----------------------------------------------------------------------------

    def _encode_pending(self, rows: dict[str, Indices]) -> None:
        if self._pending:
            row_of = np.repeat(
                [row for row, _ in self._pending], [len(found) for _, found in self._pending]
            )
            self._encode(row_of, np.concatenate([found for _, found in self._pending]), rows)
            self._pending.clear()
        if self._pending_archives:
            self._encode_archive(np.unique(self._pending_archives), rows)
            self._pending_archives.clear()

    def _fill(self, row: int, context: Context, chosen: Indices, gone: Indices) -> None:
        """Writes what is constant about the segments that have slots, and clears the rest."""
        arrays = self.batch.arrays
        statics = self._statics[row]
        statics.extend(context.entries)
        n = len(chosen)
        self.slot_index[row] = -1
        self.slot_index[row, :n] = chosen
        self.segments[row, :n] = statics.segments[chosen]
        self.segments[row, n:] = 0
        self.segment_tokens[row, :n] = statics.tokens[chosen]
        self.segment_tokens[row, n:] = 0
        self.segment_mask[row] = 0
        self._legal[row, 1:] = 0
        for array in (self._size, self._full, self._rank, self._due, self._unlisted_behind):
            array[row] = 0
        order = arrays["order"][row, : context.length].astype(np.intp)
        self._assign_unlisted(row, order, arrays["size"][row], chosen)
        m = len(gone)
        self.archive_index[row] = -1
        self.archive_index[row, :m] = gone
        self.archive[row, :m] = statics.archive[gone]
        self.archive[row, m:] = 0
        self.archive_tokens[row, :m] = statics.tokens[gone]
        self.archive_tokens[row, m:] = 0
        self.archive_mask[row, :m], self.archive_mask[row, m:] = 1, 0
        self._archive_full[row] = 0
        self._archive_full[row, :m] = arrays["full"][row, gone]
        self._pending.append((row, np.arange(n)))
        self._pending_archives.append(row)

    def _assign_unlisted(
        self, row: int, order: Indices, size: Indices, chosen: Indices
    ) -> None:
        """Notes what has no slot: how much, and how much of it lies behind each slot."""
        rank = self.batch.arrays["rank"][row][chosen]
        unlisted = size[order]
        unlisted[rank] = 0
        count = int(np.count_nonzero(unlisted))
        self._unlisted[row], self._unlisted_behind[row] = 0, 0
        if count:
            tokens = unlisted.sum()
            self._unlisted[row] = count, tokens
            self._unlisted_behind[row, : len(chosen)] = (tokens - np.cumsum(unlisted))[rank]

    def _count_unlisted(self, contexts: Sequence[Context]) -> None:
        """Counts again what has no slot, in rows where an edit changed some of it."""
        for row in set(self._pending_unlisted):
            order = self.batch.arrays["order"][row, : contexts[row].length].astype(np.intp)
            index = self.slot_index[row]
            self._assign_unlisted(row, order, self.batch.arrays["size"][row], index[index >= 0])
        self._pending_unlisted.clear()

    def _encode(self, rows: Indices, slots: Indices, numbers: dict[str, Indices]) -> None:
        """Encodes (row, slot) pairs: live features and legality."""
        if not len(rows):
            return
        index = self.slot_index[rows, slots]
        arrays = self.batch.arrays
        live = {name: arrays[name][rows, index] for name in _GATHERED}
        facts = self._facts(live, rows, numbers)
        request = facts.request
        self.segments[rows, slots, _FIRST_LIVE] = np.log1p(live["size"]) / TOKEN_SCALE
        self._live_features(rows, slots, live, request)
        self.segment_mask[rows, slots] = live["form"] != Form.ABSENT
        self._size[rows, slots] = live["size"]
        self._full[rows, slots] = live["full"]
        self._rank[rows, slots] = live["rank"]
        due = legal_facts("flush_fold", facts)
        self._due[rows, slots] = np.where(due, live["size"] - live["stub"], 0)
        verdicts: dict[str, NDArray[np.bool_]] = {"flush_fold": due}
        for p, preset in enumerate(CONTEXT_PRESETS):
            if preset.rule not in verdicts:
                verdicts[preset.rule] = legal_facts(preset.rule, facts)
            self._legal[rows, 1 + p * self.codec.context_slots + slots] = verdicts[preset.rule]

    def _live_features(
        self, rows: Indices, slots: Indices, live: dict[str, Indices], request: Indices
    ) -> None:
        out = np.zeros((len(rows), _LAST_LIVE - _FIRST_LIVE_BLOCK), np.float32)
        column = {name: out[:, _S[name] - _FIRST_LIVE_BLOCK] for name in _LIVE_BLOCK}
        column["sent"][:] = live["sent"]
        column["pinned"][:] = live["pinned"]
        column["marked"][:] = live["mark"] >= 0
        column["wait"][:] = np.clip(live["mark"] - request, 0, 8) / 8
        column["references"][:] = np.log1p(live["references"]) / 4
        column["reference_recency"][:] = _recency(live["references"] > 0, request, live["referenced"])
        column["superseded"][:] = live["superseded"]
        column["reloads"][:] = np.log1p(live["reloads"]) / 3
        column["edit_recency"][:] = _recency(live["edited"] >= 0, request, live["edited"])
        column["settled"][:] = live["settled"]
        column["locked"][:] = live["locked"]
        self.segments[rows, slots, _FIRST_LIVE_BLOCK:_LAST_LIVE] = out
        self.segments[rows, slots, _S["age"]] = np.log1p(request - live["arrival"]) / AGE_SCALE
        forms = np.zeros((len(rows), 4), np.float32)
        shown = live["form"] != Form.ABSENT
        forms[np.nonzero(shown)[0], live["form"][shown].astype(np.intp) - 1] = 1
        self.segments[rows, slots, _S["form_full"] : _S["form_full"] + 4] = forms

    def _facts(
        self, live: dict[str, Indices], rows: Indices, numbers: dict[str, Indices]
    ) -> Facts:
        return Facts(
            **{name: live[name] for name in FACT_COLUMNS},
            request=numbers["request"][rows],
            overflows=numbers["overflows"][rows],
            latest_user_rank=numbers["latest_user_rank"][rows],
            room=_NO_ROOM_LIMIT,  # room changes with every edit; `_finish_mask` applies it
        )

    def _encode_archive(self, rows: Indices, numbers: dict[str, Indices]) -> None:
        row_of, slot = np.nonzero(self.archive_index[rows] >= 0)
        if not len(slot):
            return
        r = rows[row_of]
        index = self.archive_index[r, slot]
        live = {name: self.batch.arrays[name][r, index] for name in _GATHERED}
        facts = self._facts(live, r, numbers)
        request = facts.request
        put = self.archive
        put[r, slot, _A["age"]] = np.log1p(request - live["arrival"]) / AGE_SCALE
        put[r, slot, _A["archived_age"]] = (
            np.log1p(np.maximum(0, request - live["edited"])) / AGE_SCALE
        )
        put[r, slot, _A["references"]] = np.log1p(live["references"]) / 4
        put[r, slot, _A["reference_recency"]] = _recency(
            live["references"] > 0, request, live["referenced"]
        )
        put[r, slot, _A["superseded"]] = live["superseded"]
        put[r, slot, _A["reloads"]] = np.log1p(live["reloads"]) / 3
        put[r, slot, _A["covered"]] = live["covered"] >= 0
        for q, preset in enumerate(ARCHIVE_PRESETS):
            start = self.codec.archive_start + q * self.codec.archive_slots
            self._legal[r, start + slot] = legal_facts(preset.rule, facts)

    # ---- whole rows --------------------------------------------------------------------------

    def _row_numbers(self, contexts: Sequence[Context]) -> dict[str, Indices]:
        numbers = np.array(
            [
                (
                    c.total, c.prefix_tokens, c.budget.input_limit, c.budget.threshold_tokens,
                    c.budget.reserved_output_tokens, c.arrived_tokens, c.request, c.length,
                    c.break_at, c.sent_length, c.cold, c.in_tool_loop, c.latest_user_rank,
                )
                for c in contexts
            ],
            np.int64,
        )  # fmt: skip
        rows = dict(zip(_ROW_NUMBERS, numbers.T, strict=True))
        rows["used"] = rows["total"] + rows["prefix"]
        rows["overflows"] = rows["used"] > rows["limit"]
        rows["room"] = rows["limit"] - rows["used"]
        return rows

    def _finish_slots(self, rows: dict[str, Indices]) -> None:
        behind = self._size.sum(axis=1, keepdims=True) - np.cumsum(self._size, axis=1)
        behind = behind + self._unlisted_behind
        mask = self.segment_mask
        self.segments[:, :, _S["tokens_behind"]] = np.log1p(behind) / TOKEN_SCALE * mask
        length = np.maximum(rows["length"], 1)[:, None]
        self.segments[:, :, _S["position"]] = self._rank / length * mask
        pending = rows["break"] < rows["sent_length"]
        behind_break = (self._rank >= rows["break"][:, None]) & pending[:, None] & (mask != 0)
        self.segments[:, :, _S["behind_break"]] = behind_break
        state = self.state
        state[:, _G["pending_break"]] = pending
        broken = np.where(behind_break, self._size, 0).sum(axis=1)
        state[:, _G["break_tokens_behind"]] = np.log1p(broken) / TOKEN_SCALE
        state[:, _G["due_tokens"]] = np.log1p(self._due.sum(axis=1)) / TOKEN_SCALE
        due_behind = np.where(behind_break, self._due, 0).sum(axis=1)
        state[:, _G["due_behind_break_tokens"]] = np.log1p(due_behind) / TOKEN_SCALE

    def _finish_state(
        self, rows: dict[str, Indices], logs: Sequence[EditLog], steps: Indices
    ) -> None:
        state = self.state
        state[:, _G["used"]] = np.minimum(2.0, rows["used"] / rows["limit"])
        for name, value in (
            ("used_tokens", rows["used"]),
            ("limit_tokens", rows["limit"]),
            ("reserved_tokens", rows["reserved"]),
            ("prefix_tokens", rows["prefix"]),
            ("arrived_tokens", rows["arrived"]),
            ("unlisted_tokens", self._unlisted[:, 1]),
        ):
            state[:, _G[name]] = np.log1p(value) / TOKEN_SCALE
        state[:, _G["threshold"]] = rows["threshold"] / rows["limit"]
        state[:, _G["pressure"]] = rows["used"] > rows["threshold"]
        state[:, _G["overflow"]] = rows["overflows"]
        state[:, _G["request"]] = np.log1p(rows["request"]) / AGE_SCALE
        state[:, _G["step"]] = steps / self.max_edits
        state[:, _G["unlisted"]] = np.log1p(self._unlisted[:, 0]) / 6
        state[:, _G["cold"]] = rows["cold"]
        state[:, _G["in_tool_loop"]] = rows["loop"]
        first = _G["last_op_0"]
        for row, log in enumerate(logs):
            ops = log.last_ops(_LAST_OPS)
            state[row, first : first + _LAST_OPS] = [op / 6 for op in ops] + [-1.0] * (
                _LAST_OPS - len(ops)
            )

    def _finish_mask(self, room: Indices) -> None:
        """The mask of legal actions, less the reloads that no longer fit."""
        slots = self.codec.context_slots
        mask = self.action_mask
        mask[:] = self._legal
        fits = self._full <= room[:, None]
        for p in _RELOADS:
            mask[:, 1 + p * slots : 1 + (p + 1) * slots] &= fits
        if self.codec.archive_slots:
            fits = self._archive_full <= room[:, None]
            mask[:, self.codec.archive_start :] &= np.tile(fits, len(ARCHIVE_PRESETS))


def _recency(happened: NDArray[np.bool_], request: Indices, when: Indices) -> Floats:
    """Returns 1 / (1 + requests since), and 0 for what never happened."""
    since = np.maximum(0, request - when).astype(np.float32)
    return np.where(happened, 1 / (1 + since), 0).astype(np.float32)


_SLOT_COLUMNS = ("order", "form", "size", "pinned", "kind", "edited")
_ROW_NUMBERS = (
    "total", "prefix", "limit", "threshold", "reserved", "arrived", "request", "length", "break",
    "sent_length", "cold", "loop", "latest_user_rank",
)  # fmt: skip
_GATHERED = tuple(
    dict.fromkeys(
        (*FACT_COLUMNS, "stub", "arrival", "reloads", "references", "referenced", "superseded", "locked")
    )
)
_LIVE_BLOCK = (
    "sent", "pinned", "marked", "wait", "references", "reference_recency", "superseded", "reloads",
    "edit_recency", "settled", "locked",
)  # fmt: skip
_FIRST_LIVE = _S["size"]
_FIRST_LIVE_BLOCK, _LAST_LIVE = _S["sent"], _S["locked"] + 1
