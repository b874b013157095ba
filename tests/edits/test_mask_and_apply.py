"""The mask and `apply_edit` are one judgement: what it allows works, what it forbids raises."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import engines, examples, played, seeds
from tiny_tasks import (
    chain_task,
    edit_of,
    engine_of,
    episode_at,
    exchange,
    goal_segment,
    mixed_task,
    stream_task,
    words,
)

from contextpilot.core.edit import (
    Drop,
    Expire,
    Fold,
    Keep,
    Op,
    Outcome,
    Placement,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.invariants import legal_among
from contextpilot.core.segment import Form
from contextpilot.edits.apply import apply_edit
from contextpilot.errors import IllegalEditError
from contextpilot_envs.simulator.config import SimulatorConfig


@given(engines(), seeds)
@examples(14)
def test_masked_out_actions_raise_and_change_nothing(engine, seed):
    for rng in played(engine, seed, 25):
        episode, mask = engine.episodes[0], engine.encoder.action_mask[0]
        before, records = episode.context.snapshot(), len(episode.log)
        out = np.nonzero(mask == 0)[0]
        for number in rng.choice(out, min(len(out), 120), replace=False):
            with pytest.raises(IllegalEditError):
                apply_edit(
                    episode.context, edit_of(engine, int(number)), episode.services, episode.log
                )
        assert episode.context.snapshot() == before
        assert len(episode.log) == records


@given(engines(), seeds)
@examples(14)
def test_masked_in_actions_apply(engine, seed):
    for rng in played(engine, seed, 25):
        if engine.episodes[0].ended:
            break
        allowed = np.nonzero(engine.encoder.action_mask[0])[0]
        for number in rng.choice(allowed, min(len(allowed), 6), replace=False):
            twin = engine.episodes[0].fork()
            edit = edit_of(engine, int(number))
            record = apply_edit(twin.context, edit, twin.services, twin.log)
            assert record.op == engine.codec.decode(int(number)).op
            if record.outcome == Outcome.APPLIED and record.op != Op.KEEP:
                assert record.changes


@given(st.integers(0, 200), seeds, st.sampled_from([0.35, 0.45, 0.6]))
@examples(12)
def test_no_reload_overflows_the_budget(task, seed, share):
    config = SimulatorConfig(budget_fraction=share, compression_threshold=1.0)
    engine = engine_of(mixed_task(task, 12), config=config, slots=24, archived=12)
    for rng in played(engine, seed, 60, 0.3):
        episode = engine.episodes[0]
        limit = episode.context.budget.input_limit
        for number in np.flatnonzero(engine.encoder.action_mask[0]):
            if engine.codec.decode(int(number)).op == Op.RELOAD:
                twin = episode.fork()
                apply_edit(twin.context, edit_of(engine, int(number)), twin.services, twin.log)
                assert twin.context.used_tokens <= limit
        for placement in Placement:
            rule = "reload_in_place" if placement == Placement.IN_PLACE else "reload_at_end"
            legal = legal_among(rule, episode.context, range(len(episode.context.entries)))
            some = rng.permutation(legal)[: int(rng.integers(2, 5))].tolist()
            if len(some) > 1:
                twin = episode.fork()
                with suppress(IllegalEditError):
                    apply_edit(
                        twin.context, Reload(tuple(some), placement), twin.services, twin.log
                    )
                assert twin.context.used_tokens <= limit


@pytest.mark.parametrize("placement", Placement)
@pytest.mark.parametrize(("slack", "fits"), [(0, True), (-1, False)])
def test_several_reloads_must_fit_together(placement, slack, fits):
    episode = episode_at(chain_task(10), 4)
    episode.edit(Drop((2, 4)))
    for _ in range(2):
        episode.send()
    context = episode.context
    returning = (1, 2, 3, 4) if placement == Placement.IN_PLACE else (2, 4)
    tokens = sum(context.entries[i].full_tokens for i in returning)
    limit = context.used_tokens + tokens + slack
    object.__setattr__(context.budget, "max_context_tokens", limit)
    if fits:
        episode.edit(Reload((2, 4), placement))
        assert context.used_tokens == limit
        return
    with pytest.raises(IllegalEditError, match=f"Received {tokens} tokens for {tokens - 1}"):
        episode.edit(Reload((2, 4), placement))
    episode.edit(Reload((2,), placement))


def two_marked() -> tuple:
    """Exchanges 0 and 1 are read, 1 is marked; exchange 2 is unread."""
    segments, arrivals = [goal_segment()], [0]
    for n in range(4):
        segments += exchange(n, words(120, 1000 * n))
        arrivals += [n + 1, n + 1]
    engine = engine_of(stream_task(segments, arrivals, 6), slots=16)
    for _ in range(3):
        engine.step([0], [0])
    engine.step([engine.codec.encode(Op.EXPIRE, "0", 4)], [0])
    return engine, engine.episodes[0].context


@pytest.mark.parametrize(("op", "preset"), [(Op.FOLD, "flush"), (Op.DROP, "flush")])
def test_a_flush_from_an_unmarked_slot_is_forbidden_though_one_is_due_behind_it(op, preset):
    engine, context = two_marked()
    number = engine.codec.encode(op, preset, 2)
    assert not engine.encoder.action_mask[0, number]
    with pytest.raises(IllegalEditError) as raised:
        apply_edit(
            context, edit_of(engine, number), engine.episodes[0].services, engine.episodes[0].log
        )
    assert raised.value.invariant == "due"
    assert engine.encoder.action_mask[0, engine.codec.encode(op, preset, 4)]


def test_a_summary_through_an_unread_slot_is_forbidden_though_earlier_ones_could_go():
    engine, context = two_marked()
    number = engine.codec.encode(Op.SUMMARIZE, "through", 6)
    assert not engine.encoder.action_mask[0, number]
    with pytest.raises(IllegalEditError, match="violates `read`"):
        apply_edit(
            context, edit_of(engine, number), engine.episodes[0].services, engine.episodes[0].log
        )
    assert edit_of(engine, engine.codec.encode(Op.SUMMARIZE, "through", 4)).targets == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("edit", "invariant", "message"),
    [
        (Fold((2,), Form.SUMMARY), "form", r"Form\.STUB or Form\.OUTLINE"),
        (Expire((2,), -1), "requests", r"at least 0\. Received -1"),
        (Summarize((2,), 0), "max_tokens", r"positive\. Received 0"),
        (Summarize((2, 4), 90), "targets", r"set `run=True` for several\. Received 2"),
        (Fold(()), "targets", r"at least one target"),
        (Summarize((), 90, run=True), "targets", r"at least one target"),
        (Drop((2, 2)), "targets", r"targets a segment twice"),
        (Reload((99,)), "targets", r"segment index 99, but the context has 9 segments"),
        (Fold((-1,)), "targets", r"segment index -1"),
        (Fold((0,)), "not_pinned", r"`fold` of segment s0 is not legal now: .*`not_pinned`"),
        (Fold((2, 6)), "read", r"segment r2"),
        (Reorder((2,)), "standalone", r"segment r0"),
    ],
)
def test_illegal_edits_name_what_is_wrong(edit, invariant, message):
    engine, context = two_marked()
    before = context.snapshot()
    with pytest.raises(IllegalEditError, match=message) as raised:
        apply_edit(context, edit, engine.episodes[0].services, engine.episodes[0].log)
    assert raised.value.invariant == invariant
    assert context.snapshot() == before


def test_keep_is_always_legal_and_changes_nothing():
    engine, context = two_marked()
    before, episode = context.snapshot(), engine.episodes[0]
    record = apply_edit(context, Keep(), episode.services, episode.log, "nothing to do")
    assert context.snapshot() == before
    assert (record.op, record.reason, record.changes) == (Op.KEEP, "nothing to do", ())
