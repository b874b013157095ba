"""From a history to a request: the parts of one conversation, and what happens between calls."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from contextpilot.archives.base import Archive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.edits.services import Services
from contextpilot.errors import ArchiveError, ConfigurationError
from contextpilot.manager.accounting import TokenAccount, account, account_of
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.deciding import Decider
from contextpilot.manager.desk import Desk
from contextpilot.manager.fallback import FallbackLimits
from contextpilot.manager.formats import Rendering, format_of, spans_of
from contextpilot.manager.history import HostHistory, Message, Said
from contextpilot.manager.intake import Intake
from contextpilot.manager.limits import Limits
from contextpilot.manager.marking import marked
from contextpilot.manager.message_key import copied
from contextpilot.manager.originals import Originals
from contextpilot.manager.overflow import Overflow
from contextpilot.manager.reading import Reader
from contextpilot.manager.report import Report, Request, Status, System
from contextpilot.manager.resting import Rest, rests
from contextpilot.manager.showing import pinned
from contextpilot.manager.state import STATE_VERSION, log_from_json, log_to_json
from contextpilot.manager.tails import Validator, alike
from contextpilot.manager.trust import nonce_of, noted_messages, noted_system, trust_note
from contextpilot.manager.writing import Writer
from contextpilot.messages.problem import Problem
from contextpilot.messages.repair import Repaired, repair
from contextpilot.policies.base import Policy
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import MESSAGE_TOKENS, segment_tokens

Messages: TypeAlias = Sequence[Mapping[str, Any]]

_logger = logging.getLogger(__name__)

_TRIES = 4
"""How often a request that came out longer than it was counted is shortened."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the sessions of a manager work with. All of it must be safe to share by threads."""

    policy: Policy
    rule: Policy
    limits: FallbackLimits | None
    summarizer: Summarizer
    tokenizer: Tokenizer
    archive: Archive


