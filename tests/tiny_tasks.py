"""Small hand-made tasks whose tokens and demands can be followed on paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextpilot.core.edit import Edit, Op
from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust, text_segment
from contextpilot.edits.codec import Action, to_edit
from contextpilot.summarizers import CachedSummarizer, StructureSummarizer
from contextpilot.summarizers.base import Summarizer
from contextpilot.tokenizers import EstimateTokenizer
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.simulator.prepared import PreparedTask
from contextpilot_envs.tasks.base import Demand, KeyFact, Task

NO_LIMIT = SimulatorConfig(budget_fraction=None)


class FixedSource:
    """A source of given tasks."""

    name = "fixed"

    def __init__(self, *tasks: Task) -> None:
        self._tasks = {task.id: task for task in tasks}

    def ids(self, split: str) -> Sequence[str]:
        return list(self._tasks)

    def load(self, task_id: str) -> Task:
        return self._tasks[task_id]


def words(count: int, start: int = 0) -> str:
    """A text of `count` short words, no two texts of different start alike."""
    return "\n".join(f"w{start + i:05d}" for i in range(count))


def exchange(
    number: int, result: str, call: str = "read", argument: str = "{}", reasoning: bool = False
) -> tuple[Segment, Segment]:
    """An assistant turn with one call, and its result."""
    parts: tuple[Part, ...] = (Part("call", argument, name=call, call_id=f"c{number}"),)
    if reasoning:
        parts = (Part("reasoning", "because"), *parts)
    turn = Segment(
        f"t{number}", Role.ASSISTANT, Kind.TURN, parts, Source.ASSISTANT, Trust.AGENT,
        exchange=f"x{number}",
    )  # fmt: skip
    answer = Segment(
        f"r{number}", Role.TOOL, Kind.RESULT, (Part("text", result),), Source.TOOL,
        Trust.UNTRUSTED, exchange=f"x{number}", call_id=f"c{number}", name=call,
    )  # fmt: skip
    return turn, answer


def chain_task(
    requests: int = 6, result_words: int = 200, needed: int = 0, needed_at: int = -1,
    task_id: str = "chain",
) -> Task:  # fmt: skip
    """One exchange a request; the fact of exchange `needed` is demanded at request `needed_at`."""
    needed_at = requests - 1 if needed_at < 0 else needed_at
    goal = text_segment(
        "s0", Role.USER, Kind.TEXT, "Find the code.", source=Source.USER, trust=Trust.USER,
        pinned=True,
    )  # fmt: skip
    segments, arrivals = [goal], [0]
    for n in range(requests):
        text = words(result_words, 1000 * n)
        half = len(text) // 2
        turn, result = exchange(n, f"{text[:half]}\nKEY-{n:04d}-FACT\n{text[half:]}")
        segments += [turn, result]
        arrivals += [n + 1, n + 1]
    facts = (KeyFact(f"KEY-{needed:04d}-FACT", "code", (2 + 2 * needed,)),)
    return Task(
        task_id, "tiny", task_id, "Find the code.", tuple(segments), tuple(arrivals), requests,
        (10,) * requests, facts, (Demand(needed_at, (0,), "the code", final=True),),
    )  # fmt: skip


def mixed_task(seed: int, requests: int = 14) -> Task:
    """Every kind of segment in a random order: for random edits."""
    rng = np.random.default_rng(seed)
    segments: list[Segment] = [
        text_segment(
            "sys", Role.SYSTEM, Kind.TEXT, "You are an agent.", source=Source.SYSTEM,
            trust=Trust.SYSTEM, pinned=True,
        ),
        text_segment(
            "s0", Role.USER, Kind.TEXT, "Collect what matters. " + words(5), source=Source.USER,
            trust=Trust.USER, pinned=True,
        ),
    ]  # fmt: skip
    arrivals = [0, 0]
    facts: list[KeyFact] = []
    demands: list[Demand] = []

    def put(segment: Segment, arrival: int) -> int:
        segments.append(segment)
        arrivals.append(arrival)
        return len(segments) - 1

    for t in range(1, requests):
        for k in range(int(rng.integers(1, 3))):
            number = 10 * t + k
            text = words(int(rng.integers(3, 400)), 1000 * number)
            turn, result = exchange(
                number, text, argument='{"path": "' + "p" * int(rng.integers(1, 300)) + '"}',
                reasoning=bool(rng.random() < 0.3),
            )  # fmt: skip
            put(turn, t)
            index = put(result, t)
            if rng.random() < 0.5 and t + 3 < requests:
                facts.append(
                    KeyFact(text.splitlines()[len(text.splitlines()) // 2], "code", (index,))
                )
                demands.append(Demand(t + 3, (len(facts) - 1,), "path", final=True))
        if rng.random() < 0.4:
            put(
                text_segment(
                    f"d{t}", Role.USER, Kind.DOCUMENT, words(int(rng.integers(20, 300)), 77 * t),
                    source=Source.RETRIEVED, trust=Trust.UNTRUSTED,
                ),
                t,
            )  # fmt: skip
        if rng.random() < 0.3:
            put(
                text_segment(
                    f"u{t}", Role.USER, Kind.TEXT, "Go on. " + words(30, 99 * t),
                    source=Source.USER, trust=Trust.USER,
                ),
                t,
            )  # fmt: skip
    return Task(
        f"mixed/{seed}", "tiny", f"mixed/{seed}", "Collect what matters.", tuple(segments),
        tuple(arrivals), requests, (20,) * requests, tuple(facts), tuple(demands),
    )  # fmt: skip


def goal_segment(text: str = "Find the code.") -> Segment:
    """The user's request that a task begins with."""
    return text_segment(
        "s0", Role.USER, Kind.TEXT, text, source=Source.USER, trust=Trust.USER, pinned=True
    )


