"""Engines that evaluations play on: made anew from their description, of the size it says."""

from __future__ import annotations

import pickle

import pytest

from contextpilot.edits.codec import ActionCodec
from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.simulator.config import SimulatorConfig


@pytest.mark.parametrize(
    ("slots", "context", "archive"),
    [({}, 128, 32), ({"context_slots": 48, "archive_slots": 16}, 48, 16)],
)
def test_the_engine_has_the_slots_of_its_description(
    slots: dict[str, int], context: int, archive: int
) -> None:
    spec = EngineSpec("tools", SimulatorConfig(), 8, **slots)
    engine = pickle.loads(pickle.dumps(spec))(2)
    for row, task_id in enumerate(spec.tasks().ids("train")[:2]):
        engine.begin(row, task_id, 0)
    engine.observe([0, 1])
    arrays = engine.arrays()
    assert arrays["segment_mask"].shape == (2, context)
    assert arrays["archive_mask"].shape == (2, archive)
    assert arrays["action_mask"].shape == (2, ActionCodec(context, archive).size)
    assert engine.codec.size == ActionCodec(context, archive).size
