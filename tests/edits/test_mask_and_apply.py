"""The mask and `apply_edit` are one judgement: what it allows works, what it forbids raises."""

import numpy as np
import pytest
from hypothesis import given
from strategies import engines, examples, played, seeds
from tiny_tasks import edit_of, engine_of, exchange, goal_segment, stream_task, words

from contextpilot.core.edit import (
    Drop,
    Expire,
    Fold,
    Keep,
    Op,
    Outcome,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.segment import Form
from contextpilot.edits.apply import apply_edit
from contextpilot.errors import IllegalEditError


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
