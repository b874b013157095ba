"""Three tiny environments, each of which needs something that neither keeping nor chance does.

Each is a handful of tasks that differ in which segment matters and when, so that features must be
read: no slot, request or size alone tells. What the agent notices is a matter of luck in all of
them, and the best policy never depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gymnasium.vector import AutoresetMode
from tiny_tasks import (
    FixedSource,
    document_segment,
    exchange,
    goal_segment,
    user_segment,
    words,
)

from contextpilot.core.segment import Segment
from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import Demand, KeyFact, Task

CONTEXT_SLOTS, ARCHIVE_SLOTS = 24, 16
"""Enough for every result to be within reach, hidden or not."""

GOAL = "Report the turbine pressure."
PREFIX_TOKENS = 1100
"""Fixed prefix where a prompt cache is priced: every request is above the cache's minimum."""


@dataclass(frozen=True)
class TinyEnvironment:
    """A few tasks under one simulator.

    Attributes:
        name: of the environment.
        tasks: what is played.
        simulator: window, prices, notice.
        optima: the highest return (J + 1) of each task, whatever the agent notices.
    """

    name: str
    tasks: tuple[Task, ...]
    simulator: SimulatorConfig
    optima: tuple[float, ...]

    def make(self, num_envs: int, reward: RewardWeights) -> ContextEditVectorEnv:
        """Returns copies in which the caller chooses the tasks."""
        return ContextEditVectorEnv(
            num_envs, FixedSource(*self.tasks), simulator=self.simulator,
            context_slots=CONTEXT_SLOTS, archive_slots=ARCHIVE_SLOTS,
            autoreset_mode=AutoresetMode.DISABLED, reward=reward, copy=False,
        )  # fmt: skip


def result(number: int, lines: int, *insertions: str) -> tuple[Segment, ...]:
    """A call and its result of so many lines, with further lines in the middle."""
    return exchange(number, _text(number, lines, insertions))


def _document(number: int, lines: int, *insertions: str) -> tuple[Segment, ...]:
    return (document_segment(f"d{number}", _text(number, lines, insertions)),)