def user_segment(segment_id: str, text: str) -> Segment:
    """A later text of the user."""
    return text_segment(
        segment_id, Role.USER, Kind.TEXT, text, source=Source.USER, trust=Trust.USER
    )


def document_segment(segment_id: str, text: str) -> Segment:
    """A retrieved document."""
    return text_segment(
        segment_id, Role.USER, Kind.DOCUMENT, text, source=Source.RETRIEVED, trust=Trust.UNTRUSTED
    )


def stream_task(
    segments: Sequence[Segment],
    arrivals: Sequence[int],
    requests: int,
    *,
    facts: Sequence[KeyFact] = (),
    demands: Sequence[Demand] = (),
    output_tokens: int = 0,
    prefix_tokens: int = 0,
    cold: tuple[int, ...] = (),
    success: str = "answer",
) -> Task:
    """A task of given segments; its id is "stream"."""
    return Task(
        "stream", "tiny", "stream", "Find the code.", tuple(segments), tuple(arrivals), requests,
        (output_tokens,) * requests, tuple(facts), tuple(demands), prefix_tokens=prefix_tokens,
        cold_requests=cold, success=success,
    )  # fmt: skip


def prepared(
    task: Task, config: SimulatorConfig = NO_LIMIT, summarizer: Summarizer | None = None
) -> PreparedTask:
    """A task ready to play, with estimated tokens."""
    tokenizer = EstimateTokenizer()
    summarizer = summarizer or CachedSummarizer(StructureSummarizer(tokenizer))
    return PreparedTask(task, config, tokenizer, summarizer)


def episode_at(
    task: Task,
    request: int = 0,
    config: SimulatorConfig = NO_LIMIT,
    *,
    noise_seed: int = 0,
    summarizer: Summarizer | None = None,
) -> Episode:
    """An episode that has sent so many requests without an edit."""
    episode = Episode(prepared(task, config, summarizer), noise_seed)
    for _ in range(request):
        episode.send()
    return episode


def engine_of(
    *tasks: Task, config: SimulatorConfig = NO_LIMIT, slots: int = 48, archived: int = 8
) -> Engine:
    """An engine of one row that has begun the first of some tasks."""
    engine = Engine(1, FixedSource(*tasks), config, context_slots=slots, archive_slots=archived)
    engine.begin(0, tasks[0].id, 0)
    engine.observe([0])
    return engine


def slot_segment(engine: Engine, action: Action) -> int:
    """The index of the segment in an action's slot; -1 where there is none."""
    slots = engine.encoder.archive_index if action.archived else engine.encoder.slot_index
    return int(slots[0, action.slot])


def edit_of(engine: Engine, number: int) -> Edit:
    """The edit that an action asks for in the only row's present state."""
    action = engine.codec.decode(number)
    return to_edit(engine.episodes[0].context, action, slot_segment(engine, action))


def legal_by_op(engine: Engine) -> dict[Op, list[int]]:
    """The legal actions of the only row, keep excluded, by operation."""
    legal = np.nonzero(engine.encoder.action_mask[0])[0][1:]
    found: dict[Op, list[int]] = {}
    for number in legal:
        found.setdefault(engine.codec.decode(int(number)).op, []).append(int(number))
    return found


def random_legal(engine: Engine, rng: np.random.Generator, keep_share: float = 0.15) -> int:
    """A legal action, every operation equally likely."""
    by_op = legal_by_op(engine)
    if not by_op or rng.random() < keep_share:
        return 0
    op = list(by_op)[int(rng.integers(len(by_op)))]
    return by_op[op][int(rng.integers(len(by_op[op])))]