class Conversation:
    """One conversation without a lock; `Session` has it.

    Attributes:
        decider: the policy, and what stands in for it.
        format: of the messages.
        report: of the latest request; None before the first.
    """

    def __init__(self, session_id: str, config: ManagerConfig, parts: Parts) -> None:
        self.id, self.config, self.parts = session_id, config, parts
        self.format = format_of(config.format)
        self.decider = Decider(parts.policy, parts.rule, parts.limits, config)
        self.decider.reset(zlib.crc32(session_id.encode("utf-8", "surrogatepass")))
        self._limits = Limits()
        self.nonce = nonce_of(session_id, config.secret)
        self.begin()

    def begin(self) -> None:
        """Forgets the conversation; what usage has taught of the tokenizer stays."""
        parts = self.parts
        services = Services(parts.tokenizer, parts.summarizer, parts.archive, session=self.id)
        self._desk = Desk(services, self.config)
        self._intake = Intake(self.format.name, self.config.pending_wait)
        self._reader, self._validator = Reader(self.format), Validator(self.format.name)
        self._writer = Writer(self.format, self.nonce, self._desk, parts.tokenizer)
        self._originals = Originals(self.format, self._desk.entries, services)
        self._history = HostHistory(self._originals.get)
        self._spans: dict[int, range] = {}
        self._decided: tuple[int, ...] = ()
        self._given: tuple[Messages, list[dict[str, Any]] | None, System | None] | None = None
        self._told = 0
        self._rest: Rest | None = None
        self._deferred: Rest | None = None
        self._has_added = False
        self.report: Report | None = None

    @property
    def desk(self) -> Desk:
        """The live context, its log and its observation; whoever asks may edit it."""
        self._catch_up()
        self._rest = None
        return self._desk

    @property
    def log(self) -> EditLog:
        """Every edit."""
        return self._desk.log

    def request(
        self, history: Messages, tools: list[dict[str, Any]] | None, system: System | None
    ) -> Request:
        """Returns the request for a history; arguments as in `Session.prepare`.

        Raises:
            MessageFormatError: for messages that are not in the conversation's format.
        """
        self._given = (history, tools, system)
        if self.config.trust_note and (self.format.name != "openai" or system is not None):
            system = noted_system(system, trust_note(self.nonce))
        whole = self._intake.take(history)
        if self._goes_on(whole, tools, system):
            assert self._rest is not None
            return self._sent(self._rest.messages, self._rest.report, tools, system)
        self._begin(whole.messages)
        desk, failures = self._desk, len(self.decider.policy.records)
        said = self._history.read(whole.messages)
        prefix = self._prefix(tools, system)
        self._follow(said, prefix, self._budget)
        before = desk.context.used_tokens
        situation, retried = desk.situation, self._is_retry()
        edits = self.decider.decide(desk) if self._is_due() else []
        out, left = self._rendered(said, system)
        over = self._over_limit(out, said)  # framing and repairs may take more than is counted
        for _ in range(0 if retried else _TRIES):
            if over <= 0 or not (more := self.decider.decide(self._tightened(over))):
                break
            edits += more
            out, left = self._rendered(said, system)
            over = self._over_limit(out, said)
        self._decided = (*situation, len(desk.log))
        self._remember(out, said)
        status = self._status(out, said, over)
        context = desk.context
        report = Report(
            session=self.id,
            request=context.request,
            status=status,
            before_tokens=before,
            after_tokens=context.used_tokens,
            input_limit=self._budget.input_limit,
            threshold_tokens=self._budget.threshold_tokens,
            account=account_of(context, prefix),
            token_scale=self._limits.scale,
            edits=tuple(edits),
            failures=self.decider.policy.records[failures:],
            repairs=whole.repairs,
            problems=left,
            asleep=tuple(sorted(desk.asleep)),
            pinned=pinned(desk) if status == Status.BUDGET_UNREACHABLE else (),
            usage=dict(self._limits.usage),
        )
        if desk.is_settled and not self._has_added:
            uncounted = over + report.input_limit - report.after_tokens if desk.is_edited else 0
            self._rest = self._resting(
                whole.messages, said, out, report, uncounted, (tools, system)
            )
        self.tell()
        return self._sent(out.messages, report, tools, system)

    def _sent(
        self,
        messages: Sequence[Message],
        report: Report,
        tools: list[dict[str, Any]] | None,
        system: System | None,
    ) -> Request:
        """Returns a request in messages that the host may change."""
        self.report = report
        sent = list(map(self._intake.handed_out, messages))
        return Request(sent, tools, system, report.status, report)

    def again(self, overflow: Overflow) -> Request:
        """Returns a shorter request for the history that was too long for the provider.

        What it said of the window and of the request's length holds from now on; where it said
        nothing, a request of this length is taken to be too long.

        Raises:
            ConfigurationError: when there was no request yet.
        """
        if self.report is None or self._given is None:
            raise ConfigurationError(
                "there is no request to make again. Call `prepare` first, in this process."
            )
        counted = self.report.after_tokens
        self._limits.refused(overflow, counted, self.config.budget)
        return self.request(*self._given)

    def tell(self) -> None:
        """Tells the host's callback every record that it has not been told."""
        callback, log = self.config.on_edit, self._desk.log
        while self._told < len(log):
            record = log[self._told]
            self._told += 1
            if callback is not None:
                try:
                    callback(self.id, record)
                except Exception:  # the host's own affair; its request goes out all the same
                    _logger.exception("`on_edit` failed at record %d.", record.id)

    def original(self, segment_id: str) -> Segment | None:
        """Returns a segment as it was, from the history or else from the archive."""
        entries = self.desk.entries
        index = entries.index(segment_id)
        if index >= 0 and self._desk.context.has_arrived(index):
            return entries.all[index].segment
        try:
            return self.parts.archive.get(self.id, segment_id)
        except ArchiveError:
            return None

    def record_usage(self, usage: object) -> None:
        """Takes what the provider reported; as `Session.record_usage`."""
        counted = self.report.after_tokens if self.report is not None else 0
        self._limits.record_usage(usage, counted)

    def state_dict(self) -> dict[str, Any]:
        """Returns what continues the conversation in another process, as plain JSON."""
        self._catch_up()
        keys = self._desk.entries.keys
        return {
            "version": STATE_VERSION,
            "format": self.format.name,
            "goal": self._desk.services.goal,
            "history": self._history.state_dict(),
            "segments": [list(key) if key is not None else None for key in keys],
            "originals": [[n, *place] for n, place in self._originals.places.items()],
            "log": log_to_json(self._desk.log),
            "token_scale": self._limits.scale,
            "decided": list(self._decided),
            "window": self._limits.window,
            "ceiling": self._limits.ceiling,
            "nonce": self.nonce,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues the conversation of a `state_dict`; as `Session.load_state_dict`."""
        found = (state.get("version"), state.get("format"))
        if found != (STATE_VERSION, self.format.name):
            raise ConfigurationError(
                f"this state cannot be loaded: it must be of version {STATE_VERSION} and format "
                f"{self.format.name!r}. Received {found}. Pass what `state_dict` of this program "
                "version returned, to a manager of the same format."
            )
        log = log_from_json(state["log"])
        self.nonce = str(state["nonce"])
        self.begin()
        entries = self._desk.entries
        entries.follow(state["goal"])
        entries.restore([(k[0], k[1]) if k is not None else None for k in state["segments"]])
        self._desk.restore(log)
        self._originals.places = {n: (first, at) for n, first, at in state["originals"]}
        self._history.load_state_dict(state["history"])
        self._limits.scale = float(state["token_scale"])
        self._decided = tuple(state["decided"])
        self._limits.window = int(state["window"])
        self._limits.ceiling = int(state["ceiling"])
        self._told = len(log)
        added = state["history"]["identity"]["renderings"].values()
        self._has_added = any([] in each for each in added)

    # ---- requests that call for no decision ----------------------------------------------------

    def _goes_on(
        self, whole: Repaired, tools: list[dict[str, Any]] | None, system: System | None
    ) -> bool:
        """True where a request is the last one and what came since; it is at rest then."""
        rest, services = self._rest, self._desk.services
        if rest is None or not rest.precedes(whole.messages, (tools, system)):
            return False
        if not services.goal:
            return False  # it may be among what is new

        def tokens_of(segment: Segment) -> int:
            return services.scaled(segment_tokens(services.tokenizer, segment))

        budget, segments = self._budget, self._reader.read(whole.messages)
        grown = rest.grown(whole, segments, tokens_of, budget)
        if grown is None:
            return False
        report = replace(
            grown.report, token_scale=self._limits.scale, usage=dict(self._limits.usage)
        )
        self._rest = self._deferred = replace(grown, report=report)
        return True

    def _resting(
        self,
        history: Sequence[Message],
        said: Sequence[Said],
        out: Rendering,
        report: Report,
        uncounted: int,
        prefix: tuple[Any, Any],
    ) -> Rest | None:
        """Returns what the next request may go on from, if it may."""
        is_whole = len(said) == len(self._history.identity)  # what returns may move what stands
        if not (is_whole and rests(self.config, history, said, out, report)):
            return None
        segments = len(self._reader.read(history))
        return Rest(
            history, segments, out.messages, report, uncounted, copied(prefix), self._budget
        )

    def _begin(self, history: Sequence[Message]) -> None:
        """Begins a request that takes all steps, and takes those that were left out before."""
        deferred, self._rest = self._deferred, None
        if deferred and alike(history, deferred.history) == len(deferred.history):
            self._deferred = None  # a longer history read at once is the same
        self._catch_up()
        self._writer.begin()

    def _catch_up(self) -> None:
        """Brings the context in step with the last request that did not need it."""
        rest, self._deferred = self._deferred, None
        if rest is None:
            return
        tools, system = rest.prefix
        self._writer.begin()
        said = self._history.read(rest.history)
        self._follow(said, self._prefix(tools, system), rest.budget)
        out, _ = self._rendered(said, system)
        self._decided = (*self._desk.situation, len(self._desk.log))
        self._remember(out, said)

    # ---- the steps of a request ----------------------------------------------------------------

    @property
    def _note(self) -> str:
        """What is said of trust in a message of its own; "": nothing is."""
        wanted = self.config.trust_note and self.format.name == "openai"
        return trust_note(self.nonce) if wanted else ""

    @property
    def _note_tokens(self) -> int:
        return self.parts.tokenizer.count(self._note) + MESSAGE_TOKENS

    def _prefix(
        self, tools: Sequence[Mapping[str, Any]] | None, system: System | None
    ) -> TokenAccount:
        note = self._note if system is None else ""
        return account(
            (),
            self.parts.tokenizer,
            system=note or _text_of(system),
            tools=tools or (),
            reserved_output_tokens=self._budget.reserved_output_tokens,
        )

    def _follow(self, said: Sequence[Said], prefix: TokenAccount, budget: TokenBudget) -> None:
        """Brings the desk in step with a history."""
        messages = [message for _, message in said]
        given = [self._intake.given(message) or message for message in messages]
        segments = marked(self._reader.read(messages), given, self.config)
        if not self._desk.services.goal and (goal := _goal(segments)):
            self._desk.entries.follow(goal)
        self._spans = spans_of(segments, len(said))
        numbers = [number for number, _ in said]
        for start, span in self._spans.items():  # a turn that has grown is another turn
            numbers[start] = said[span[-1]].number
        self._desk.follow(
            segments,
            numbers,
            prefix_tokens=prefix.system + prefix.tools,
            budget=budget,
        )

    @property
    def _budget(self) -> TokenBudget:
        """The limits in counted tokens, so that counts and stubs never change."""
        return self._limits.budget(self.config.budget)

    def _is_due(self) -> bool:
        """True where the policy is to be asked: over the threshold, not twice about the same."""
        context, cooldown = self._desk.context, self.config.cooldown
        if self._is_retry():
            return False  # what could not be made to fit then does not fit now
        if context.overflows:
            return True
        if not context.under_pressure or self._decided[:-1] == self._desk.situation:
            return False
        last = max((record.request for record in self._desk.log), default=-1)
        return not cooldown or last < 0 or context.request - last >= cooldown

    def _is_retry(self) -> bool:
        """True where this was decided about, and nothing was edited, undone or said since."""
        return self._decided == (*self._desk.situation, len(self._desk.log))

    def _rendered(
        self, said: Sequence[Said], system: System | None
    ) -> tuple[Rendering, tuple[Problem, ...]]:
        """Returns the request's messages, and what is wrong with them."""
        history: list[Any] = [message for _, message in said]
        out = Rendering(history, [(at,) for at in range(len(history))])
        if self._desk.is_edited:
            out = self._writer.write(history, self._spans)
        if self._note and system is None:
            out = Rendering(*noted_messages(out.messages, out.shows, self._note))
        found = self._validator.problems(out.messages)
        if found:  # what an edit may leave of a history that was not quite right
            out = self._mended(out)
            found = self._validator.problems(out.messages)
        return out, found

    def _remember(self, out: Rendering, said: Sequence[Said]) -> None:
        """Remembers a request, and what it hides."""
        self._has_added |= not all(out.shows)
        self._history.rendered(out.messages, out.shows, said)
        self._originals.keep(said, out.messages, self._desk.present, self._spans)

    def _over_limit(self, out: Rendering, said: Sequence[Said]) -> int:
        """Returns by how many tokens a request is over the limit, as it is really written."""
        context, limit = self._desk.context, self._budget.input_limit
        if not self._desk.is_edited:
            return 0
        uncounted = self._writer.uncounted(out, said, self._spans)
        noted = bool(self._note) and any(m.get("content") == self._note for m in out.messages)
        return context.used_tokens + uncounted - limit - noted * self._note_tokens

    def _tightened(self, tokens: int) -> Desk:
        """Returns the desk with that much less room for this request."""
        context = self._desk.context
        budget = context.budget
        room = max(budget.reserved_output_tokens + 1, budget.max_context_tokens - tokens)
        context.budget = replace(budget, max_context_tokens=room)
        self._desk.refresh()
        return self._desk

    def _mended(self, out: Rendering) -> Rendering:
        """Returns a rendering that a provider takes, as far as it can be repaired."""
        again = repair(self.format.name, out.messages, pending_wait=self.config.pending_wait)
        shows = {id(message): shown for message, shown in zip(out.messages, out.shows, strict=True)}
        messages: list[Any] = list(again.messages)
        return Rendering(messages, [shows.get(id(message), ()) for message in messages])

    def _status(self, out: Rendering, said: Sequence[Said], over_limit: int) -> Status:
        context, budget = self._desk.context, self._budget
        over = context.used_tokens > budget.input_limit or over_limit > 0
        aimed = self.config.target is not None and context.used_tokens > budget.threshold_tokens
        if over or aimed:
            return Status.BUDGET_UNREACHABLE
        same = len(out.messages) == len(said) and all(
            message is one.message for message, one in zip(out.messages, said, strict=True)
        )
        return Status.OK if same else Status.EDITED


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