def _text(number: int, lines: int, insertions: Sequence[str]) -> str:
    texts = words(lines, 1000 * number).splitlines()
    texts[lines // 2 : lines // 2] = insertions
    return "\n".join(texts)


def _whole(stream: Sequence[tuple[int, Segment]], index: int) -> KeyFact:
    """The fact that a segment states from its first word to its last: no summary keeps it."""
    return KeyFact(stream[index][1].text, "whole", (index,))


def _task(
    task_id: str, stream: Sequence[tuple[int, Segment]], requests: int, facts: Sequence[KeyFact],
    demands: Sequence[Demand], prefix_tokens: int,
) -> Task:  # fmt: skip
    arrivals, segments = zip(*stream, strict=True)
    return Task(
        task_id, "tiny", task_id, GOAL, segments, arrivals, requests, (0,) * requests,
        tuple(facts), tuple(demands), prefix_tokens=prefix_tokens,
    )  # fmt: skip


# ---- a delayed miss ------------------------------------------------------------------------------

DELAYED_REQUESTS = 12
_DELAYED_OPTIMA = (
    0.268899188, 0.271896550, 0.276266068, 0.268899188, 0.271896550, 0.268557834,
)  # fmt: skip
_ON_TOPIC = ("turbine pressure report",) * 8


def delayed_miss() -> TinyEnvironment:
    """A result a request; the one about the goal is demanded 10 requests after it came.

    Hiding it saves as much at once as hiding any other, and is paid for much later. Bringing
    it back would cost more than keeping it: a cached token costs 0.1 a request, a new one 1.25.
    """
    tasks = []
    for k, needed in enumerate((0, 1, 1, 0, 1, 0)):
        stream: list[tuple[int, Segment]] = [(0, goal_segment(GOAL))]
        for n in range(DELAYED_REQUESTS):
            made = result(n, 600 + 80 * ((n + k) % 3))
            if n == needed:
                place, made = len(stream), _document(n, 120, *_ON_TOPIC)
            stream += [(n, segment) for segment in made]
        facts = [_whole(stream, place)]
        demand = Demand(needed + 10, (0,), "turbine pressure")
        tasks.append(
            _task(f"delayed/{k}", stream, DELAYED_REQUESTS, facts, [demand], PREFIX_TOKENS)
        )
    simulator = SimulatorConfig(budget_fraction=None, max_edits=2, reload_output_tokens=3000)
    return TinyEnvironment("delayed_miss", tuple(tasks), simulator, _DELAYED_OPTIMA)


# ---- marking and flushing ------------------------------------------------------------------------

BURST_REQUESTS, BURST = 12, 6
_MARKING_OPTIMA = (
    0.338556264, 0.345432748, 0.339932965, 0.348050008, 0.341271228, 0.348598343,
)  # fmt: skip


def marking() -> TinyEnvironment:
    """Results that arrive at once, one of which is used all along; two edits a request.

    Every request in which something in front of it is folded breaks the prefix, and it is written
    anew for 1.25 a token. Marking costs nothing, and is how two edits a request reach five results.
    """
    tasks = []
    for k in range(6):
        stream: list[tuple[int, Segment]] = [(0, goal_segment(GOAL))]
        needed = BURST - 1 - k % 2
        for n in range(BURST):
            made = result(n, 600 + 60 * ((n + k) % 3))
            if n == needed:
                place, made = len(stream), _document(n, 240, *_ON_TOPIC)
            stream += [(0, segment) for segment in made]
        facts = [_whole(stream, place)]
        demands = [
            Demand(request, (0,), "turbine pressure") for request in range(1, BURST_REQUESTS)
        ]
        tasks.append(_task(f"marking/{k}", stream, BURST_REQUESTS, facts, demands, PREFIX_TOKENS))
    simulator = SimulatorConfig(budget_fraction=None, notice="perfect", max_edits=2)
    return TinyEnvironment("marking", tuple(tasks), simulator, _MARKING_OPTIMA)


# ---- a reload that is required -------------------------------------------------------------------

RELOAD_REQUESTS = 10
_RELOAD_OPTIMA = (0.794596374,) * 8
_ASKED = (5, 9)
_WANTED = ((1, 4), (0, 6), (2, 3), (1, 6), (2, 4), (0, 3), (2, 6), (1, 3))


def reload_required() -> TinyEnvironment:
    """A result a request, and room for two; the user asks twice for one that had to go.

    The user's words name the result, as a manager's string match sees, and the demand is faced by
    the very request that they open.
    """
    tasks = []
    for k, wanted in enumerate(_WANTED):
        stream: list[tuple[int, Segment]] = [(0, goal_segment(GOAL))]
        places: dict[int, int] = {}
        facts: list[KeyFact] = []
        demands: list[Demand] = []
        for n in range(RELOAD_REQUESTS):
            if n in _ASKED:
                name = f"valve-{k}-{wanted[_ASKED.index(n)]}"
                text = f"What does the reading of {name} say?"
                stream.append((n, user_segment(f"u{n}", text)))
            else:
                places[n] = len(stream) + 1
                stream += [(n, s) for s in result(n, 400, f"Readings of valve-{k}-{n}:")]
        for n, request in zip(wanted, _ASKED, strict=True):
            demands.append(Demand(request, (len(facts),), f"valve-{k}-{n}"))
            facts.append(_whole(stream, places[n]))
        tasks.append(_task(f"reload/{k}", stream, RELOAD_REQUESTS, facts, demands, 0))
    simulator = SimulatorConfig(
        max_context_tokens=4300,
        notice="poor",
        prices="uncached",
        max_edits=2,
        reload_output_tokens=1200,
    )
    return TinyEnvironment("reload_required", tuple(tasks), simulator, _RELOAD_OPTIMA)


ENVIRONMENTS: tuple[Callable[[], TinyEnvironment], ...] = (delayed_miss, marking, reload_required)
