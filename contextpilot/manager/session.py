"""One conversation: its history in, a request that fits out."""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextpilot.archives.base import Archive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Edit, EditRecord, Placement, Reload
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.edits.services import Services
from contextpilot.errors import ArchiveError, ConfigurationError
from contextpilot.manager import reload_tool
from contextpilot.manager.accounting import TokenAccount, account, account_of
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.deciding import Decider
from contextpilot.manager.desk import Desk
from contextpilot.manager.fallback import FallbackLimits, FallbackRecord
from contextpilot.manager.formats import Rendering, format_of, render, spans_of
from contextpilot.manager.history import HostHistory, Said
from contextpilot.manager.originals import Originals
from contextpilot.manager.overlay import OverlayArchive
from contextpilot.manager.repairing import RepairedHistory, repaired
from contextpilot.manager.report import Report, Request, Status, System
from contextpilot.manager.state import STATE_VERSION, log_from_json, log_to_json
from contextpilot.manager.usage import read_usage, token_scale
from contextpilot.messages.layout import Message
from contextpilot.messages.validate import problems
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer

_logger = logging.getLogger(__name__)

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the sessions of a manager work with. All of it must be safe to share by threads."""

    policy: Policy
    rule: Policy
    limits: FallbackLimits | None
    summarizer: Summarizer
    tokenizer: Tokenizer
    archive: Archive


class Session:
    """Manages the context of one conversation; every method takes the session's lock.

    Attributes:
        id: whose archive it uses.
        off: while True, `prepare` passes everything on as it came.
    """

    def __init__(self, session_id: str, config: ManagerConfig, parts: Parts) -> None:
        self.id, self.off = session_id, False
        self._config, self._parts = config, parts
        self._format = format_of(config.format)
        self._lock = threading.RLock()
        self._decider = Decider(parts.policy, parts.rule, parts.limits, config)
        self._decider.reset(zlib.crc32(session_id.encode("utf-8", "surrogatepass")))
        self._scale = 1.0
        self._usage: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        """Forgets the conversation."""
        parts = self._parts
        services = Services(parts.tokenizer, parts.summarizer, parts.archive, session=self.id)
        self._desk = Desk(services, self._config)
        self._originals = Originals(self._format, self._desk.entries, services)
        self._history = HostHistory(self._originals.get)
        self._appended: list[Mapping[str, Any]] | None = None
        self._report: Report | None = None
        self._decided: tuple[int, ...] = ()

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
            return self._prepare(history, self._tools(tools), system)

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
            twin = Session(self.id, self._config, parts)
            twin.load_state_dict(self.state_dict())
            twin._scale, twin.off = self._scale, self.off
            return twin.prepare(self._given(messages), tools, system)

    def append(self, message: Mapping[str, Any]) -> None:
        """Adds a message to the history that the session keeps for a host that keeps none.

        Raises:
            ConfigurationError: when `prepare` was given a history before.
        """
        with self._lock:
            if self._appended is None:
                if self._report is not None:
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
        if not self._config.reload_tool:
            return None if tools is None else list(tools)  # type: ignore[arg-type]
        definition = reload_tool.tool_definition(self._format.name)
        return [*(tools or ()), definition]  # type: ignore[list-item]

    def _passed_on(
        self, history: Messages, tools: Sequence[Mapping[str, Any]] | None, system: System | None
    ) -> Request:
        report = Report(self.id, self._desk.context.request, Status.OFF)
        self._report = report
        messages: list[Any] = list(history)
        return Request(messages, self._tools(tools), system, Status.OFF, report)

    def _prepare(
        self, history: Messages, tools: list[dict[str, Any]] | None, system: System | None
    ) -> Request:
        wait = self._config.pending_wait
        whole = repaired(self._format.name, history, wait)
        said = self._history.read(whole.messages)
        prefix = self._prefix(tools, system)
        self._follow(said, prefix)
        desk, decider = self._desk, self._decider
        before, failed = desk.context.used_tokens, len(decider.policy.records)
        edits = decider.decide(desk) if self._is_due() else []
        self._decided = desk.situation
        out = self._rendered(said)
        status = self._status(out, said)
        report = self._reported(
            whole, prefix, status, before, edits, decider.policy.records[failed:], out
        )
        self._report = report
        return Request(out.messages, tools, system, status, report)

    def _prefix(
        self, tools: Sequence[Mapping[str, Any]] | None, system: System | None
    ) -> TokenAccount:
        return account(
            (),
            self._parts.tokenizer,
            system=_text_of(system),
            tools=tools or (),
            reserved_output_tokens=self._budget.reserved_output_tokens,
        )

    def _follow(self, said: Sequence[Said], prefix: TokenAccount) -> None:
        """Brings the desk in step with a history."""
        pins = self._config.pins
        segments = self._format.parse([message for _, message in said])
        if pins is not None:
            pinned = {at for at, (_, message) in enumerate(said) if pins(message)}
            segments = tuple(
                replace(s, pinned=True) if s.position[0] in pinned else s for s in segments
            )
        if not self._desk.services.goal and (goal := _goal(segments)):
            self._desk.entries.follow(goal)
        self._spans = spans_of(segments, len(said))
        self._desk.follow(
            segments,
            [number for number, _ in said],
            prefix_tokens=prefix.system + prefix.tools,
            budget=self._budget,
        )

    @property
    def _budget(self) -> TokenBudget:
        """The limits in counted tokens, so that counts and stubs never change."""
        budget = self._config.budget
        if self._scale == 1.0:
            return budget
        return replace(
            budget,
            max_context_tokens=max(1, int(budget.max_context_tokens / self._scale)),
            reserved_output_tokens=int(budget.reserved_output_tokens / self._scale),
        )

    def _is_due(self) -> bool:
        """True where the policy is to be asked: over the threshold, not twice about the same."""
        context, cooldown = self._desk.context, self._config.cooldown
        if context.overflows:
            return True
        if not context.under_pressure or self._decided == self._desk.situation:
            return False
        last = max((record.request for record in self._desk.log), default=-1)
        return not cooldown or last < 0 or context.request - last >= cooldown

    def _rendered(self, said: Sequence[Said]) -> Rendering:
        """Returns the request's messages, and remembers them and what they hide."""
        history = [message for _, message in said]
        desk = self._desk
        if not desk.is_edited:
            out = Rendering(list(history), [(at,) for at in range(len(history))])  # type: ignore[arg-type]
        else:
            out = self._valid(
                render(self._format, desk.shown(), history, self._spans, desk.covered())
            )
        self._history.rendered(out.messages, out.shows, said)
        self._originals.keep(said, out.messages, desk.present, self._spans)
        return out

    def _valid(self, out: Rendering) -> Rendering:
        """Returns a rendering that a provider takes, as far as it can be repaired."""
        if not problems(self._format.name, out.messages):
            return out
        shows = {id(message): shown for message, shown in zip(out.messages, out.shows, strict=True)}
        again = repaired(self._format.name, out.messages, self._config.pending_wait)
        messages: list[Any] = list(again.messages)
        return Rendering(messages, [shows.get(id(message), ()) for message in messages])

    def _status(self, out: Rendering, said: Sequence[Said]) -> Status:
        if self._desk.context.overflows:
            return Status.BUDGET_UNREACHABLE
        same = len(out.messages) == len(said) and all(
            message is one.message for message, one in zip(out.messages, said, strict=True)
        )
        return Status.OK if same else Status.EDITED

    def _reported(
        self,
        whole: RepairedHistory,
        prefix: TokenAccount,
        status: Status,
        before: int,
        edits: Sequence[EditRecord],
        failures: Sequence[FallbackRecord],
        out: Rendering,
    ) -> Report:
        context, desk = self._desk.context, self._desk
        return Report(
            self.id,
            context.request,
            status,
            before,
            context.used_tokens,
            context.budget.input_limit,
            context.budget.threshold_tokens,
            account_of(context, prefix),
            self._scale,
            tuple(edits),
            tuple(failures),
            whole.repairs,
            problems(self._format.name, out.messages),
            tuple(sorted(desk.asleep)),
            desk.pinned() if status == Status.BUDGET_UNREACHABLE else (),
            dict(self._usage),
        )

    # ---- looking and editing -------------------------------------------------------------------

    @property
    def log(self) -> EditLog:
        """Every edit of the conversation; append-only."""
        return self._desk.log

    @property
    def report(self) -> Report | None:
        """What the latest `prepare` did; None before the first."""
        return self._report

    @property
    def failures(self) -> tuple[FallbackRecord, ...]:
        """Every decision that the policy failed to make."""
        return self._decider.policy.records

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
            return self._desk.play(int(action), reason)

    def edit(self, edit: Edit, reason: str = "by hand") -> EditRecord:
        """Makes any edit; its targets are indices, as `index` returns them.

        Raises:
            IllegalEditError: when an invariant forbids it.
        """
        with self._lock:
            return self._desk.edit(edit, reason)

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
            return self._desk.edit(Reload((self.index(segment_id),), placement), "by hand")

    def undo(self, record_id: int) -> tuple[int, ...]:
        """Takes an edit back, with the later ones that build on it.

        Returns:
            The ids of the records undone, the latest first.

        Raises:
            ConfigurationError: when the log has no such record.
            IllegalEditError: when it is not live, or its targets are not in the present history.
        """
        with self._lock:
            log = self._desk.log
            if not 0 <= record_id < len(log):
                raise ConfigurationError(
                    f"the log has no such record. Received {record_id}; it has {len(log)}. Pass "
                    "the `id` of one of its records."
                )
            return self._desk.undo(log[record_id])

    def undo_all(self) -> tuple[int, ...]:
        """Takes every edit back that the present history has; returns the ids, latest first."""
        with self._lock:
            undone: list[int] = []
            for record in reversed(list(self._desk.log)):
                if self._desk.log.is_live(record) and record.id not in self._desk.asleep:
                    undone += self._desk.undo(record)
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
            original = self._original(asked.segment_id)
            index = self._desk.entries.index(asked.segment_id)
            if original is not None and index >= 0 and self._desk.context.has_arrived(index):
                self._desk.note_reload(index)
            known = () if original is not None else self._parts.archive.ids(self.id)
            return reload_tool.answer(self._format.name, asked, original, known)

    def _original(self, segment_id: str) -> Segment | None:
        """Returns a segment as it was, from the history or else from the archive."""
        index = self._desk.entries.index(segment_id)
        if index >= 0 and self._desk.context.has_arrived(index):
            return self._desk.entries.all[index].segment
        try:
            return self._parts.archive.get(self.id, segment_id)
        except ArchiveError:
            return None

    # ---- between calls -------------------------------------------------------------------------

    def record_usage(self, usage: object) -> None:
        """Takes what the provider reported for the latest request, to calibrate counts with.

        Args:
            usage: the reply's usage, a dict or an object, of any of the providers.

        Raises:
            ConfigurationError: when it names no input tokens.
        """
        with self._lock:
            self._usage = read_usage(usage)
            counted = self._report.after_tokens if self._report is not None else 0
            self._scale = token_scale(self._usage["input"], counted, self._scale)

    def purge(self) -> int:
        """Erases the conversation, archive included; returns how many originals were erased.

        Without them no edit can be taken back, so the log goes too.
        """
        with self._lock:
            erased = self._parts.archive.purge(self.id)
            self._begin()
            _logger.info("Purged session %r: %d archived segments erased.", self.id, erased)
            return erased

    def state_dict(self) -> dict[str, Any]:
        """Returns what continues the conversation in another process, as plain JSON.

        It holds ids, edits and hashes; the originals and summaries are in the archive.
        """
        with self._lock:
            keys = self._desk.entries.keys
            return {
                "version": STATE_VERSION,
                "format": self._format.name,
                "goal": self._desk.services.goal,
                "history": self._history.state_dict(),
                "segments": [list(key) if key is not None else None for key in keys],
                "originals": [[n, *place] for n, place in self._originals.places.items()],
                "log": log_to_json(self._desk.log),
                "token_scale": self._scale,
                "decided": list(self._decided),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues the conversation of a `state_dict`; `prepare` then brings its history.

        Raises:
            ConfigurationError: for a state that is damaged, of another version or format.
        """
        found = (state.get("version"), state.get("format"))
        if found != (STATE_VERSION, self._format.name):
            raise ConfigurationError(
                f"this state cannot be loaded: it must be of version {STATE_VERSION} and format "
                f"{self._format.name!r}. Received {found}. Pass what `state_dict` of this program "
                "version returned, to a manager of the same format."
            )
        with self._lock:
            log = log_from_json(state["log"])
            self._begin()
            self._desk.entries.follow(state["goal"])
            self._desk.entries.restore(
                [(key[0], key[1]) if key is not None else None for key in state["segments"]]
            )
            self._desk.log = log
            self._originals.places = {n: (first, at) for n, first, at in state["originals"]}
            self._history.load_state_dict(state["history"])
            self._scale = float(state["token_scale"])
            self._decided = tuple(state["decided"])


def _goal(segments: Sequence[Segment]) -> str:
    """Returns the first thing that a user said."""
    said = (s.text for s in segments if s.role == Role.USER and s.kind == Kind.TEXT)
    return next(said, "")


def _text_of(system: System | None) -> str:
    """Returns what can be read of a system prompt."""
    if system is None or isinstance(system, str):
        return system or ""
    texts = (block.get("text") for block in system if isinstance(block, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
