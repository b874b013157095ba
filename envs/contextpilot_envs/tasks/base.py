"""A task: a stream of segments, and what the agent will need of them. One episode is one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contextpilot.core.segment import Segment


@dataclass(frozen=True, slots=True)
class KeyFact:
    """A value that must be readable, verbatim, where the agent needs it.

    Attributes:
        value: the string to look for.
        kind: "number", "name", "code", "path", "negation", "clause", "ordering", "identifier",
            "line", or "whole" (a result that must be readable whole, the unread invariant).
        segments: indices into `Task.segments` of the segments whose full form states it.
        stale_segments: indices of segments that state a superseded value.
    """

    value: str
    kind: str
    segments: tuple[int, ...]
    stale_segments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """What the agent needs at one request to act right.

    Attributes:
        request: 0-based number of the request.
        facts: indices into `Task.facts`.
        query: what the agent would search the archive with; never holds the values.
        final: True where meeting it is what the task's final answer consists of.
    """

    request: int
    facts: tuple[int, ...]
    query: str = ""
    final: bool = False


@dataclass(frozen=True)
class Task:
    """One episode's stream and labels. Immutable, shared by every copy of the environment.

    Attributes:
        id: unique, such as "tools/en/h10/000017" or "claude_code/258c7280#0".
        source: the family or data set it comes from; what tables group by.
        cluster: what is resampled together in intervals (a session, a generator seed).
        goal: what the agent is asked to do.
        segments: in host-history order.
        arrivals: per segment, the first request at which it is there; never decreasing.
        requests: number of requests of the agent's model (the horizon).
        output_tokens: per request, tokens that the agent's turn costs as output.
        facts, demands: the labels. Nothing of them reaches an observation.
        prefix_tokens: system prompt and tool schemas that are sent but are not segments.
        token_scale: tokens per estimated token, fitted to recorded usage where there is some.
        recorded_input_tokens: per request, what the provider reported; empty where unknown.
        cold_requests: requests before which the agent idled until the provider's cache ran out.
        success: "answer" (every final fact is met) or "no_silent_miss" (replays).
    """

    id: str
    source: str
    cluster: str
    goal: str
    segments: tuple[Segment, ...]
    arrivals: tuple[int, ...]
    requests: int
    output_tokens: tuple[int, ...]
    facts: tuple[KeyFact, ...]
    demands: tuple[Demand, ...]
    language: str = "en"
    prefix_tokens: int = 0
    token_scale: float = 1.0
    recorded_input_tokens: tuple[int, ...] = ()
    cold_requests: tuple[int, ...] = ()
    success: str = "answer"
    metadata: Mapping[str, str] = field(default_factory=dict)


class TaskSource(Protocol):
    """Where tasks come from. Implementations are pure functions of the id."""

    name: str

    def ids(self, split: str) -> Sequence[str]:
        """Returns the task ids of a split ("train" or "validation"), in a fixed order."""
        ...

    def load(self, task_id: str) -> Task:
        """Returns a task.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
        """
        ...
