"""One encoding for the environment and the manager: contexts in, arrays and action mask out.

Encoding is incremental. A refresh (new arrivals) gives a row's segments their slots; an edit
re-encodes the slots of what it changed; what depends on the row as a whole (tokens behind a slot,
room in the budget) is computed for all rows at once.

Shapes: B rows, S context slots, M archive slots, F features, T text tokens, A actions, N segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

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
from contextpilot.observations.slots import SlotTable
from contextpilot.observations.statics import BatchStatics, Statics
from contextpilot.observations.text import GOAL_TEXT_TOKENS, SEGMENT_TEXT_TOKENS, goal_tokens

Floats = NDArray[np.float32]
Indices = NDArray[np.integer]

_S, _G = SEGMENT_INDEX, STATE_INDEX
_RULES = tuple(dict.fromkeys(preset.rule for preset in (*CONTEXT_PRESETS, *ARCHIVE_PRESETS)))
_OF_CONTEXT = [_RULES.index(preset.rule) for preset in CONTEXT_PRESETS]
_OF_ARCHIVE = [_RULES.index(preset.rule) for preset in ARCHIVE_PRESETS]
_DUE = _RULES.index("flush_fold")
_TOGETHER = Rules(_RULES)
_RELOADS = [p for p, preset in enumerate(CONTEXT_PRESETS) if preset.rule.startswith("reload")]
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
        self._slots = SlotTable(batch, slots, archived)
        self.slot_index = self._slots.held[:, :slots]
        self.archive_index = self._slots.held[:, slots:]
        self._legal = np.zeros((rows, codec.size), np.int8)
        self._legal[:, 0] = 1
        # Integer copies of what the row-wide part needs of every slot.
        self._size = np.zeros((rows, slots), np.int32)
        self._due = np.zeros((rows, slots), np.int32)
        self._full = np.zeros((rows, slots), np.int32)
        self._returning = np.zeros((rows, len(_RETURNING), archived), np.int32)
        self._statics = BatchStatics(rows)
        self._requests = np.zeros((rows, len(_REQUEST_NUMBERS)), np.int64)
        self._used = np.zeros(rows, np.intp)
        self._overflowed = np.zeros(rows, bool)
        self._refreshed: dict[int, Context] = {}
        self._given: dict[int, tuple[Indices, Indices]] = {}
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
        self._given.pop(row, None)
        self._refreshed[row] = context

    def reassign(self, row: int, context: Context, slots: Indices, archived: Indices) -> None:
        """Asks for a row to get the slots that a restored snapshot had, in `finish`."""
        self._statics.forget(row, context)
        self._refreshed[row] = context
        self._given[row] = slots, archived

    def update(self, row: int, indices: Sequence[int]) -> None:
        """Notes the segments that an edit changed, to be encoded by `finish`."""
        self._changed += indices
        self._changed_rows += [row] * len(indices)

    def finish(
        self, contexts: Sequence[Context], logs: Sequence[EditLog], steps: Sequence[int]
    ) -> None:
        """Brings everything up to date; afterwards the arrays are the observation.

        `contexts` and `logs` are all B of them, by row, and `steps` the edit steps that each row
        has used in its present request.
        """
        self._slots.keep_up_with_growth()
        self._statics.reserve(self.batch.capacity)
        whole = np.zeros(self.batch.rows, bool)
        if self._refreshed:
            whole[list(self._refreshed)] = True
            self._assign()
        rows = self._row_numbers(contexts, logs, steps)
        whole |= rows["overflows"] != self._overflowed
        self._overflowed = rows["overflows"]
        self._encode(whole, rows)
        self._finish_slots(rows)
        self._finish_state(rows)
        self._finish_mask(rows["room"])

    # ---- slots -----------------------------------------------------------------------------

    def _assign(self) -> None:
        """Gives the refreshed rows their slots and writes what is constant about them."""
        for row, context in self._refreshed.items():
            budget = context.budget
            self._requests[row] = (
                context.prefix_tokens, budget.input_limit, budget.threshold_tokens,
                budget.reserved_output_tokens, context.arrived_tokens, context.request,
                context.cold, context.latest_user,
            )  # fmt: skip
        rows = np.array(list(self._refreshed), np.intp)
        lengths = np.array([context.length for context in self._refreshed.values()], np.intp)
        taken = self._slots.assign(rows, lengths, self._given)
        self._used[rows] = (self.slot_index[rows] >= 0).sum(axis=1)
        self._statics.complete(self._refreshed, taken[0], taken[2])
        self._clear(rows)
        self._write_constants(*taken)
        self._write_request_state(rows)
        self._refreshed.clear()
        self._given.clear()

    def _clear(self, rows: Indices) -> None:
        self._legal[rows, 1:] = 0
        for array in (
            self.segments, self.segment_tokens, self.segment_mask, self.archive,
            self.archive_tokens, self.archive_mask, self._size, self._full, self._due,
            self._returning,
        ):  # fmt: skip
            array[rows] = 0

    def _write_constants(self, rows: Indices, slots: Indices, index: Indices) -> None:
        """Writes what is constant about the segments in the given slots."""
        statics, at = self._statics, rows * self.batch.capacity + index
        tokens = statics.tokens.reshape(-1, SEGMENT_TEXT_TOKENS).take(at, axis=0)
        listed = slots < self.codec.context_slots
        self.segment_tokens[rows[listed], slots[listed]] = tokens[listed]
        self._full[rows[listed], slots[listed]] = self.batch.arrays["full"].take(at[listed])
        archived = ~listed
        rows, slots = rows[archived], slots[archived] - self.codec.context_slots
        self.archive_tokens[rows, slots] = tokens[archived]
        self.archive_mask[rows, slots] = 1
        for q, name in enumerate(_RETURNING):
            self._returning[rows, q, slots] = self.batch.arrays[name].take(at[archived])

    def _write_request_state(self, rows: Indices) -> None:
        """Writes the state features that change with a request only."""
        numbers = dict(zip(_REQUEST_NUMBERS, self._requests[rows].T, strict=True))
        for name in ("limit", "reserved", "prefix", "arrived"):
            self.state[rows, _G[f"{name}_tokens"]] = log_tokens(numbers[name])
        self.state[rows, _G["threshold"]] = numbers["threshold"] / numbers["limit"]
        self.state[rows, _G["request"]] = log_age(numbers["request"])
        self.state[rows, _G["cold"]] = numbers["cold"]

    def _encode(self, whole: NDArray[np.bool_], numbers: dict[str, Indices]) -> None:
        """Encodes every slot of some rows, and the slots of what edits have changed elsewhere."""
        rows, slots, index = self._stale(whole)
        archived = np.flatnonzero(slots >= self.codec.context_slots)
        if len(archived):  # behind the others, so that each kind is a slice
            listed = np.flatnonzero(slots < self.codec.context_slots)
            order = np.concatenate([listed, archived])
            rows, slots, index = rows[order], slots[order], index[order]
        count = len(slots) - len(archived)
        live = Live(self.batch, rows, index, numbers)
        verdicts = _TOGETHER.verdicts(live.facts)
        self._write_listed(rows[:count], slots[:count], index[:count], live, verdicts[:, :count])
        self._write_archived(
            rows[count:], slots[count:] - self.codec.context_slots, index[count:], live,
            verdicts[:, count:],
        )  # fmt: skip

    def _stale(self, whole: NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
        """Returns row, slot and segment of what has to be encoded anew."""
        rows = np.array(self._changed_rows, np.intp)
        index = np.array(self._changed, np.intp)
        self._changed_rows.clear()
        self._changed.clear()
        slots = self._slots.of[rows, index]
        shown = (slots >= 0) & ~whole[rows]
        changed = rows[shown], slots[shown], index[shown]
        if not whole.any():
            return changed
        held = self._slots.occupied(np.flatnonzero(whole))
        first, second, third = map(np.concatenate, zip(held, changed, strict=True))
        return first, second, third

    def _write_listed(
        self, rows: Indices, slots: Indices, index: Indices, live: Live,
        verdicts: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Writes features and legality of what has context slots."""
        count, columns = len(rows), live.columns
        features = self._statics.of_segments(rows, index)
        live.write_features(features)
        self.segments[rows, slots] = features
        size = columns["size"][:count]
        self.segment_mask[rows, slots] = columns["form"][:count] != Form.ABSENT
        self._size[rows, slots] = size
        self._due[rows, slots] = (size - columns["stub"][:count]) * verdicts[_DUE]
        actions = 1 + np.arange(len(CONTEXT_PRESETS))[:, None] * self.codec.context_slots + slots
        self._legal[rows, actions] = verdicts[_OF_CONTEXT]

    def _write_archived(
        self, rows: Indices, slots: Indices, index: Indices, live: Live,
        verdicts: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Writes features and legality of what has archive slots."""
        features = self._statics.of_archive(rows, index)
        live.write_archive_features(features)
        self.archive[rows, slots] = features
        presets = np.arange(len(ARCHIVE_PRESETS))[:, None]
        actions = self.codec.archive_start + presets * self.codec.archive_slots + slots
        self._legal[rows, actions] = verdicts[_OF_ARCHIVE]

    # ---- whole rows --------------------------------------------------------------------------

    def _row_numbers(
        self, contexts: Sequence[Context], logs: Sequence[EditLog], steps: Sequence[int]
    ) -> dict[str, Indices]:
        numbers = np.fromiter(chain.from_iterable(map(_NUMBERS_OF, contexts)), np.int64)
        columns = numbers.reshape(len(contexts), -1).T
        rows: dict[str, NDArray[Any]] = dict(zip(_STEP_NUMBERS, columns, strict=True))
        rows["recent"] = np.array([log.recent for log in logs], np.int64)
        rows["step"] = np.array(steps, np.int64)
        rows.update(zip(_REQUEST_NUMBERS, self._requests.T, strict=True))
        arrays, starts = self.batch.arrays, np.arange(len(contexts)) * self.batch.capacity
        rows["starts"] = starts
        rows["used"] = rows["total"] + rows["prefix"]
        rows["room"] = rows["limit"] - rows["used"]
        rows["overflows"] = rows["room"] < 0
        user = rows["latest_user"]
        rows["latest_user_rank"] = np.where(user >= 0, arrays["rank"].take(starts + user), -1)
        last = starts + arrays["order"].take(starts + rows["length"] - 1)
        loop = self._statics.tool.take(last) | (arrays["kind"].take(last) == Kind.COPY)
        rows["loop"] = loop & (rows["length"] > 0)
        return rows

    def _finish_slots(self, rows: dict[str, Indices]) -> None:
        """Computes what an edit anywhere in a row may change about all its slots."""
        width = max(1, int(self._used.max()))  # an empty context has its arrays, too
        shown, size = self.segment_mask[:, :width] != 0, self._size[:, :width]
        at = rows["starts"][:, None] + self.slot_index[:, :width]
        rank = self.batch.arrays["rank"].take(at) * shown
        through = np.cumsum(size, axis=1)
        listed = through[:, -1:]
        behind = listed - through
        unlisted = rows["total"] - listed[:, 0]
        state = self.state
        state[:, _G["unlisted"]] = state[:, _G["unlisted_tokens"]] = 0
        if unlisted.any():
            behind += self._unlisted_behind(rows, unlisted, rank)
        behind *= shown
        self.segments[:, :width, _S["tokens_behind"]] = log_tokens(behind)
        length = np.maximum(rows["length"], 1)[:, None]
        self.segments[:, :width, _S["position"]] = rank / length
        pending = rows["break"] < rows["sent_length"]
        behind_break = (rank >= rows["break"][:, None]) & pending[:, None] & shown
        self.segments[:, :width, _S["behind_break"]] = behind_break
        due = self._due[:, :width]
        state[:, _G["pending_break"]] = pending
        state[:, _TOKENS] = log_tokens(
            np.stack([(size * behind_break).sum(1), due.sum(1), (due * behind_break).sum(1)], 1)
        )

    def _unlisted_behind(
        self, rows: dict[str, Indices], unlisted: Indices, rank: Indices
    ) -> Indices:
        """Notes how much of each row has no slot; returns how much of it is behind each slot."""
        length = int(rows["length"].max())
        at = self.batch.arrays["order"][:, :length] + rows["starts"][:, None]
        slot = self._slots.of.take(at)
        without = (slot < 0) | (slot >= self.codec.context_slots)
        without &= np.arange(length) < rows["length"][:, None]
        size = self.batch.arrays["size"].take(at) * without
        self.state[:, _G["unlisted"]] = log_unlisted(np.count_nonzero(size, axis=1))
        self.state[:, _G["unlisted_tokens"]] = log_unlisted_tokens(unlisted)
        through = np.cumsum(size, axis=1)
        behind: Indices = unlisted[:, None] - through.take(
            rank + length * np.arange(len(unlisted))[:, None]
        )
        return behind

    def _finish_state(self, rows: dict[str, Indices]) -> None:
        state = self.state
        state[:, _G["used"]] = np.minimum(2.0, rows["used"] / np.maximum(1, rows["limit"]))
        state[:, _G["used_tokens"]] = log_tokens(rows["used"])
        state[:, _G["pressure"]] = rows["used"] > rows["threshold"]
        state[:, _G["overflow"]] = rows["overflows"]
        state[:, _G["step"]] = rows["step"] / self.max_edits
        state[:, _G["in_tool_loop"]] = rows["loop"]
        recent = rows["recent"][:, None] >> _RECENT_SHIFTS & (1 << RECENT_BITS) - 1
        first = _G["last_op_0"]
        state[:, first : first + RECENT_OPS] = _RECENT_FEATURE.take(recent)

    def _finish_mask(self, room: Indices) -> None:
        """The mask of legal actions, less the reloads that no longer fit."""
        mask, slots = self.action_mask, self.codec.context_slots
        mask[:] = self._legal
        fits = self._full <= room[:, None]
        for p in _RELOADS:
            mask[:, 1 + p * slots : 1 + (p + 1) * slots] &= fits
        returns = self._returning <= room[:, None, None]
        mask[:, self.codec.archive_start :] &= returns.reshape(len(mask), -1)


_NUMBERS_OF = attrgetter("total", "length", "break_at", "sent_length")
_STEP_NUMBERS = ("total", "length", "break", "sent_length")
_REQUEST_NUMBERS = (
    "prefix", "limit", "threshold", "reserved", "arrived", "request", "cold", "latest_user",
)  # fmt: skip
"""These change with a request only, so a refresh reads them."""

_TOKENS = slice(_G["break_tokens_behind"], _G["due_behind_break_tokens"] + 1)
_RECENT_SHIFTS = RECENT_BITS * np.arange(RECENT_OPS)
_RECENT_FEATURE = np.array([-1.0, *(np.arange(1 << RECENT_BITS)[:-1] / 6)], np.float32)
