"""A model and the simulated readers, asked the same questions of the same contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from contextpilot.core.edit import Op
from contextpilot.observations.observation import Observation
from contextpilot.readers.base import Reader, says_missing, states
from contextpilot_envs.evaluation_engine import EngineSpec, EvaluationEngine
from contextpilot_envs.simulator.asking import ask
from contextpilot_envs.simulator.facing import holder, need_of
from contextpilot_envs.simulator.readers import unread_probability


class Player(Protocol):
    """What decides: any policy."""

    def reset(self, seed: int) -> None:
        """Begins an episode."""
        ...

    def __call__(self, observation: Observation) -> int:
        """Returns an action."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What readers make of one fact that the agent needs.

    Attributes:
        task_id, request, kind: of the fact.
        seen: what stands in its place: "fact" where it is visible, else as in `Need`.
        rot: how probably the simulated reader "rot" would overlook it; 0 where it is not visible.
        tokens: of the context.
        read: whether the model's answer states it.
        missing: whether the model said that the conversation does not say it.
    """

    task_id: str
    request: int
    kind: str
    seen: str
    rot: float
    tokens: int
    read: bool
    missing: bool


def verdicts(
    spec: EngineSpec,
    task_id: str,
    policy: Player,
    reader: Reader,
    on_question: Callable[[], object] = lambda: None,
) -> Iterator[Verdict]:
    """Plays a task with a policy and asks the model at each demand; yields every fact's verdict.

    The episode itself goes on under the simulated reader of `spec`, so the model's answers change
    nothing of what is asked next.

    Raises:
        ReaderError: when the model cannot answer.
    """
    engine = spec(1)
    engine.begin(0, task_id, 0)
    engine.observe([0])
    policy.reset(0)
    while not engine.ended(0):
        arrays = {name: array[0] for name, array in engine.arrays().items()}
        action = policy(Observation(arrays, engine.codec))
        if _sends(engine, action):
            yield from _judged(engine, reader, on_question)
        engine.step([action], [0])


def _sends(engine: EvaluationEngine, action: int) -> bool:
    last = engine.states[0].step + 1 >= engine.simulator.max_edits
    return engine.codec.decode(action).op == Op.KEEP or last


def _judged(
    engine: EvaluationEngine, reader: Reader, on_question: Callable[[], object]
) -> Iterator[Verdict]:
    episode = engine.episodes[0]
    episode.settle()  # as sending would
    context, prepared = episode.context, episode.prepared
    if context.overflows:
        return
    for demand in prepared.demands[context.request]:
        answer = ask(reader, context, demand, prepared.task.goal, prepared.task.language)
        on_question()
        for fact in (prepared.task.facts[f] for f in demand.facts):
            index = holder(prepared, context, fact)
            seen = need_of(context, fact, demand.query).seen if index < 0 else "fact"
            rot = unread_probability("rot", context, index) if index >= 0 else 0.0
            yield Verdict(
                prepared.task.id, context.request, fact.kind, seen, rot, context.used_tokens,
                states(answer, fact.value), says_missing(answer),
            )  # fmt: skip
