"""A reported case as a manager is set up for it, and what came of driving it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Drop, EditRecord
from contextpilot.core.segment import Trust
from contextpilot.manager import ContextManager, Request, Session
from contextpilot.policies.base import Policy
from contextpilot.policies.rules import ClearOldResults, DropOldest, SummarizeAtThreshold
from contextpilot.policies.simple import KeepAll
from contextpilot.summarizers import ChunkedSummarizer, SummaryRequest
from contextpilot.tokenizers import EstimateTokenizer, TiktokenTokenizer
from contextpilot.tokenizers.base import Tokenizer

Case = Mapping[str, Any]
_TRUSTS = {"untrusted": Trust.UNTRUSTED, "agent": Trust.AGENT, "user": Trust.USER}


class Chars4:
    """The reference counter of the cases: four characters a token; framing is counted apart."""

    name = "chars4"

    def count(self, text: str) -> int:
        return math.ceil(len(text) / 4)

    def truncate(self, text: str, max_tokens: int) -> str:
        return text[: 4 * max_tokens]


class OneEach(Chars4):
    """Counts messages: each has its framing and nothing else."""

    name = "messages"

    def count(self, text: str) -> int:
        return 0


class FakeSummarizer:
    """Answers as a case says."""

    name = "fake"

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config, self.calls = config, 0

    def summarize(self, request: SummaryRequest) -> str:
        self.calls += 1
        if "raises" in self._config:
            raise RuntimeError(self._config["raises"])
        if "extract" in self._config:
            given = "\n".join(source.text for source in request.sources)
            found = [text for text in self._config["extract"] if text in given]
            return f"Facts: {', '.join(found)}" if given else "Nothing was given."
        return str(self._config.get("returns", "Earlier steps."))


@dataclass
class Played:
    """What came of a case.

    Attributes:
        first: the first request.
        requests: all of them; the last belongs to the history after all steps.
        histories: the host's history of each.
    """

    case: Case
    session: Session
    summarizer: FakeSummarizer
    tokenizer: Tokenizer
    by_hand: list[EditRecord]
    requests: list[Request] = field(default_factory=list)
    histories: list[list[Any]] = field(default_factory=list)

    @property
    def first(self) -> Request:
        return self.requests[0]


def tokenizer_of(config: Mapping[str, Any]) -> Tokenizer:
    counter = config.get("counter", "chars4")
    if counter == "messages":
        return OneEach()
    if counter == "chars4":
        return Chars4()
    try:
        return TiktokenTokenizer(counter)
    except Exception:  # its vocabulary is not on this machine
        return EstimateTokenizer()


def budget_of(config: Mapping[str, Any]) -> TokenBudget:
    trigger, window = config.get("trigger_tokens"), config.get("context_window")
    reserved = config.get("reserved_output", 0)
    if trigger is None or config.get("force"):
        share = 1e-9 if window is None or config.get("force") else 1.0
        return TokenBudget(window or 10**9, reserved, share)
    window = window or 4 * trigger + reserved
    return TokenBudget(window, reserved, min(1.0, trigger / (window - reserved)))


def target_of(config: Mapping[str, Any], budget: TokenBudget) -> float | None:
    target = config.get("target_tokens")
    return None if target is None else min(1.0, target / budget.input_limit)


def own_policy(config: Mapping[str, Any]) -> Policy:
    """Returns the policy that a case's strategy names."""
    budget, keep = budget_of(config), config.get("keep_recent_messages")
    trigger = budget.compression_threshold
    strategy = config["strategy"]
    if strategy == "drop_oldest":
        return DropOldest(trigger, target_of(config, budget), keep)
    if strategy == "summarize":
        return SummarizeAtThreshold(trigger, keep_segments=2 if keep is None else keep)
    if strategy == "clear_tool_results":
        return ClearOldResults(0, 0, 0, config.get("keep_recent_tool_results", 1), trigger)
    if strategy == "clear_tool_inputs":
        return ClearOldResults(0, 0, 0, 0, trigger, calls=True)
    assert strategy in ("none", "explicit", "budget_fallback"), strategy
    return KeepAll()


def manager_of(case: Case, policy: Policy, summarizer: FakeSummarizer) -> ContextManager:
    config, messages = case["config"], case["messages"]
    budget, tokenizer = budget_of(config), tokenizer_of(config)

    def among(name: str) -> Any:
        wire = [json.dumps(messages[int(at)]) for at in config.get(name, ())]
        return (lambda message: json.dumps(message) in wire) if wire else None

    labels = {json.dumps(messages[int(at)]): v for at, v in config.get("labels", {}).items()}
    before = config.get("previous_summary_index")
    made = [*config.get("synthetic", ()), *([] if before is None else [before])]
    synthetic = [json.dumps(messages[at]) for at in made]
    limit = config.get("summarizer", {}).get("max_input_tokens")
    return ContextManager(
        case["format"],
        policy=policy,
        summarizer=ChunkedSummarizer(summarizer, tokenizer, limit) if limit else summarizer,
        tokenizer=tokenizer,
        budget=budget,
        target=target_of(config, budget),
        cooldown=config.get("cooldown_steps", 0),
        pending_wait=config.get("pending_timeout_steps", 8),
        pins=among("pinned"),
        pin_goal=False,
        synthetic=(lambda message: json.dumps(message) in synthetic) if synthetic else None,
        trust=lambda message: _TRUSTS.get(labels.get(json.dumps(message), "").split(":")[0]),
    )


def play(case: Case, policy: Policy) -> Played:
    """Drives a case: the history as it is, then its steps."""
    config, tools = case["config"], case["config"].get("tools")
    summarizer = FakeSummarizer(config.get("summarizer", {}))
    manager = manager_of(case, policy, summarizer)
    session, history = manager.session(case["id"]), list(case["messages"])
    played = Played(case, session, summarizer, tokenizer_of(config), [])
    by_hand = config["strategy"] == "explicit"
    request = session.prepare(history, tools)
    for action in config.get("actions", ()) if by_hand else ():
        played.by_hand.append(_act(session, action))
        request = session.prepare(history, tools)
    played.requests.append(request)
    played.histories.append(list(history))
    waits = False
    for step in config.get("steps", ()):
        if "append" in step:
            history.append(step["append"])
            waits = True
        else:
            played.requests.append(session.prepare(history, tools))
            played.histories.append(list(history))
            waits = False
    if waits:
        played.requests.append(session.prepare(history, tools))
        played.histories.append(list(history))
    return played


def _act(session: Session, action: Mapping[str, Any]) -> EditRecord:
    """Makes an edit that a case asks for; "exchange:<call id>" names its target."""
    assert action["action"] == "drop", action
    _, call_id = action["target"].split(":", 1)
    entries = session._desk.entries.all
    (index,) = (
        i
        for i, entry in enumerate(entries)
        if any(part.type == "call" and part.call_id == call_id for part in entry.segment.parts)
    )
    return session.edit(Drop((index,)))
