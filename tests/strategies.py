"""Hypothesis strategies, and random episodes to hold properties against.

Examples are derived from the test itself, so that a failure is one everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tiny_tasks import engine_of, mixed_task, random_legal

from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig

seeds = st.integers(0, 2**32 - 1)


def examples(count: int) -> settings:
    """How many examples a property is tried on; none is timed."""
    return settings(
        max_examples=count, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@st.composite
def configs(draw: st.DrawFn) -> SimulatorConfig:
    """Windows from tight to none, every price table and notice preset."""
    return SimulatorConfig(
        budget_fraction=draw(st.sampled_from([None, 0.4, 0.6, 0.9])),
        compression_threshold=draw(st.sampled_from([0.3, 0.8, 1.0])),
        notice=draw(st.sampled_from(["perfect", "good", "poor"])),
        prices=draw(st.sampled_from(["default", "openai", "uncached", "input_only"])),
        max_edits=draw(st.sampled_from([3, 16])),
    )


@st.composite
def engines(draw: st.DrawFn, requests: int = 9, slots: int = 24, archived: int = 6) -> Engine:
    """An engine at the beginning of a task with every kind of segment."""
    task = mixed_task(draw(st.integers(0, 200)), requests)
    return engine_of(task, config=draw(configs()), slots=slots, archived=archived)


def played(
    engine: Engine, seed: int, steps: int = 60, keep_share: float = 0.15
) -> Iterator[np.random.Generator]:
    """Plays random legal actions, and yields before each of them and once after the last."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        if engine.episodes[0].ended:
            break
        yield rng
        engine.step([random_legal(engine, rng, keep_share)], [0])
    yield rng
