"""`ContextManager`: what all conversations of an agent share, and their sessions by id."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contextpilot.archives import MemoryArchive
from contextpilot.archives.base import Archive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.prices import Prices
from contextpilot.manager.config import (
    EditCallback,
    ManagerConfig,
    Pins,
    Trusts,
    budget_for,
    prices_of,
)
from contextpilot.manager.fallback import FallbackLimits
from contextpilot.manager.formats import format_of
from contextpilot.manager.parts_checks import (
    budget_of,
    names_of,
    policy_of,
    require,
    require_type,
)
from contextpilot.manager.report import Request, System
from contextpilot.manager.session import Messages, Parts, Session
from contextpilot.policies.base import Policy
from contextpilot.policies.catalog import best_rule
from contextpilot.summarizers import CachedSummarizer, StructureSummarizer
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers import EstimateTokenizer
from contextpilot.tokenizers.base import Tokenizer

DEFAULT_SESSION = "default"


class ContextManager:
    """Shared, thread-safe configuration; each conversation is a `session`.

    Args:
        format: "openai", "anthropic" or "responses".
        policy: what decides the edits, a policy or a plain function from an observation to an
            action; by default the fixed rule that did best in tuning. It is shared by all
            sessions. A trained one comes from `contextpilot.policies.load`.
        fallback: the fixed rule that decides where the policy fails; by default the same rule.
        limits: how long a decision may take, and after how many failures the policy is parked.
        summarizer: by default one that needs no model.
        tokenizer: what counts; by default an estimate from characters.
        archive: where originals go; by default into this process's memory.
        model: the name that requests are made with; its window is the budget where none is given.
        budget: limits in tokens; by default a window of 128,000.
        windows: tokens by model name, for models that are not known.
        target: share of the input limit that an edited request is brought down to.
        pins: says of a message whether it must stay as it is.
        pin_goal: whether the first user text stays as it is.
        synthetic: says of a message of role user whether a manager wrote it, such as a summary
            that the host made before.
        trust: says how much authority a message has, where it is less than its role's.
        allow_tools: names of the tools whose results may be edited; by default all.
        deny_tools: names of tools whose exchanges are never edited.
        on_edit: called with the session's id and each record of its log.
        secret: keys the boundaries around data; up to 64 bytes. By default a random one: sessions
            that continue from a `state_dict` keep their boundaries, other processes have others.
        trust_note: states in the system prompt how data is framed and what trust means; the reload
            tool's description states it anyway.
        cooldown: requests after an edit in which the policy is not asked again.
        prices: of tokens, or a name in `PRICE_PRESETS`.
        max_edits: edit steps a request.
        reload_tool: whether requests carry the tool that fetches originals.
        pending_wait: how many turns may follow a call before its made-up result says that none
            came; until then it says that the result is pending.
        context_slots, archive_slots: size of the action layout; that of the policy's checkpoint.
    """

    def __init__(
        self,
        format: str = "openai",
        *,
        policy: Policy | None = None,
        fallback: Policy | None = None,
        limits: FallbackLimits | None = None,
        summarizer: Summarizer | None = None,
        tokenizer: Tokenizer | None = None,
        archive: Archive | None = None,
        model: str | None = None,
        budget: TokenBudget | None = None,
        windows: Mapping[str, int] | None = None,
        target: float | None = None,
        pins: Pins | None = None,
        pin_goal: bool = True,
        synthetic: Pins | None = None,
        trust: Trusts | None = None,
        allow_tools: Iterable[str] | None = None,
        deny_tools: Iterable[str] = (),
        on_edit: EditCallback | None = None,
        secret: bytes = b"",
        trust_note: bool = False,
        cooldown: int = 0,
        prices: Prices | str = "default",
        max_edits: int = 16,
        reload_tool: bool = False,
        pending_wait: int = 8,
        context_slots: int = 128,
        archive_slots: int = 32,
    ) -> None:
        """Checks the settings.

        Raises:
            ConfigurationError: for one that is unknown or out of range.
        """
        require("tokenizer", tokenizer, ("count", "truncate"), "Pass TiktokenTokenizer(name).")
        require("summarizer", summarizer, ("summarize",), "A function needs a class around it.")
        require("archive", archive, ("put", "get", "ids", "purge"), "Pass SqliteArchive(path).")
        require_type("limits", limits, FallbackLimits, "Pass FallbackLimits(...).")
        require_type("secret", secret, bytes, "Encode it: secret.encode().")
        callbacks = {"pins": pins, "synthetic": synthetic, "trust": trust, "on_edit": on_edit}
        for name, callback in callbacks.items():
            require(name, callback, ("__call__",), "Pass a function.")
        decides, stands_in = policy_of("policy", policy), policy_of("fallback", fallback)
        self.config = ManagerConfig(
            format=format_of(format).name,
            budget=budget_for(model, budget_of(budget), windows),
            target=target,
            max_edits=max_edits,
            cooldown=cooldown,
            pending_wait=pending_wait,
            reload_tool=reload_tool,
            context_slots=context_slots,
            archive_slots=archive_slots,
            prices=prices_of(prices),
            pins=pins,
            pin_goal=pin_goal,
            synthetic=synthetic,
            trust=trust,
            allow_tools=names_of("allow_tools", allow_tools),
            deny_tools=names_of("deny_tools", deny_tools) or frozenset(),
            on_edit=on_edit,
            secret=secret or secrets.token_bytes(16),
            trust_note=trust_note,
        )
        rule = stands_in or best_rule()()
        if decides is None and limits is None:
            limits = FallbackLimits(timeout_seconds=None)  # a rule needs no thread of its own
        tokenizer = tokenizer or EstimateTokenizer(warn=True)
        self.archive: Archive = archive or MemoryArchive()
        self._parts = Parts(
            policy=decides or rule,
            rule=rule,
            limits=limits,
            summarizer=summarizer or CachedSummarizer(StructureSummarizer(tokenizer)),
            tokenizer=tokenizer,
            archive=self.archive,
        )
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def session(self, session_id: str = DEFAULT_SESSION) -> Session:
        """Returns the session of a conversation; the same one for the same id."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                session = self._sessions[session_id] = Session(session_id, self.config, self._parts)
            return session

    def close(self, session_id: str) -> None:
        """Forgets a session; its archive stays, and `Session.purge` erases that."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def prepare(
        self,
        messages: Messages | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        system: System | None = None,
    ) -> Request:
        """Prepares a request of the default session, for programs with one conversation.

        Raises:
            MessageFormatError, ConfigurationError: as `Session.prepare`.
        """
        return self.session().prepare(messages, tools, system)
