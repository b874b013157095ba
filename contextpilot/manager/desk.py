"""The live context of one conversation: kept in step with its history, observed and edited.

The environment drives the same parts in the same way: columns, encoder, codec, `commit_edit`. What
differs is where segments come from. A history that has grown grows the context; any other change
(a branch, a cut, a changed message) builds it anew from the history and the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.budget import TokenBudget
from contextpilot.core.context import Context
from contextpilot.core.edit import Edit, EditRecord, Keep, Op
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Segment
from contextpilot.edits.apply import commit_edit
from contextpilot.edits.check import check_edit
from contextpilot.edits.codec import ActionCodec, to_edit
from contextpilot.edits.effect import count_reloads, shift
from contextpilot.edits.services import Services
from contextpilot.edits.settle import settle_marks
from contextpilot.edits.undo import undo
from contextpilot.errors import IllegalEditError
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.entries import Entries, Present
from contextpilot.manager.replay import Replay, latest_said
from contextpilot.observations.batch import ColumnBatch
from contextpilot.observations.encoder import ObservationEncoder
from contextpilot.observations.observation import Observation
from contextpilot.observations.statics import Statics

_ARRAYS = (
    "segments", "segment_tokens", "segment_mask", "archive", "archive_tokens", "archive_mask",
    "goal_tokens", "state", "action_mask",
)  # fmt: skip
_STATICS = ("segments", "archive", "tokens", "copy_tokens", "tool")
_NOTHING = Present((), (), 0, renewed=True, known=0)


class Desk:
    """One conversation's context, its log and its observation.

    Attributes:
        services: what edits work with.
        entries: every segment so far.
        context: the context of the present history.
        log: every edit.
        present: which segments the present history has.
        asleep: ids of live records that the present history lacks targets of.
    """

    def __init__(self, services: Services, config: ManagerConfig) -> None:
        self.services = services
        self.entries = Entries(services)
        self.log = EditLog()
        self.asleep: frozenset[int] = frozenset()
        self.codec = ActionCodec(config.context_slots, config.archive_slots)
        self._batch = ColumnBatch(1)
        self._encoder = ObservationEncoder(
            self._batch, self.codec, max_edits=config.max_edits, prices=config.prices,
            reload_output_tokens=config.reload_output_tokens,
        )  # fmt: skip
        self._statics: Statics | None = None
        self._has_statics = False
        self.present = _NOTHING
        self._unsettled = False
        self._members: dict[int, list[int]] = {}
        self.context = Context((), {}, config.budget, columns=self._batch.columns(0))

    # ---- the history ---------------------------------------------------------------------------

    def follow(
        self,
        segments: Sequence[Segment],
        numbers: Sequence[int],
        *,
        prefix_tokens: int,
        budget: TokenBudget,
    ) -> None:
        """Brings the context in step with a history.

        Args:
            segments: as parsed; positions are into `numbers`.
            numbers: of the history's messages.
            prefix_tokens: of what is sent before them.
            budget: the limits that hold now.
        """
        present, before = self.entries.admit(segments, numbers), self.present
        length = len(before.indices)
        self.present = present
        if present.renewed:
            self._statics = None
        returning = any(index < present.known for index in present.indices[length:])
        if (
            present.renewed
            or present.indices[:length] != before.indices
            or returning
            or self._unsettled
            or not length
        ):
            self._rebuild()
        else:
            self._grow(length)
        context = self.context
        context.prefix_tokens, context.budget = prefix_tokens, budget
        self._pin()
        self._has_statics = False
        self.refresh()

    def restore(self, log: EditLog) -> None:
        """Goes on with a saved log, all of which sleeps until a history comes."""
        self.log = log
        self.asleep = frozenset(record.id for record in log.live_since(-1))

    def _rebuild(self) -> None:
        """Makes the context from the present history and the log."""
        present = self.present
        self._members = {}
        for index in present.indices:
            self._members.setdefault(self.entries.all[index].leader, []).append(index)
        groups = {leader: tuple(group) for leader, group in self._members.items() if len(group) > 1}
        old = self.context
        context = self.context = Context(
            self.entries.all, groups, old.budget, prefix_tokens=old.prefix_tokens,
            columns=self._batch.columns(0),
        )  # fmt: skip
        context.entries = self.entries.all  # what edits make is known here too
        replay = Replay(self.log, self.entries, present)
        at = 0
        while True:
            while at < len(present.indices) and present.arrivals[at] == context.request:
                context.arrive(present.indices[at])
                at += 1
            replay.apply(context)
            if context.request == present.turns:
                break
            context.send()
        self.asleep, self._unsettled = frozenset(replay.asleep), replay.unsettled

    def _grow(self, start: int) -> None:
        """Brings what the history has more than before."""
        present, context = self.present, self.context
        for at in range(start, len(present.indices)):
            while context.request < present.arrivals[at]:
                context.send()
            self._admit(present.indices[at])
            context.arrive(present.indices[at])

    def _admit(self, index: int) -> None:
        """Notes what is constant about a new segment, and that it belongs to its exchange."""
        entry, c = self.entries.all[index], self.context.columns
        while c.capacity <= index:
            c.grow()
        for name, value in (
            ("kind", entry.kind), ("leader", entry.leader), ("full", entry.full_tokens),
            ("stub", entry.stub_tokens), ("reasoning", entry.has_reasoning),
            ("foldable", entry.foldable),
        ):  # fmt: skip
            getattr(c, name)[index] = value
        group = self._members.setdefault(entry.leader, [])
        group.append(index)
        if len(group) > 1:
            self.context.members[entry.leader] = tuple(group)
        together = sum(self.entries.all[i].full_tokens for i in group)
        for i in group:
            c.exchange[i] = together

    def _pin(self) -> None:
        """Pins what the present history says must stay; in a longer one it may be released."""
        everything, pinned = self.entries.all, self.context.columns.pinned
        leaders = {
            everything[i].leader for i in self.present.indices if everything[i].segment.pinned
        }
        said = latest_said(self.entries, self.present)
        for i in self.present.indices:
            pinned[i] = i in said or everything[i].leader in leaders

    def _complete_statics(self) -> None:
        """Gives the encoder what is constant about the segments that it does not know yet."""
        entries = self.entries.all
        known = len(self._statics.tool) if self._statics is not None else 0
        if known < len(entries) or self._statics is None:
            more = Statics(entries[known:])
            if self._statics is not None:
                for name in _STATICS:
                    both = getattr(self._statics, name), getattr(more, name)
                    setattr(more, name, np.concatenate(both))
            self._statics = more
            self._encoder.start(0, more, self.services.goal)
        self._has_statics = True

    # ---- deciding ------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Gives the segments their slots as at the beginning of a request."""
        self._encoder.refresh(0, self.context)

    def observe(self, step: int = 0) -> Observation:
        """Returns the observation after so many edit steps; the next edit changes its arrays."""
        if not self._has_statics:
            self._complete_statics()
        self._encoder.finish([self.context], [self.log], [step])
        arrays: dict[str, NDArray[Any]] = {
            name: getattr(self._encoder, name)[0] for name in _ARRAYS
        }
        return Observation(arrays, self.codec)

    def play(self, action: int, reason: str) -> EditRecord:
        """Makes the edit of an action that the latest observation's mask allows; keep is none.

        Raises:
            ConfigurationError: for an integer that is no action.
            IllegalEditError: for keep, and for an action that the mask forbids.
        """
        decoded = self.codec.decode(action)
        if decoded.op == Op.KEEP or not self._encoder.action_mask[0, action]:
            raise IllegalEditError(
                f"action {action} ({decoded.op.name.lower()}) is no edit that is legal now. "
                "Observe again: the action mask shows what is.",
                "mask",
            )
        slots = self._encoder.archive_index if decoded.archived else self._encoder.slot_index
        return self._commit(to_edit(self.context, decoded, int(slots[0, decoded.slot])), reason)

    def edit(self, edit: Edit, reason: str) -> EditRecord:
        """Makes an edit whose targets are indices of entries.

        Raises:
            IllegalEditError: when an invariant forbids it.
        """
        if isinstance(edit, Keep):
            raise IllegalEditError("keep edits nothing. Pass another edit.", "targets")
        check_edit(self.context, edit)
        return self._commit(edit, reason)

    def settle(self) -> EditRecord | None:
        """Lets marked segments leave that would leave on sending."""
        record = settle_marks(self.context, self.services, self.log)
        self._note(record)
        return record

    def undo(self, record: EditRecord) -> tuple[int, ...]:
        """Takes an edit back with what builds on it; returns the ids of the records undone.

        Raises:
            IllegalEditError: when the record is not live, or asleep: this history lacks a target.
        """
        if record.id in self.asleep:
            raise IllegalEditError(
                f"record {record.id} cannot be undone now: its targets {record.targets} are not "
                "all in the present history. Pass a history that has them first.",
                "arrived",
            )
        undone = undo(self.context, self.log, record)
        self._rebuild()
        self._pin()
        self.refresh()
        return undone

    def note_reload(self, index: int) -> EditRecord:
        """Records that the agent fetched an original by itself: it is in the host's history now."""
        context, before = self.context, self.context.total
        rows = tuple(
            shift(context, i, reloaded=context.request)
            for i in context.group(index)
            if context.has_arrived(i)
        )
        count_reloads(context, rows, 1)
        record = EditRecord(
            len(self.log), context.request, Op.RELOAD, (self.entries.id(index),),
            {"placement": "by_the_agent"}, "the agent asked", before, before, rows=rows,
        )  # fmt: skip
        self.log.append(record)
        self._note(record)
        return record

    def _commit(self, edit: Edit, reason: str) -> EditRecord:
        record = commit_edit(self.context, edit, self.services, self.log, reason)
        self._note(record)
        return record

    def _note(self, record: EditRecord | None) -> None:
        if record is not None:
            self.entries.note_made()
            self._encoder.update(0, [row[0] for row in record.rows])

    @property
    def situation(self) -> tuple[int, ...]:
        """What a decision is made about: it is the same for a retry, and after a restart."""
        context, indices = self.context, self.present.indices
        last = indices[-1] if indices else -1
        limits = context.prefix_tokens, context.budget.input_limit
        return (context.request, len(indices), last, *limits)

    @property
    def is_settled(self) -> bool:
        """True where a history that grows brings the edits of this one and no others."""
        return not self._unsettled

    @property
    def is_edited(self) -> bool:
        """True where some edit may show in the present history."""
        return any(record.id not in self.asleep for record in self.log.live_since(-1))
