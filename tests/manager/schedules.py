"""What hosts do to a session besides growing its history, as steps that tests draw."""

from __future__ import annotations

import copy
import json
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from manager.histories import ALWAYS, Messages, history, requests_of

from contextpilot.archives import MemoryArchive, SqliteArchive
from contextpilot.archives.base import Archive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import EditRecord
from contextpilot.manager import ContextManager, Request, Session
from contextpilot.manager.fallback import FallbackLimits
from contextpilot.manager.reload_tool import RELOAD_TOOL
from contextpilot.messages.validate import problems
from contextpilot.observations.observation import Observation
from contextpilot.tokenizers import EstimateTokenizer

TIGHT = TokenBudget(2_500, 0, 0.5)
TOKENIZER = EstimateTokenizer()


class Seen:
    """Chooses by what it sees alone: two sessions that see the same make the same edits.

    Attributes:
        quiet: while True it keeps.
    """

    name = "seen"

    def __init__(self) -> None:
        self.quiet = False

    def reset(self, seed: int) -> None:
        pass

    def __call__(self, observation: Observation) -> int:
        arrays = observation.arrays
        legal = np.flatnonzero(arrays["action_mask"][1:]) + 1
        number = zlib.crc32(b"".join(arrays[name].tobytes() for name in ("state", "segments")))
        if self.quiet or not len(legal) or number % 7 < 2:
            return 0
        ops = [int(observation.codec.decode(int(action)).op) for action in legal]
        op = sorted(set(ops))[number // 7 % len(set(ops))]
        choices = [int(action) for action, each in zip(legal, ops, strict=True) if each == op]
        return choices[number // 64 % len(choices)]


class Host:
    """One host with its session, which it may restart.

    Attributes:
        sent: the latest request.
    """

    def __init__(self, format: str, budget: TokenBudget, archive: Archive | None = None) -> None:
        self.format, self.budget = format, budget
        self.policy = Seen()
        self.archive = archive if archive is not None else MemoryArchive()
        self.manager = self._manager()
        self.session: Session = self.manager.session("a")
        self.sent: Request | None = None

    def _manager(self) -> ContextManager:
        return ContextManager(
            self.format, policy=self.policy, limits=FallbackLimits(None), tokenizer=TOKENIZER,
            archive=self.archive, budget=self.budget, context_slots=24, archive_slots=8,
            max_edits=4, reload_tool=True, secret=b"tests",
        )  # fmt: skip

    def restart(self) -> None:
        """Goes on in another process: all that is left is the state, as JSON, and the archive."""
        state = json.dumps(self.session.state_dict())
        self.manager = self._manager()
        self.session = self.manager.session("a")
        self.session.load_state_dict(json.loads(state))

    def twin(self, budget: TokenBudget) -> Host:
        """Returns a host with the same log and archive whose policy edits nothing."""
        other = Host(self.format, budget, self.archive)
        other.policy.quiet = True
        other.session.load_state_dict(json.loads(json.dumps(self.session.state_dict())))
        return other

    def prepare(self, messages: Messages, fed: bool = False) -> Request:
        """Makes a request, checks what holds of any, and remembers it.

        Args:
            messages: the history.
            fed: some of it was a request, and is written anew.
        """
        before = copy.deepcopy(messages)
        self.sent = self.session.prepare(messages)
        assert messages == before
        assert problems(self.format, self.sent.messages) == ()
        own = {id(message) for message in messages}
        for message in self.sent.messages:  # what is untouched is the host's own object
            assert fed or id(message) in own or message not in messages
        return self.sent

    def quietly(self, messages: Messages) -> Request:
        """Makes a request without new edits of the policy's."""
        self.policy.quiet = True
        try:
            return self.prepare(messages)
        finally:
            self.policy.quiet = False


def conversation(format: str, rng: Random, requests: int) -> list[Messages]:
    """Returns the lists that a host passes, request by request, of a history like no other."""
    seed, reasons = rng.randrange(2**32), rng.random() < 0.4
    messages = short(history(format, seed, requests, reasons))
    goal = next(message for message in messages if message["role"] == "user")
    texts = {"openai": "text", "anthropic": "text", "responses": "input_text"}
    goal["content"] = [{"type": texts[format], "text": goal["content"]}, _document(format)]
    return list(requests_of(messages))


def _document(format: str) -> dict[str, Any]:
    """Returns what may be moved within a history."""
    if format == "openai":
        return {"type": "file", "file": {"filename": "plan.pdf", "file_id": "file_1"}}
    if format == "responses":
        return {"type": "input_file", "filename": "plan.pdf", "file_id": "file_1"}
    source = {"type": "text", "media_type": "text/plain", "data": "The plan. " * 40}
    return {"type": "document", "title": "Plan", "source": source}


def short(messages: Messages) -> Messages:
    """Returns a history whose texts are cut, so that thousands of them take a minute."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [cut(inner) for inner in value]
        if isinstance(value, str) and "\n" in value:
            return "\n".join(value.splitlines()[:40])
        return value

    made: Messages = cut(messages)
    return made


def reload_exchange(format: str, number: int, segment_id: str, session: Session) -> Messages:
    """Returns the turn in which the model asks for an original, and the session's answer."""
    key, arguments = f"ask_{number}", {"id": segment_id}
    if format == "anthropic":
        call: Any = {"type": "tool_use", "id": key, "name": RELOAD_TOOL, "input": arguments}
        turn = [{"role": "assistant", "content": [call]}]
        return [*turn, {"role": "user", "content": [session.dispatch_reload(call)]}]
    text = json.dumps(arguments)
    if format == "responses":
        call = {
            "type": "function_call", "call_id": key, "name": RELOAD_TOOL, "arguments": text,
        }  # fmt: skip
        return [call, session.dispatch_reload(call)]
    call = {"id": key, "type": "function", "function": {"name": RELOAD_TOOL, "arguments": text}}
    turn = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    return [*turn, session.dispatch_reload(call)]


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Does several things in a thread each; returns what they returned."""
    results: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        results[number] = works[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def records(session: Session) -> list[EditRecord]:
    """Returns the log without what a clock says."""
    return [record._replace(latency_seconds=0.0) for record in session.log]


def archive_for(rng: Random, folder: Path) -> Archive:
    """Returns an archive in memory, or one in twenty times in a file."""
    if rng.random() < 0.05:
        return SqliteArchive(folder / f"{rng.randrange(2**40)}.db")
    return MemoryArchive()


def budget_for(rng: Random) -> TokenBudget:
    """Returns a window that everything fits into, or one that it does not."""
    return ALWAYS if rng.random() < 0.8 else TIGHT
