"""Incremental encoding is the same as encoding everything anew, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_tasks import FixedSource, mixed_task

from contextpilot.core.edit import Op
from contextpilot.core.invariants import FACT_COLUMNS, LEGAL, Facts, legal_facts
from contextpilot.observations.encoder import ObservationEncoder
from contextpilot.observations.live import Rules
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig

ARRAYS = (
    "segments", "segment_tokens", "segment_mask", "archive", "archive_tokens", "archive_mask",
    "goal_tokens", "state", "action_mask", "slot_index", "archive_index",
)  # fmt: skip


def make_engine(rows: int, slots: int = 128, archived: int = 32) -> Engine:
    source = FixedSource(*[mixed_task(seed) for seed in range(rows)])
    config = SimulatorConfig(budget_fraction=0.8, max_edits=12)
    engine = Engine(rows, source, config, context_slots=slots, archive_slots=archived)
    for row, task_id in enumerate(source.ids("")):
        engine.begin(row, task_id, row)
    engine.observe(range(rows))
    return engine


def fresh_encoder(engine: Engine, *, same_slots: bool) -> ObservationEncoder:
    """What an encoder says that has seen nothing of how the contexts came about."""
    config = engine.simulator
    encoder = ObservationEncoder(
        engine.batch, engine.codec, max_edits=config.max_edits, prices=config.price_table,
        reload_output_tokens=config.reload_output_tokens,
    )  # fmt: skip
    for row, episode in enumerate(engine.episodes):
        encoder.start(row, episode.prepared.statics, episode.prepared.task.goal)
        if same_slots:
            slots = engine.encoder.slot_index[row], engine.encoder.archive_index[row]
            encoder.reassign(row, episode.context, *slots)
        else:
            encoder.refresh(row, episode.context)
    encoder.finish(
        engine.contexts, [e.log for e in engine.episodes], [s.step for s in engine.states]
    )  # fmt: skip
    return encoder


def assert_same(left: ObservationEncoder, right: ObservationEncoder) -> None:
    for name in ARRAYS:
        ours, theirs = getattr(left, name), getattr(right, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes(), (name, np.argwhere(ours != theirs)[:5].tolist())


def choose(engine: Engine, row: int, rng: np.random.Generator) -> int:
    """A legal action; every operation that has one is equally likely."""
    legal = np.flatnonzero(engine.encoder.action_mask[row])
    ops = np.array([engine.codec.decode(int(action)).op for action in legal])
    return int(rng.choice(legal[ops == rng.choice(np.unique(ops))]))


@pytest.mark.parametrize(("rows", "slots", "archived"), [(1, 128, 32), (3, 128, 32), (2, 9, 3)])
def test_after_every_random_edit(rows: int, slots: int, archived: int) -> None:
    engine, rng = make_engine(rows, slots, archived), np.random.default_rng(rows)
    made: set[Op] = set()
    for _ in range(160):
        active = [row for row in range(rows) if not engine.episodes[row].ended]
        if not active:
            break
        actions = [choose(engine, row, rng) for row in range(rows)]
        made |= {engine.codec.decode(action).op for action in actions}
        engine.step(actions, active)
        assert_same(engine.encoder, fresh_encoder(engine, same_slots=True))
    assert made == set(Op)


def test_a_request_gives_the_slots_that_a_new_encoder_would_give() -> None:
    engine, rng = make_engine(2, 9, 4), np.random.default_rng(5)
    for turn in range(60):
        actions = [0 if turn % 4 == 3 else choose(engine, row, rng) for row in range(2)]
        active = [row for row in range(2) if not engine.episodes[row].ended]
        engine.step(actions, active)
        if turn % 4 == 3 and len(active) == 2:
            assert_same(engine.encoder, fresh_encoder(engine, same_slots=False))


def test_a_restored_branch_is_encoded_as_it_was() -> None:
    """Segments made on the abandoned branch had the same indices as those of the restored one."""
    engine, rng = make_engine(1), np.random.default_rng(2)
    for _ in range(25):
        engine.step([choose(engine, 0, rng)], [0])
    snapshot = engine.snapshot(0)
    before = {name: getattr(engine.encoder, name).copy() for name in ARRAYS}
    for _ in range(25):
        if not engine.episodes[0].ended:
            engine.step([choose(engine, 0, rng)], [0])
    engine.restore(0, snapshot)
    engine.observe()
    for name, array in before.items():
        assert getattr(engine.encoder, name).tobytes() == array.tobytes(), name
    for _ in range(10):
        if not engine.episodes[0].ended:
            engine.step([choose(engine, 0, rng)], [0])
            assert_same(engine.encoder, fresh_encoder(engine, same_slots=True))


def test_empty_slots_say_nothing() -> None:
    engine, rng = make_engine(2), np.random.default_rng(8)
    for _ in range(60):
        active = [row for row in range(2) if not engine.episodes[row].ended]
        engine.step([choose(engine, row, rng) for row in range(2)], active)
        encoder = engine.encoder
        for array in (encoder.segments, encoder.segment_tokens, encoder.segment_mask):
            assert not array[encoder.slot_index < 0].any()
        for array in (encoder.archive, encoder.archive_tokens, encoder.archive_mask):
            assert not array[encoder.archive_index < 0].any()


def test_rules_that_are_judged_together_are_the_rules() -> None:
    rng, n = np.random.default_rng(0), 4000
    small = {name: rng.integers(-1, 6, n).astype(np.int32) for name in FACT_COLUMNS}
    small["size"] = rng.integers(0, 300, n).astype(np.int32)
    small["full"] = rng.integers(0, 300, n).astype(np.int32)
    for name in ("pinned", "reasoning", "locked", "foldable", "sent", "settled"):
        small[name] = (rng.random(n) < 0.2).astype(np.int32)
    facts = Facts(
        **small, request=rng.integers(0, 9, n), overflows=rng.random(n) < 0.5,
        latest_user_rank=rng.integers(-1, 6, n), room=150,
    )  # fmt: skip
    together = Rules(list(LEGAL)).verdicts(facts)
    for name, verdict in zip(LEGAL, together, strict=True):
        assert verdict.tolist() == legal_facts(name, facts).tolist()
