"""One encoding for the environment and the manager: contexts in, arrays and action mask out.

Encoding is incremental. A refresh (new arrivals) gives a row's segments their slots; an edit
re-encodes the slots of what it changed; what depends on the row as a whole (tokens behind a slot,
room in the budget) is computed for all rows at once.

Shapes: B rows, S context slots, M archive slots, F features, T text tokens, A actions, N segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.context import Context
from contextpilot.core.edit_log import RECENT_BITS, RECENT_OPS, EditLog
from contextpilot.core.prices import Prices
from contextpilot.core.segment import Form, Kind
from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS, ActionCodec
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.features import (
    ARCHIVE_FEATURES,
    SEGMENT_FEATURES,
    SEGMENT_INDEX,
    STATE_FEATURES,
    STATE_INDEX,
    TOKEN_SCALE,
)
from contextpilot.observations.live import Live, Rules
from contextpilot.observations.scales import (
    log_age,
    log_tokens,
    log_unlisted,
    log_unlisted_tokens,
)
from contextpilot.observations.slots import archived_positions, listed_positions
from contextpilot.observations.statics import BatchStatics, Statics
from contextpilot.observations.text import GOAL_TEXT_TOKENS, SEGMENT_TEXT_TOKENS, goal_tokens

Floats = NDArray[np.float32]
Indices = NDArray[np.integer]

_S, _G = SEGMENT_INDEX, STATE_INDEX
_RELOADS = [p for p, preset in enumerate(CONTEXT_PRESETS) if preset.rule.startswith("reload")]
_RULES = tuple(dict.fromkeys(preset.rule for preset in CONTEXT_PRESETS))
_RULE_OF_PRESET = [_RULES.index(preset.rule) for preset in CONTEXT_PRESETS]
_DUE = _RULES.index("flush_fold")
_CONTEXT_RULES = Rules(_RULES)
_ARCHIVE_RULES = Rules([preset.rule for preset in ARCHIVE_PRESETS])
_RETURNING = ["full" if p.rule == "reload_at_end" else "exchange" for p in ARCHIVE_PRESETS]


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
        self._due = np.zeros((rows, slots), np.int32)
        self._returning = np.zeros((rows, archived, len(_RETURNING)), np.int32)
        self._unlisted_behind = np.zeros((rows, slots), np.int32)
        self._unlisted = np.zeros((rows, 2), np.int64)
        # Where a segment is shown: its context slot, its archive slot, -1 for neither.
        self._slot_of = np.full((rows, batch.capacity), -1, np.intp)
        self._archive_slot_of = np.full((rows, batch.capacity), -1, np.intp)
        self._statics = BatchStatics(rows)
        self._requests = np.zeros((rows, len(_REQUEST_NUMBERS)), np.int64)
        self._used = np.zeros(rows, np.intp)
        self._overflowed = np.zeros(rows, bool)
        self._refreshed: dict[int, Context] = {}
        self._reassigned: dict[int, tuple[Indices, Indices]] = {}
        self._changed_rows: list[int] = []
        self._changed: list[int] = []
        first = _G["price_cached"]
        self.state[:, first : first + 4] = (
            prices.cached_read, prices.cache_write, prices.output / 10,
            np.log1p(reload_output_tokens) / TOKEN_SCALE,
        )  # fmt: skip

    # ---- rows ------------------------------------------------------------------------------

    def start(self, row: int, statics: Statics, goal: str) -> None:
        """Begins an episode in a row."""
        self._statics.start(row, statics)
        self.goal_tokens[row] = goal_tokens(goal)

    def refresh(self, row: int, context: Context) -> None:
        """Asks for a row's visible and archived segments to get their slots, in `finish`."""
        self._reassigned.pop(row, None)
        self._refreshed[row] = context

    def reassign(self, row: int, context: Context, slots: Indices, archived: Indices) -> None:
        """Asks for a row to get the slots that a restored snapshot had, in `finish`."""
        self._statics.forget(row, context)
        self._refreshed[row] = context
        self._reassigned[row] = slots, archived

    def update(self, row: int, indices: Iterable[int]) -> None:
        """Notes the segments that an edit changed, to be encoded by `finish`."""
        before = len(self._changed)
        self._changed += indices
        self._changed_rows += [row] * (len(self._changed) - before)

    def finish(
        self, contexts: Sequence[Context], logs: Sequence[EditLog], steps: Sequence[int]
    ) -> None:
        """Brings everything up to date; afterwards the arrays are the observation.

        `contexts` and `logs` are all B of them, by row, and `steps` the edit steps that each row
        has used in its present request.
        """
        self._keep_up_with_growth()
        whole = np.zeros(self.batch.rows, bool)
        if self._refreshed:
            whole[list(self._refreshed)] = True
            self._assign()
        rows = self._row_numbers(contexts, logs, steps)
        whole |= rows["overflows"] != self._overflowed
        self._overflowed = rows["overflows"]
        self._encode_changed(whole, contexts, rows)
        self._finish_slots(rows)
        self._finish_state(rows)
        self._finish_mask(rows["room"])

    # ---- slots -----------------------------------------------------------------------------

    def _keep_up_with_growth(self) -> None:
        capacity, known = self.batch.capacity, self._slot_of.shape[1]
        self._statics.reserve(capacity)
        if known < capacity:
            missing = ((0, 0), (0, capacity - known))
            self._slot_of = np.pad(self._slot_of, missing, constant_values=-1)
            self._archive_slot_of = np.pad(self._archive_slot_of, missing, constant_values=-1)

    def _assign(self) -> None:
        """Gives the refreshed rows their slots and writes what is constant about them."""
        for row, context in self._refreshed.items():
            self._statics.extend(row, context)
            budget = context.budget
            self._requests[row] = (
                context.prefix_tokens, budget.input_limit, budget.threshold_tokens,
                budget.reserved_output_tokens, context.arrived_tokens, context.request,
                context.cold, context.latest_user,
            )  # fmt: skip
        self._statics.settle()
        rows = np.array(list(self._refreshed), np.intp)
        lengths = np.array([context.length for context in self._refreshed.values()], np.intp)
        order = self.batch.arrays["order"][rows, : lengths.max()].astype(np.intp)
        order[np.arange(order.shape[1]) >= lengths[:, None]] = -1
        at = rows[:, None] * self.batch.capacity + order
        form, size, pinned, kind, edited = (
            self.batch.arrays[name].take(at)
            for name in ("form", "size", "pinned", "kind", "edited")
        )
        self._clear(rows)
        listed = listed_positions(order, form, size, pinned, self.codec.context_slots)
        row_of, position = np.nonzero(listed)
        counts = listed.sum(axis=1)
        slot = np.arange(len(row_of)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.slot_index[rows[row_of], slot] = order[row_of, position]
        latest, counts = archived_positions(order, form, kind, edited, self.codec.archive_slots)
        row_of, slot = np.nonzero(np.arange(latest.shape[1]) < counts[:, None])
        self.archive_index[rows[row_of], slot] = order[row_of, latest[row_of, slot]]
        for row, (slots, archived) in self._reassigned.items():
            self.slot_index[row], self.archive_index[row] = slots, archived
        self._write_constants(rows)
        self._refreshed.clear()
        self._reassigned.clear()

    def _clear(self, rows: Indices) -> None:
        self.slot_index[rows] = self.archive_index[rows] = -1
        self._slot_of[rows] = self._archive_slot_of[rows] = -1
        self._legal[rows, 1:] = 0
        for array in (
            self.segments, self.segment_tokens, self.segment_mask, self.archive,
            self.archive_tokens, self.archive_mask, self._size, self._full, self._due,
            self._returning, self._unlisted_behind, self._unlisted,
        ):  # fmt: skip
            array[rows] = 0

    def _write_constants(self, rows: Indices) -> None:
        """Writes what is constant about the segments that have slots in the given rows."""
        self._used[rows] = (self.slot_index[rows] >= 0).sum(axis=1)
        at, slot, index = _occupied(rows, self.slot_index)
        self._slot_of[at, index] = slot
        self.segment_tokens[at, slot] = self._statics.tokens[at, index]
        self._full[at, slot] = self.batch.arrays["full"][at, index]
        at, slot, index = _occupied(rows, self.archive_index)
        self._archive_slot_of[at, index] = slot
        self.archive[at, slot] = self._statics.archive[at, index]
        self.archive_tokens[at, slot] = self._statics.tokens[at, index]
        self.archive_mask[at, slot] = 1
        for q, name in enumerate(_RETURNING):
            self._returning[at, slot, q] = self.batch.arrays[name][at, index]

    def _count_unlisted(self, contexts: Sequence[Context], rows: Indices) -> None:
        """Notes what has no slot in some rows: how much, and how much of it lies behind each."""
        capacity, arrays = self.batch.capacity, self.batch.arrays
        lengths = np.array([contexts[row].length for row in rows], np.intp)
        order = arrays["order"][rows, : lengths.max()]
        flat = rows[:, None] * capacity + order
        shown = (np.arange(order.shape[1]) < lengths[:, None]) & (self._slot_of.take(flat) < 0)
        unlisted = arrays["size"].take(flat) * shown
        tokens = unlisted.sum(axis=1)
        self._unlisted[rows, 0] = np.count_nonzero(unlisted, axis=1)
        self._unlisted[rows, 1] = tokens
        self._unlisted_behind[rows] = 0
        at, slot, index = _occupied(rows[tokens > 0], self.slot_index)
        behind = np.zeros((self.batch.rows, order.shape[1]), np.int32)
        behind[rows] = tokens[:, None] - np.cumsum(unlisted, axis=1)
        self._unlisted_behind[at, slot] = behind[at, arrays["rank"][at, index]]

    def _encode_changed(
        self, whole: NDArray[np.bool_], contexts: Sequence[Context], numbers: dict[str, Indices]
    ) -> None:
        """Encodes every slot of some rows, and the slots of what edits have changed elsewhere."""
        changed_rows = np.array(self._changed_rows, np.intp)
        changed = np.array(self._changed, np.intp)
        self._changed_rows.clear()
        self._changed.clear()
        found = self._slot_of[changed_rows, changed]
        count = whole | (self._unlisted[:, 0] > 0)
        count[changed_rows[found < 0]] = True
        if count.any():
            self._count_unlisted(contexts, np.flatnonzero(count))
        self._encode(*_pairs(whole, self.slot_index, changed_rows, changed, found), numbers)
        found = self._archive_slot_of[changed_rows, changed]
        self._encode_archive(
            *_pairs(whole, self.archive_index, changed_rows, changed, found), numbers
        )

    def _encode(
        self, rows: Indices, slots: Indices, index: Indices, numbers: dict[str, Indices]
    ) -> None:
        """Encodes (row, context slot) pairs: features and legality."""
        live = Live(self.batch, rows, index, numbers)
        features = self._statics.segments[rows, index]
        live.write_features(features)
        self.segments[rows, slots] = features
        columns = live.columns
        self.segment_mask[rows, slots] = columns["form"] != Form.ABSENT
        self._size[rows, slots] = columns["size"]
        verdicts = _CONTEXT_RULES.verdicts(live.facts)
        self._due[rows, slots] = (columns["size"] - columns["stub"]) * verdicts[_DUE]
        actions = 1 + np.arange(len(CONTEXT_PRESETS))[:, None] * self.codec.context_slots + slots
        self._legal[rows, actions] = verdicts[_RULE_OF_PRESET]

    def _encode_archive(
        self, rows: Indices, slots: Indices, index: Indices, numbers: dict[str, Indices]
    ) -> None:
        """Encodes (row, archive slot) pairs: features and legality."""
        live = Live(self.batch, rows, index, numbers)
        features = self._statics.archive[rows, index]
        live.write_archive_features(features)
        self.archive[rows, slots] = features
        presets = np.arange(len(ARCHIVE_PRESETS))[:, None]
        actions = self.codec.archive_start + presets * self.codec.archive_slots + slots
        self._legal[rows, actions] = _ARCHIVE_RULES.verdicts(live.facts)

    # ---- whole rows --------------------------------------------------------------------------

    def _row_numbers(
        self, contexts: Sequence[Context], logs: Sequence[EditLog], steps: Sequence[int]
    ) -> dict[str, Indices]:
        numbers = np.array(
            [
                (c.total, c.length, c.break_at, c.sent_length, log.recent, step)
                for c, log, step in zip(contexts, logs, steps, strict=True)
            ],
            np.int64,
        )
        rows = dict(zip(_STEP_NUMBERS, numbers.T, strict=True))
        rows.update(zip(_REQUEST_NUMBERS, self._requests.T, strict=True))
        arrays, every = self.batch.arrays, np.arange(len(numbers))
        rows["used"] = rows["total"] + rows["prefix"]
        rows["overflows"] = rows["used"] > rows["limit"]
        rows["room"] = rows["limit"] - rows["used"]
        user = rows["latest_user"]
        rows["latest_user_rank"] = np.where(user >= 0, arrays["rank"][every, user], -1)
        last = arrays["order"][every, rows["length"] - 1]
        loop = self._statics.tool[every, last] | (arrays["kind"][every, last] == Kind.COPY)
        rows["loop"] = loop & (rows["length"] > 0)
        return rows

    def _finish_slots(self, rows: dict[str, Indices]) -> None:
        """Computes what an edit anywhere in a row may change about all its slots."""
        width = int(self._used.max())
        mask, size = self.segment_mask[:, :width] != 0, self._size[:, :width]
        behind = size.sum(axis=1, keepdims=True) - np.cumsum(size, axis=1)
        behind += self._unlisted_behind[:, :width]
        self.segments[:, :width, _S["tokens_behind"]] = log_tokens(behind) * mask
        start = np.arange(len(mask))[:, None] * self.batch.capacity
        rank = self.batch.arrays["rank"].take(start + self.slot_index[:, :width])
        length = np.maximum(rows["length"], 1)[:, None]
        self.segments[:, :width, _S["position"]] = np.where(mask, rank / length, 0)
        pending = rows["break"] < rows["sent_length"]
        behind_break = (rank >= rows["break"][:, None]) & pending[:, None] & mask
        self.segments[:, :width, _S["behind_break"]] = behind_break
        due = self._due[:, :width]
        state = self.state
        state[:, _G["pending_break"]] = pending
        state[:, _G["break_tokens_behind"]] = log_tokens((size * behind_break).sum(axis=1))
        state[:, _G["due_tokens"]] = log_tokens(due.sum(axis=1))
        state[:, _G["due_behind_break_tokens"]] = log_tokens((due * behind_break).sum(axis=1))

    def _finish_state(self, rows: dict[str, Indices]) -> None:
        state = self.state
        state[:, _G["used"]] = np.minimum(2.0, rows["used"] / rows["limit"])
        for name, value in (
            ("used_tokens", rows["used"]),
            ("limit_tokens", rows["limit"]),
            ("reserved_tokens", rows["reserved"]),
            ("prefix_tokens", rows["prefix"]),
            ("arrived_tokens", rows["arrived"]),
        ):
            state[:, _G[name]] = log_tokens(value)
        state[:, _G["threshold"]] = rows["threshold"] / rows["limit"]
        state[:, _G["pressure"]] = rows["used"] > rows["threshold"]
        state[:, _G["overflow"]] = rows["overflows"]
        state[:, _G["request"]] = log_age(rows["request"])
        state[:, _G["step"]] = rows["step"] / self.max_edits
        state[:, _G["unlisted"]] = log_unlisted(self._unlisted[:, 0])
        state[:, _G["unlisted_tokens"]] = log_unlisted_tokens(self._unlisted[:, 1])
        state[:, _G["cold"]] = rows["cold"]
        state[:, _G["in_tool_loop"]] = rows["loop"]
        recent = rows["recent"][:, None] >> _RECENT_SHIFTS & (1 << RECENT_BITS) - 1
        first = _G["last_op_0"]
        state[:, first : first + RECENT_OPS] = np.where(recent > 0, (recent - 1) / 6, -1.0)

    def _finish_mask(self, room: Indices) -> None:
        """The mask of legal actions, less the reloads that no longer fit."""
        slots = self.codec.context_slots
        mask = self.action_mask
        mask[:] = self._legal
        fits = self._full <= room[:, None]
        for p in _RELOADS:
            mask[:, 1 + p * slots : 1 + (p + 1) * slots] &= fits
        slots = self.codec.archive_slots
        for q in range(len(ARCHIVE_PRESETS)):
            start = self.codec.archive_start + q * slots
            mask[:, start : start + slots] &= self._returning[:, :, q] <= room[:, None]


def _pairs(
    whole: NDArray[np.bool_], held: Indices, rows: Indices, index: Indices, slots: Indices
) -> tuple[Indices, Indices, Indices]:
    """Returns row, slot and segment of all slots of whole rows, and of what is shown of the rest.

    `whole` (B,) says which rows, and `held` (B, S) is what their slots hold. The rest is given by
    `rows`, `index` and `slots`, (n,) each, with slot -1 where a segment has none.
    """
    shown = slots >= 0
    pairs = zip(_occupied(np.flatnonzero(whole), held), (rows, slots, index), strict=True)
    first, second, third = (np.concatenate([a, b[shown]]) for a, b in pairs)
    return first, second, third


def _occupied(rows: Indices, held: Indices) -> tuple[Indices, Indices, Indices]:
    """Returns row, slot and segment of every slot of some rows that is not empty."""
    index = held[rows]
    row_of, slot = np.nonzero(index >= 0)
    return rows[row_of], slot, index[row_of, slot]


_STEP_NUMBERS = ("total", "length", "break", "sent_length", "recent", "step")
_REQUEST_NUMBERS = (
    "prefix", "limit", "threshold", "reserved", "arrived", "request", "cold", "latest_user",
)  # fmt: skip
"""These change with a request only, so a refresh reads them."""

_RECENT_SHIFTS = RECENT_BITS * np.arange(RECENT_OPS)
