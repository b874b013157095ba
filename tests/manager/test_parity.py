"""What the environment and a session see and allow of the same wire messages, bit for bit.

The id of what an edit makes counts the segments: in the environment all of a task's, in a session
those that have come so far. Summaries and stubs name such ids. So one session is given room for the
whole conversation and plays everything; another one grows, and plays what makes no segments.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager.histories import Messages, history, manager, requests_of
from recordings import DATA, needs_data
from strategies import examples, seeds
from tiny_tasks import FixedSource, legal_by_op

from contextpilot.core.budget import TokenBudget
from contextpilot.core.edit import Op, Outcome
from contextpilot.manager.fallback import FallbackLimits
from contextpilot.messages.repair import repair
from contextpilot.observations.observation import Observation
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.replay import replay_task
from contextpilot_envs.tasks.transcripts import Transcript, read_transcripts

THRESHOLD = 1e-6
"""Everything is over it, so that the session asks at every request, as the environment does."""


def engine_of(transcript: Transcript, window: int) -> Engine:
    """The environment at the beginning of a replay that demands and fetches nothing."""
    task = replace(replay_task(transcript), facts=(), demands=())
    config = SimulatorConfig(
        budget_fraction=None,
        max_context_tokens=window,
        compression_threshold=THRESHOLD,
        max_reloads=0,
    )
    engine = Engine(1, FixedSource(task), config, context_slots=48, archive_slots=8)
    engine.begin(0, task.id, 0)
    engine.observe([0])
    return engine


class Both:
    """A policy of the session that plays the environment beside it, and compares at each step."""

    name = "both"

    def __init__(self, engine: Engine, seed: int, keep_share: float, makes: bool) -> None:
        self.engine, self.rng = engine, np.random.default_rng(seed)
        self.keep_share, self.makes = keep_share, makes
        self.played, self.archived = Counter[Op](), 0

    def reset(self, seed: int) -> None:
        pass

    def __call__(self, observation: Observation) -> int:
        for name, array in self.engine.arrays().items():
            np.testing.assert_array_equal(array[0], observation.arrays[name], name, strict=True)
        self.archived = max(self.archived, int(observation.arrays["archive_mask"].sum()))
        action = self._choice()
        self.played[self.engine.codec.decode(action).op] += 1
        self.engine.step([action], [0])
        return action

    def _choice(self) -> int:
        log = self.engine.episodes[0].log
        if len(log) and log[len(log) - 1].outcome != Outcome.APPLIED:
            return 0  # asked for the same once more, a session would end the request
        by_op = legal_by_op(self.engine)
        if not self.makes:
            decode = self.engine.codec.decode
            legal = {
                op: [a for a in actions if decode(a).preset not in ("through", "at_end")]
                for op, actions in by_op.items()
            }
            by_op = {op: actions for op, actions in legal.items() if actions}
        if not by_op or self.rng.random() < self.keep_share:
            return 0
        op = list(by_op)[int(self.rng.integers(len(by_op)))]
        return by_op[op][int(self.rng.integers(len(by_op[op])))]


def check(
    transcript: Transcript, seed: int, window: int, keep_share: float = 0.25, makes: bool = True
) -> Both:
    engine = engine_of(transcript, window)
    both = Both(engine, seed, keep_share, makes)
    session = manager(
        transcript.format, both, TokenBudget(window, compression_threshold=THRESHOLD),
        limits=FallbackLimits(None), context_slots=48, archive_slots=8,
    ).session()  # fmt: skip
    if makes:
        entries = engine.episodes[0].context.entries
        session._desk.entries.restore([entry.segment.position for entry in entries])
    for number, host in enumerate(requests_of(list(transcript.messages))):
        if number == transcript.requests or engine.episodes[0].ended:
            break
        request = session.prepare(host)
        assert request.report.request == number
        assert session.failures == (), session.failures
    return both


def transcript_of(format: str, messages: Messages) -> Transcript:
    turns = sum(message["role"] == "assistant" for message in messages)
    return Transcript("made", format, tuple(messages), (None,) * turns, {"session": "a"}, "test")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("window", [10**6, 12_000], ids=["roomy", "tight"])
def test_sessions_see_what_the_environment_sees(format: str, window: int) -> None:
    played, archived = Counter[Op](), 0
    for seed in range(6):
        messages = history(format, seed, 14, reasoning=seed % 2 == 0)
        both = check(transcript_of(format, messages), seed, window)
        played += both.played
        archived = max(archived, both.archived)
    total = played.total()
    assert total >= 200
    assert all(played[op] >= 0.02 * total for op in Op if op != Op.REORDER), played
    assert archived >= 5


@examples(5)
@given(seeds, st.booleans())
def test_a_session_that_grows_sees_the_same(seed: int, reasoning: bool) -> None:
    messages = history("openai", seed, 14, reasoning)
    check(transcript_of("openai", messages), seed, 10**6, makes=False)


@needs_data
@pytest.mark.parametrize("folder", ["claude_code", "tau_bench", "swe_agent", "agent_sessions"])
def test_recorded_runs_are_seen_alike(folder: str) -> None:
    found = read_transcripts(DATA / folder).transcripts
    for transcript in sorted(found, key=lambda t: (t.requests < 8, t.requests))[:2]:
        valid = repair(transcript.format, transcript.messages).messages
        plain = replace(
            transcript, messages=tuple(valid), usage=(None,) * transcript.requests,
            metadata={"session": "a"},
        )  # fmt: skip
        check(plain, 0, 10**6, 0.5)
        check(plain, 0, 10**6, 0.5, makes=False)
