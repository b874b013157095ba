"""One random history driven through a session, request by request, and everything checked."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy as np
from soak_checks import Losses, invalid, is_encodable, not_verbatim, over_budget, segments_of
from soak_histories import FORMATS, History, history
from soak_wire import Message

from contextpilot.archives import MemoryArchive
from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Op, Outcome
from contextpilot.edits.codec import CONTEXT_PRESETS
from contextpilot.manager import ContextManager, Request, Session, Status
from contextpilot.manager.config import ManagerConfig
from contextpilot.manager.fallback import FallbackLimits
from contextpilot.manager.reload_tool import tool_definition
from contextpilot.messages.repair import repair
from contextpilot.observations.observation import Observation
from contextpilot.policies.simple import KeepAll
from contextpilot.tokenizers import EstimateTokenizer
from contextpilot.tokenizers.count import MESSAGE_TOKENS, segment_tokens

SYSTEM = "You are an agent. Be brief. 请简短回答。"
TOKENIZER = EstimateTokenizer()
NO_LIMIT = FallbackLimits(timeout_seconds=None)
ALWAYS = 1e-6
"""A compression threshold that every request is over: the policy is always asked."""

MAX_POINTS = 4
"""Requests made of one history, at most."""


@dataclass
class Tally:
    """What was done, and what did not hold.

    Attributes:
        counts: histories, requests, edited and unreachable ones, messages, edits by operation.
        violations: each with the format and the number of its history.
    """

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Takes in another tally."""
        self.counts += other.counts
        self.violations += other.violations

    def shares(self) -> dict[str, float]:
        """Returns each operation's share of the applied edits."""
        edits = {op.name.lower(): self.counts[f"edits_{op.name.lower()}"] for op in Op if op}
        total = sum(edits.values())
        return {name: count / total if total else 0.0 for name, count in edits.items()}

    @property
    def edited_share(self) -> float:
        """The share of the requests that did not go out as the host's list is."""
        return self.counts["edited"] / max(1, self.counts["requests"])


class Restless:
    """Legal edits at random, mostly of the operation that it has made least so far.

    Args:
        keep_share: probability of ending a request's edits at each step.
    """

    name = "restless"

    def __init__(self, keep_share: float) -> None:
        self.keep_share = keep_share
        self._rng, self._made = Random(0), Counter[int]()

    def reset(self, seed: int) -> None:
        """Begins anew."""
        self._rng, self._made = Random(seed), Counter()

    def __call__(self, observation: Observation) -> int:
        """Returns keep, or an action that the mask allows."""
        rng, codec = self._rng, observation.codec
        legal = np.flatnonzero(observation.arrays["action_mask"][1:]) + 1
        if rng.random() < self.keep_share or not len(legal):
            return 0
        ops = _operations(codec.context_slots, codec.archive_slots)[legal]
        present = [int(op) for op in np.unique(ops)]
        rarest = min(present, key=self._made.__getitem__)
        op = rarest if rng.random() < 0.9 else rng.choice(present)
        self._made[op] += 1
        choices = legal[ops == op]
        return int(choices[rng.randrange(len(choices))])


