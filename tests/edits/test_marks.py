"""Marks are free and invisible to the agent; what is marked leaves together."""

import pytest
from tiny_tasks import chain_task, edit_of, engine_of, episode_at

from contextpilot.core.edit import Drop, Expire, Fold, Op
from contextpilot.core.segment import Form
from contextpilot.edits.settle import settle_marks
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode

RESULTS = (2, 4, 6, 8, 10)


def marked(*indices: int, requests: int = 0, at: int = 6, config=None) -> Episode:
    episode = episode_at(chain_task(12), at, *([config] if config else []))
    for index in indices:
        episode.edit(Expire((index,), requests))
    return episode


def folded(episode: Episode) -> list[int]:
    return [i for i in RESULTS if episode.context.form(i) == Form.STUB]


def settle(episode: Episode):
    return settle_marks(episode.context, episode.services, episode.log)


def test_a_mark_changes_nothing_that_is_sent():
    episode = episode_at(chain_task(12), 6)
    context = episode.context
    before = (context.total, context.break_at, [context.text(i) for i in context.visible()])
    episode.edit(Expire((4,), 0))
    assert before == (
        context.total, context.break_at, [context.text(i) for i in context.visible()]
    )  # fmt: skip


def test_marked_segments_stay_while_nothing_breaks_the_prefix():
    episode = marked(2, 4)
    assert settle(episode) is None
    for _ in range(3):
        episode.send()
    assert folded(episode) == []


def test_they_leave_behind_a_break_that_another_edit_made():
    episode = marked(2, 6, 8)
    episode.edit(Drop((4,)))
    record = settle(episode)
    assert folded(episode) == [6, 8]
    assert (record.reason, record.targets) == ("expired: prefix already broken", ("r2", "r3"))
    assert episode.context.columns.mark[2] >= 0  # in front of the break: it waits
    assert record.break_position == 3


def test_on_pressure_all_that_are_due_leave():
    total = episode_at(chain_task(12), 6).context.total
    window = SimulatorConfig(max_context_tokens=2 * total, compression_threshold=0.45)
    episode = marked(2, 6, 8, config=window)
    record = settle(episode)
    assert folded(episode) == [2, 6, 8]
    assert record.reason == "expired: pressure"


def test_on_a_cold_cache_all_that_are_due_leave():
    episode = marked(4, 8)
    episode.context.cold = True
    assert settle(episode).reason == "expired: cold cache"
    assert folded(episode) == [4, 8]


def test_what_is_not_due_stays_whatever_happens():
    episode = marked(2, requests=2)
    episode.edit(Expire((6,), 0))
    episode.context.cold = True
    settle(episode)
    assert folded(episode) == [6]


def test_a_mark_is_the_earliest_time_not_a_deadline():
    episode = marked(6, requests=2)
    for _ in range(4):
        episode.send()
        assert folded(episode) == []
    episode.edit(Fold((2,)))
    episode.send()
    assert folded(episode) == [2, 6]


def test_sending_settles_the_marks():
    episode = marked(6, 8)
    episode.edit(Fold((4,)))
    episode.send()
    assert folded(episode) == [4, 6, 8]
    assert [record.reason for record in episode.log][-1] == "expired: prefix already broken"


def test_a_fold_takes_the_mark_off():
    episode = marked(4)
    episode.edit(Fold((4,)))
    assert episode.context.columns.mark[4] == -1


@pytest.mark.parametrize(("op", "form"), [(Op.FOLD, Form.STUB), (Op.DROP, Form.ABSENT)])
def test_a_flush_takes_all_that_are_due_at_or_behind_its_slot_and_breaks_once(op, form):
    engine = engine_of(chain_task(12), slots=32)
    for _ in range(6):
        engine.step([0], [0])
    episode = engine.episodes[0]
    for slot, preset in ((2, "0"), (4, "0"), (8, "0"), (10, "8")):
        engine.step([engine.codec.encode(Op.EXPIRE, preset, slot)], [0])
    flush = engine.codec.encode(op, "flush", 4)
    assert edit_of(engine, flush).targets == (4, 8)
    engine.step([flush], [0])
    assert [i for i in RESULTS if episode.context.form(i) == form] == [4, 8]
    assert episode.context.break_at == (4 if op == Op.FOLD else 3)
    assert episode.log[4].op == op
    assert len(episode.log) == 5
