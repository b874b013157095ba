"""The action layout: a bijection between integers and (operation, preset, slot).

    0                                    keep
    1 + p * S + s                        preset p of CONTEXT_PRESETS on context slot s
    1 + P * S + q * M + m                preset q of ARCHIVE_PRESETS on archive slot m

with S context slots, M archive slots and P context presets. Checkpoints carry `ACTION_VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass

from contextpilot.core.context import Context
from contextpilot.core.edit import (
    Drop,
    Edit,
    Expire,
    Fold,
    Keep,
    Op,
    Placement,
    Position,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.invariants import legal_among
from contextpilot.core.segment import Form, Kind
from contextpilot.edits.check import require_legal
from contextpilot.errors import ConfigurationError, IllegalEditError

ACTION_VERSION = 1

# Looked up once: members of an enumeration are slow to reach through their class.
_SUMMARY = int(Kind.SUMMARY)
_STUB, _OUTLINE = Form.STUB, Form.OUTLINE
_KEEP, _SUMMARIZE, _FOLD, _EXPIRE, _DROP, _RELOAD, _ = Op
_PLACEMENTS = {placement.value: placement for placement in Placement}
_POSITIONS = {position.value: position for position in Position}


@dataclass(frozen=True, slots=True)
class Preset:
    """One way of editing a slot: its operation, its name, and the legality rule it is under."""

    op: Op
    name: str
    rule: str


CONTEXT_PRESETS = (
    Preset(Op.SUMMARIZE, "this", "summarize"),
    Preset(Op.SUMMARIZE, "through", "summarize_run"),
    Preset(Op.FOLD, "stub", "fold"),
    Preset(Op.FOLD, "outline", "outline"),
    Preset(Op.FOLD, "flush", "flush_fold"),
    Preset(Op.EXPIRE, "0", "expire"),
    Preset(Op.EXPIRE, "2", "expire"),
    Preset(Op.EXPIRE, "8", "expire"),
    Preset(Op.DROP, "this", "drop"),
    Preset(Op.DROP, "flush", "flush_drop"),
    Preset(Op.RELOAD, "in_place", "reload_in_place"),
    Preset(Op.RELOAD, "at_end", "reload_at_end"),
    Preset(Op.REORDER, "front", "reorder"),
    Preset(Op.REORDER, "end", "reorder"),
)
"""What can be done to a segment that has a context slot."""

ARCHIVE_PRESETS = (
    Preset(Op.RELOAD, "in_place", "reload_in_place"),
    Preset(Op.RELOAD, "at_end", "reload_at_end"),
)
"""What can be done to a segment that only the archive has."""

SUMMARY_RATIO = 4
"""A summary may have a quarter of its sources' tokens, within the budget's limit."""

SUMMARY_FLOOR_TOKENS = 48
"""Below this a summary is little more than its header."""


@dataclass(frozen=True, slots=True)
class Action:
    """A decoded action: `slot` counts archive slots where `archived`; keep has slot -1."""

    op: Op
    preset: str
    slot: int
    archived: bool = False


class ActionCodec:
    """Encodes and decodes actions for a number of context and archive slots."""

    def __init__(self, context_slots: int = 128, archive_slots: int = 32) -> None:
        if context_slots < 1 or archive_slots < 0:
            raise ConfigurationError(
                "`context_slots` must be positive and `archive_slots` at least 0. "
                f"Received {context_slots} and {archive_slots}."
            )
        self.context_slots = context_slots
        self.archive_slots = archive_slots
        self.archive_start = 1 + len(CONTEXT_PRESETS) * context_slots
        self.size = self.archive_start + len(ARCHIVE_PRESETS) * archive_slots
        self._preset_index = {(p.op, p.name): i for i, p in enumerate(CONTEXT_PRESETS)}
        self._archive_index = {p.name: i for i, p in enumerate(ARCHIVE_PRESETS)}
        self._actions = [Action(Op.KEEP, "", -1)]
        for preset in CONTEXT_PRESETS:
            self._actions += [
                Action(preset.op, preset.name, slot) for slot in range(context_slots)
            ]  # fmt: skip
        for preset in ARCHIVE_PRESETS:
            self._actions += [
                Action(preset.op, preset.name, slot, archived=True) for slot in range(archive_slots)
            ]

    def encode(self, op: Op, preset: str = "", slot: int = -1, *, archived: bool = False) -> int:
        """Returns the action's integer.

        Raises:
            ConfigurationError: for a preset or slot that the layout does not have.
        """
        if op == Op.KEEP:
            return 0
        slots = self.archive_slots if archived else self.context_slots
        index = (
            self._archive_index.get(preset) if archived and op == Op.RELOAD
            else None if archived else self._preset_index.get((op, preset))
        )  # fmt: skip
        if index is None or not 0 <= slot < slots:
            raise ConfigurationError(
                f"no action {op.name.lower()} with preset {preset!r} on "
                f"{'archive' if archived else 'context'} slot {slot}; the layout has {slots} slots "
                f"and the presets {[(p.op.name.lower(), p.name) for p in CONTEXT_PRESETS]}."
            )
        start = self.archive_start if archived else 1
        return start + index * slots + slot

    def decode(self, action: int) -> Action:
        """Returns what an integer means.

        Raises:
            ConfigurationError: when it is outside [0, size).
        """
        if not 0 <= action < self.size:
            raise ConfigurationError(f"an action must lie in [0, {self.size}). Received {action}.")
        return self._actions[action]


def to_edit(context: Context, action: Action, index: int) -> Edit:
    """Returns the edit that an action asks for on the segment in its slot.

    Raises:
        IllegalEditError: when the slot is empty (index -1), or nothing may leave with it.
    """
    op, preset = action.op, action.preset
    if op == _KEEP:
        return Keep()
    if index < 0:
        raise IllegalEditError(
            f"slot {action.slot} is empty. The action mask shows what is legal.", "arrived"
        )
    if op == _SUMMARIZE:
        return _summarize(context, index, run=preset == "through")
    if op == _FOLD:
        if preset == "flush":
            return Fold(marked_behind(context, index, "flush_fold"))
        return Fold((index,), _OUTLINE if preset == "outline" else _STUB)
    if op == _EXPIRE:
        return Expire((index,), int(preset))
    if op == _DROP:
        flush = preset == "flush"
        return Drop(marked_behind(context, index, "flush_drop") if flush else (index,))
    if op == _RELOAD:
        return Reload((index,), _PLACEMENTS[preset])
    return Reorder((index,), _POSITIONS[preset])


def marked_behind(context: Context, index: int, rule: str) -> tuple[int, ...]:
    """Returns the segments at or behind `index` that are marked, due, and may leave by `rule`.

    Raises:
        IllegalEditError: when `index` itself may not; a flush begins where something leaves.
    """
    require_legal(context, rule, (index,))
    c = context.columns
    behind = c.order[c.rank[index] : context.length].tolist()
    return tuple(legal_among(rule, context, [i for i in behind if c.mark[i] >= 0]))


def _summarize(context: Context, index: int, *, run: bool) -> Summarize:
    c = context.columns
    targets = run_through(context, index) if run else (index,)
    tokens = sum(c.size[i] for i in targets)
    return Summarize(targets, summary_limit(tokens, context.budget.summarize_max_tokens), run)


def summary_limit(tokens: int, summarize_max_tokens: int) -> int:
    """Returns how long the summary of `tokens` tokens may be."""
    return max(SUMMARY_FLOOR_TOKENS, min(summarize_max_tokens, tokens // SUMMARY_RATIO))


def run_through(context: Context, index: int) -> tuple[int, ...]:
    """Returns what may leave between the last summary (inclusive) and a segment's exchange.

    An exchange belongs to the run only as a whole; what is pinned or unread stays where it is.

    Raises:
        IllegalEditError: when the segment itself may not leave.
    """
    require_legal(context, "summarize_run", (index,))
    c = context.columns
    form, kind = c.form, c.kind
    end = max([c.rank[i] for i in context.group(index)])
    shown: list[int] = []
    for i in reversed(c.order[: end + 1].tolist()):
        if form[i]:
            shown.append(i)
            if kind[i] == _SUMMARY:
                break
    shown.reverse()
    legal = set(legal_among("summarize_run", context, shown))
    return tuple(
        [i for i in shown if i in legal and all(j in legal for j in context.group(i) if form[j])]
    )