@cache
def _operations(context_slots: int, archive_slots: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Returns the operation of every action."""
    presets = np.repeat(np.array([p.op for p in CONTEXT_PRESETS], np.int8), context_slots)
    return np.concatenate([[0], presets, np.full(2 * archive_slots, Op.RELOAD)]).astype(np.int8)


class Drive:
    """One history and its session.

    Args:
        seed: of the run.
        number: of the history in it; the format goes by it.
        longest: messages of the longest history.
    """

    def __init__(self, seed: int, number: int, longest: int = 400) -> None:
        self.rng = Random(f"{seed}/{number}")
        self.format = FORMATS[number % len(FORMATS)]
        self.history = history(self.format, self.rng, _length(self.rng, longest))
        self.archive, self.id = MemoryArchive(), f"soak-{number}"
        self.tally = Tally(Counter(histories=1))
        self.reload_tool = self.rng.random() < 0.3
        self.prefix = TOKENIZER.count(SYSTEM) + MESSAGE_TOKENS
        if self.reload_tool:
            tool = json.dumps(
                tool_definition(self.format), ensure_ascii=False, separators=(",", ":")
            )
            self.prefix += TOKENIZER.count(tool)

    def run(self) -> Tally:
        """Drives the history to its end; returns what was found."""
        where = "before the first request"
        try:
            session = self._manager(self._budget(), Restless(0.2)).session(self.id)
            losses, points = Losses(self.archive, self.id), _sample(self.history, self.rng)
            frozen = copy.deepcopy(self.history.messages)
            host: list[Message] = []
            for point in points:
                where = f"at {point} messages"
                host = self.history.messages[:point]
                request, base = session.prepare(host, system=SYSTEM), self._base(host)
                self._note(request, base)
                last = point == points[-1]
                for found in self._checked(session, request, base, losses, last):
                    self.tally.violations.append(f"{where}: {found}")
                if host != frozen[:point]:
                    self.tally.violations.append(f"{where}: the host's list was changed")
            where = "taking everything back"
            self.tally.violations += [f"{where}: {found}" for found in self._undone(session, host)]
            self.tally.counts.update(_applied(session))
        except Exception as error:  # whatever it is, it is a violation, and the soak goes on
            self.tally.violations.append(f"{where}: {type(error).__name__}: {error}"[:400])
        return self.tally

    def _budget(self) -> TokenBudget:
        """From what nothing fits into, to what everything fits into."""
        rng = self.rng
        raw = self.prefix + sum(
            segment_tokens(TOKENIZER, s) for s in segments_of(self.format, self.history.messages)
        )
        low, high = rng.choices([(0.01, 0.1), (0.15, 0.5), (0.5, 1), (2, 3)], [1, 2, 3, 14])[0]
        window = max(60, int(rng.uniform(low, high) * raw))
        reserved = rng.choice([0, 0, window // 10])
        return TokenBudget(window, reserved, rng.choice([ALWAYS, ALWAYS, ALWAYS, 0.3, 0.8]))

    def _manager(self, budget: TokenBudget, policy: Restless | KeepAll) -> ContextManager:
        return ContextManager(
            self.format,
            policy=policy,
            limits=NO_LIMIT,
            tokenizer=TOKENIZER,
            archive=self.archive,
            budget=budget,
            target=None if budget.compression_threshold == ALWAYS else self.rng.choice([None, 0.3]),
            max_edits=self.rng.choice([4, 16]),
            reload_tool=self.reload_tool,
            secret=b"soak",
            context_slots=self.rng.choice([16, 48, 128]),
        )

    def _base(self, host: list[Message]) -> list[Message]:
        """Returns the list that edits start from: the host's, or what had to be repaired of it."""
        return repair(self.format, host, pending_wait=ManagerConfig().pending_wait).messages

    def _note(self, request: Request, base: list[Message]) -> None:
        counts = self.tally.counts
        counts["requests"] += 1
        counts["messages"] += len(request.messages)
        counts["edited"] += request.messages != base
        counts["unreachable"] += request.status == Status.BUDGET_UNREACHABLE

    def _checked(
        self, session: Session, request: Request, base: list[Message], losses: Losses, last: bool
    ) -> Iterator[str]:
        """Yields what does not hold of a request."""
        yield from invalid(self.format, request.messages)
        if is_encodable(base) and not is_encodable(request.messages):
            yield "the request cannot be encoded"
        if request.system != SYSTEM:
            yield "the system prompt was changed"
        parsed, own = (segments_of(self.format, each) for each in (request.messages, base))
        yield from over_budget(parsed, request, TOKENIZER, self.prefix)
        yield from not_verbatim(parsed, own)
        yield from losses.of(own, base, request.messages, anew=last)
        log = len(session.log)
        again = session.prepare(request.messages, system=SYSTEM)
        if again.messages != request.messages:
            yield f"fed back, it is another request{_difference(request.messages, again.messages)}"
        if (again.status, len(session.log)) != (request.status, log):
            more = f"{len(session.log) - log} more records"
            yield f"fed back, {request.status} became {again.status} with {more}"

    def _undone(self, session: Session, host: list[Message]) -> Iterator[str]:
        """Yields what is not as it was once every edit is taken back, after a restart or before."""
        before = self.rng.random() < 0.5
        if before:
            session.prepare(host, system=SYSTEM)
            session.undo_all()
        restarted = self._manager(TokenBudget(), KeepAll()).session(self.id)
        restarted.load_state_dict(json.loads(json.dumps(session.state_dict())))
        if not before:
            restarted.prepare(host, system=SYSTEM)
            restarted.undo_all()
        sent, base = restarted.prepare(host, system=SYSTEM).messages, self._base(host)
        own = {id(message) for message in host}
        if sent != base:
            yield f"not what it was{_difference(base, sent)}"
        elif any(id(b) in own and a is not b for a, b in zip(sent, base, strict=True)):
            yield "not the host's own objects"


def _difference(wanted: Sequence[Message], got: Sequence[Message]) -> str:
    pairs = enumerate(zip(wanted, got, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(wanted), len(got)))
    return f", from message {at} on ({len(wanted)} and {len(got)} messages)"


def _length(rng: Random, longest: int) -> int:
    """Most histories are short, one in twenty has at least 200 messages."""
    if rng.random() < 0.06 and longest > 200:
        return rng.randint(200, longest)
    return min(longest, 20 + int(rng.expovariate(1 / 12)))


def _sample(made: History, rng: Random) -> list[int]:
    """Returns some of a history's request points, in order; the last one always."""
    early = rng.sample(made.points[:-1], min(MAX_POINTS - 1, len(made.points) - 1))
    return [*sorted(early), made.points[-1]]


def _applied(session: Session) -> Counter[str]:
    """Counts the applied edits by operation."""
    made = (r for r in session.log if r.outcome == Outcome.APPLIED and r.undoes < 0)
    return Counter(f"edits_{record.op.name.lower()}" for record in made)
