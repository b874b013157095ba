"""One conversation: its history in, a request that fits out."""

from __future__ import annotations

import asyncio
import logging
import reprlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.edit import Edit, EditRecord, Placement, Reload
from contextpilot.core.edit_log import EditLog
from contextpilot.errors import ArchiveError, ConfigurationError
from contextpilot.manager import reload_tool
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.conversation import Conversation, Messages, Parts
from contextpilot.manager.desk import Desk
from contextpilot.manager.fallback import FallbackRecord
from contextpilot.manager.message_key import copied
from contextpilot.manager.overflow import read_overflow
from contextpilot.manager.overlay import OverlayArchive
from contextpilot.manager.parts_checks import tools_of
from contextpilot.manager.report import Report, Request, Status, System
from contextpilot.messages.layout import Message
from contextpilot.observations.observation import Observation

__all__ = ["Messages", "Parts", "Session"]

_logger = logging.getLogger(__name__)


class Session:
    """Manages the context of one conversation; every method takes the session's lock.

    Attributes:
        id: whose archive it uses.
        off: while True, `prepare` passes everything on as it came.
    """

    def __init__(self, session_id: str, config: ManagerConfig, parts: Parts) -> None:
        self.id, self.off = session_id, False
        self._config, self._parts = config, parts
        self._lock = threading.RLock()
        self._conversation = Conversation(session_id, config, parts)
        self._appended: list[Mapping[str, Any]] | None = None
        self._elsewhere = 0  # messages that were appended in the process that this goes on from

    # ---- requests ------------------------------------------------------------------------------

    def prepare(
        self,
        messages: Messages | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        system: System | None = None,
    ) -> Request:
        """Returns the request to send for a history. The history itself is not changed.

        Args:
            messages: the whole history, or the last request's messages and what came since; None:
                what was given to `append`.
            tools: their schemas, as they are sent.
            system: a system prompt that is not among the messages; it counts, and goes out as it
                came.

        Raises:
            MessageFormatError: for messages that are not in the manager's format.
            ConfigurationError: for messages although some were appended, or neither.
        """
        with self._lock:
            history = self._given(messages)
            if self.off:
                return self._passed_on(history, tools, system)
            return self._conversation.request(history, self._tools(tools), system)

    def retry_after(self, error: BaseException) -> Request:
        """Returns a shorter request after a provider refused the latest one as too long.

        What the error says of the model's window and of the request's length is remembered.

        Args:
            error: what the client raised.

        Raises:
            BaseException: the error itself, where it says nothing of a request's length, or while
                the session is off.
            ConfigurationError: when there was no request yet.
        """
        overflow = read_overflow(error)
        if overflow is None or self.off:
            raise error
        with self._lock:
            return self._conversation.again(overflow)

    async def aprepare(
        self,
        messages: Messages | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        system: System | None = None,
    ) -> Request:
        """Does what `prepare` does, in a thread, so that an event loop goes on meanwhile."""
        return await asyncio.to_thread(self.prepare, messages, tools, system)

    def dry_run(
        self,
        messages: Messages | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        system: System | None = None,
    ) -> Request:
        """Returns what `prepare` would, and changes nothing; arguments as there."""
        with self._lock:
            parts = replace(self._parts, archive=OverlayArchive(self._parts.archive))
            twin = Session(self.id, replace(self._config, on_edit=None), parts)
            twin.load_state_dict(self.state_dict())
            twin.off = self.off
            return twin.prepare(self._given(messages), tools, system)

    def append(self, message: Mapping[str, Any]) -> None:
        """Adds a message to the history that the session keeps for a host that keeps none.

        Raises:
            ConfigurationError: when `prepare` was given a history before.
        """
        with self._lock:
            if self._elsewhere:
                raise ConfigurationError(
                    f"this state is of a session that was given {self._elsewhere} messages by "
                    "`append`, and a state holds no messages. Received another one by `append`. "
                    "Pass the whole history to `prepare`."
                )
            if self._appended is None:
                if self._conversation.report is not None:
                    raise ConfigurationError(
                        "this session was given its history by `prepare`. Received a message by "
                        "`append`. Keep to one of the two, or begin another session."
                    )
                self._appended = []
            self._appended.append(message)

    def _given(self, messages: Messages | None) -> Messages:
        """Returns the history, wherever it is kept."""
        if (messages is None) == (self._appended is None):
            received = "neither" if messages is None else "both"
            raise ConfigurationError(
                "a history is either passed to `prepare` or appended message by message. "
                f"Received {received}. Keep to one of the two."
            )
        return list(self._appended or ()) if messages is None else messages

    def _tools(self, tools: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
        """Returns the host's tools, with the reload tool behind them where it is enabled."""
        given = tools_of(tools)
        if not self._config.reload_tool:
            return given
        definition = reload_tool.tool_definition(self._config.format)
        return [*(tool for tool in given or () if tool != definition), definition]

    def _passed_on(
        self, history: Messages, tools: Sequence[Mapping[str, Any]] | None, system: System | None
    ) -> Request:
        report = Report(self.id, self._desk.context.request, Status.OFF)
        self._conversation.report = report
        messages: list[Any] = list(history)
        return Request(messages, self._tools(tools), system, Status.OFF, report)

    # ---- looking and editing -------------------------------------------------------------------

    @property
    def log(self) -> EditLog:
        """Every edit of the conversation; append-only."""
        return self._conversation.log

    @property
    def report(self) -> Report | None:
        """What the latest `prepare` did; None before the first."""
        return self._conversation.report

    @property
    def failures(self) -> tuple[FallbackRecord, ...]:
        """Every decision that the policy failed to make."""
        return self._conversation.decider.policy.records

    def observe(self) -> Observation:
        """Returns the context as policies see it, in arrays of its own."""
        with self._lock:
            seen = self._desk.observe()
            arrays = {name: array.copy() for name, array in seen.arrays.items()}
            return Observation(arrays, seen.codec)

    def execute(self, action: int, reason: str = "by hand") -> EditRecord:
        """Makes the edit of an action that `observe` allows; it shows in the next `prepare`.

        Raises:
            ConfigurationError: for an integer that is no action.
            IllegalEditError: for keep, and for an action that the mask forbids.
        """
        with self._lock:
            self._desk.observe()
            record = self._desk.play(int(action), reason)
            self._conversation.tell()
            return record

    def edit(self, edit: Edit, reason: str = "by hand") -> EditRecord:
        """Makes any edit; its targets are indices, as `index` returns them.

        Raises:
            IllegalEditError: when an invariant forbids it.
        """
        with self._lock:
            record = self._desk.edit(edit, reason)
            self._conversation.tell()
            return record

    def index(self, segment_id: str) -> int:
        """Returns the index of a segment by its id.

        Raises:
            ArchiveError: when the conversation has no such segment.
        """
        with self._lock:
            index = self._desk.entries.index(segment_id)
        if index < 0:
            raise ArchiveError(
                f"this conversation has no segment of this id. Received {segment_id!r}. Stubs and "
                "summaries name the ids that they stand for."
            )
        return index

    def reload(self, segment_id: str, placement: Placement = Placement.IN_PLACE) -> EditRecord:
        """Shows an original again, from the next `prepare` on.

        Raises:
            ArchiveError: when there is no such segment.
            IllegalEditError: when an invariant forbids it, such as the budget.
        """
        with self._lock:
            return self.edit(Reload((self.index(segment_id),), placement))

    def undo(self, record_id: int) -> tuple[int, ...]:
        """Takes an edit back, with the later ones that build on it.

        Returns:
            The ids of the records undone, the latest first.

        Raises:
            ConfigurationError: when the log has no such record.
            IllegalEditError: when it is not live, or its targets are not in the present history.
        """
        with self._lock:
            log = self.log
            if not 0 <= record_id < len(log):
                raise ConfigurationError(
                    f"the log has no such record. Received {record_id}; it has {len(log)}. Pass "
                    "the `id` of one of its records."
                )
            undone = self._desk.undo(log[record_id])
            self._conversation.tell()
            return undone

    def undo_all(self) -> tuple[int, ...]:
        """Takes every edit back that the present history has; returns the ids, latest first."""
        with self._lock:
            undone: list[int] = []
            for record in reversed(list(self._desk.log)):
                if self._desk.log.is_live(record) and record.id not in self._desk.asleep:
                    undone += self._desk.undo(record)
            self._conversation.tell()
            return tuple(undone)

    def dispatch_reload(self, call: Mapping[str, Any]) -> Message:
        """Answers a call of the reload tool; append the answer to the host's history.

        Args:
            call: an entry of `tool_calls`, a `tool_use` block, or a `function_call` item.

        Returns:
            A tool message, a `tool_result` block for the next user message, or an output item.
            An id that is not known is answered too, with the ids that are.

        Raises:
            MessageFormatError: when it is no call of this tool.
        """
        with self._lock:
            asked = reload_tool.read_call(call)
            original = self._conversation.original(asked.segment_id)
            index = self._desk.entries.index(asked.segment_id)
            if original is not None and index >= 0 and self._desk.context.has_arrived(index):
                self._desk.note_reload(index)
                self._conversation.tell()
            known = () if original is not None else self._parts.archive.ids(self.id)
            # in objects of its own: what is kept of the history is nobody's to change
            answer: Message = copied(
                reload_tool.answer(self._config.format, asked, original, known)
            )
            return answer

    # ---- between calls -------------------------------------------------------------------------

    def record_usage(self, usage: object) -> None:
        """Takes what the provider reported for the latest request, to calibrate counts with.

        Args:
            usage: the reply's usage, a dict or an object, of any of the providers.

        Raises:
            ConfigurationError: when it names no input tokens.
        """
        with self._lock:
            self._conversation.record_usage(usage)

    def purge(self) -> int:
        """Erases the conversation, archive included; returns how many originals were erased.

        Without them no edit can be taken back, so the log goes too.
        """
        with self._lock:
            erased = self._parts.archive.purge(self.id)
            self._conversation.begin()
            self._appended = None
            _logger.info("Purged session %r: %d archived segments erased.", self.id, erased)
            return erased

    def state_dict(self) -> dict[str, Any]:
        """Returns what continues the conversation in another process, as plain JSON.

        It holds ids, edits and hashes; the originals and summaries are in the archive.
        """
        with self._lock:
            appended = len(self._appended) if self._appended is not None else 0
            return {**self._conversation.state_dict(), "appended": appended}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues the conversation of a `state_dict`; `prepare` then brings its history.

        Raises:
            ConfigurationError: for a state that is damaged, of another version or format.
        """
        fresh = Conversation(self.id, self._config, self._parts)
        try:
            fresh.load_state_dict(state)
            appended = int(state["appended"])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(
                f"this state is damaged ({type(error).__name__}: {error}). Received "
                f"{reprlib.repr(state)}. Pass what `state_dict` returned; the session is as it was."
            ) from error
        with self._lock:
            self._conversation, self._appended, self._elsewhere = fresh, None, appended

    @property
    def _desk(self) -> Desk:
        return self._conversation.desk
