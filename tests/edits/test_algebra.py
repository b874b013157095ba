"""What holds after any sequence of edits: totals, pins, exchanges, replay, undo."""

import numpy as np
import pytest
from hypothesis import given
from strategies import engines, examples, played, seeds
from tiny_tasks import edit_of, engine_of, mixed_task

from contextpilot.core.columns import COLUMN_DEFAULTS, NEVER
from contextpilot.core.context import Context
from contextpilot.core.edit import EditRecord, Op, Outcome
from contextpilot.core.segment import Form, Kind
from contextpilot.edits.undo import replay, undo
from contextpilot.errors import IllegalEditError
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode


def everything(context: Context) -> dict[str, object]:
    """All that is known of a context, text included, but for what was sent when."""
    count = len(context.entries)
    columns = {name: getattr(context.columns, name)[:count].tolist() for name in COLUMN_DEFAULTS}
    for i in range(count):
        if columns["rank"][i] < 0:  # not arrived: whatever an earlier episode left there
            for name in columns.keys() - {"order"}:
                columns[name][i] = None
    columns["order"] = columns["order"][: context.length]
    return {
        **columns,
        "total": context.total,
        "texts": [(i, context.text(i)) for i in context.visible()],
        "made": [entry.segment for entry in context.entries[context.native :]],
        "request": context.request,
    }


def replayed(episode: Episode) -> Context:
    fresh = Episode(episode.prepared)
    arriving, last = episode.prepared.arriving, episode.prepared.task.requests

    def advance(context: Context, request: int) -> None:
        while context.request < request:
            context.send()
            for index in arriving[context.request] if context.request < last else ():
                context.arrive(index)

    replay(fresh.context, episode.log, advance, episode.services)
    advance(fresh.context, episode.context.request)
    return fresh.context


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    """Episodes of random edits, to be read only."""
    found = []
    for seed in range(12):
        config = SimulatorConfig(
            budget_fraction=(None, 0.5, 0.7)[seed % 3], max_edits=(16, 4)[seed % 2]
        )
        engine = engine_of(mixed_task(seed, 9), config=config, slots=24, archived=6)
        for _ in played(engine, seed, 80, 0.08):
            pass
        found.append(engine.episodes[0])
    assert min(len(episode.log) for episode in found) >= 20
    assert sum(len(episode.log) for episode in found) > 400
    return found


def test_replaying_the_log_gives_the_context(episodes):
    for episode in episodes:
        assert everything(replayed(episode)) == everything(episode.context)


@given(engines(), seeds)
@examples(10)
def test_replaying_a_log_with_undos_gives_the_context(engine, seed):
    for rng in played(engine, seed):
        episode = engine.episodes[0]
        live = episode.log.live_since(-1)
        if live and not episode.ended and rng.random() < 0.3:
            undo(episode.context, episode.log, live[int(rng.integers(len(live)))])
            engine.observe([0])
    assert any(record.undoes >= 0 for record in engine.episodes[0].log)
    assert everything(replayed(engine.episodes[0])) == everything(engine.episodes[0].context)


@given(engines(), seeds)
@examples(10)
def test_totals_pins_and_exchanges(engine, seed):
    for _ in played(engine, seed):
        context = engine.episodes[0].context
        c, shown = context.columns, set(context.visible())
        order = c.order[: context.length].tolist()
        assert [c.rank[i] for i in order] == list(range(context.length))
        assert context.total == sum(context.entries[i].tokens(c.form[i]) for i in shown)
        assert context.latest_user in shown
        for i in order:
            assert c.size[i] == context.entries[i].tokens(c.form[i])
            if c.pinned[i]:
                assert c.form[i] == Form.FULL
            assert {j in shown for j in context.group(i)} == {i in shown}
            assert c.mark[i] < 0 or c.form[i] == Form.FULL


@given(engines(), seeds)
@examples(10)
def test_an_edit_touches_nothing_but_what_it_records(engine, seed):
    for rng in played(engine, seed, 30):
        episode = engine.episodes[0]
        mask = np.flatnonzero(engine.encoder.action_mask[0])
        if episode.ended or len(mask) < 2:
            continue
        twin = episode.fork()
        before = everything(twin.context)
        record = _apply(engine, twin, int(rng.choice(mask[1:])))
        after = everything(twin.context)
        touched = {change.index for change in record.changes}
        for name in ("form", "size", "mark", "edited", "reloaded", "covered", "reloads"):
            old, new = before[name], after[name]
            assert {i for i, value in enumerate(old) if value != new[i]} <= touched, name
        if record.op != Op.REORDER:
            natives = [i for i in after["order"] if i < len(before["order"])]
            assert natives == [i for i in before["order"] if i < len(before["order"])]
        assert record.before_tokens == before["total"]
        assert record.after_tokens == after["total"]


def _apply(engine: Engine, episode: Episode, number: int) -> EditRecord:
    return episode.edit(edit_of(engine, number), "why")


@given(engines(), seeds)
@examples(12)
def test_undoing_everything_in_any_order_gives_the_raw_context(engine, seed):
    for _ in played(engine, seed):
        pass
    episode, rng = engine.episodes[0], np.random.default_rng(seed)
    context, log = episode.context, episode.log
    undone: list[int] = []
    expected = {record.id for record in log.live_since(-1)}
    while live := log.live_since(-1):
        record = live[int(rng.integers(len(live)))]
        ids = undo(context, log, record)
        assert ids[-1] == record.id
        assert list(ids) == sorted(ids, reverse=True)
        undone += ids
    assert len(undone) == len(set(undone))
    assert set(undone) == expected
    c = context.columns
    natives = [i for i in c.order[: context.length] if i < context.native]
    assert natives == list(range(len(natives)))
    assert list(context.visible()) == natives
    assert context.total == sum(context.entries[i].full_tokens for i in natives)
    for i in natives:
        state = (c.form[i], c.mark[i], c.edited[i], c.reloaded[i], c.reloads[i], c.covered[i])
        assert state == (Form.FULL, -1, NEVER, NEVER, 0, -1)


@given(engines(), seeds)
@examples(12)
def test_undo_takes_back_one_edit_exactly(engine, seed):
    for rng in played(engine, seed, 30):
        episode = engine.episodes[0]
        mask = np.flatnonzero(engine.encoder.action_mask[0])
        if episode.ended or len(mask) < 2:
            continue
        twin = episode.fork()
        before = everything(twin.context)
        record = _apply(engine, twin, int(rng.choice(mask[1:])))
        if record.outcome != Outcome.APPLIED:
            assert everything(twin.context) == before
            continue
        assert undo(twin.context, twin.log, record) == (record.id,)
        after = everything(twin.context)
        for name in ("form", "size", "mark", "edited", "reloaded", "covered", "reloads"):
            assert after[name][: len(before[name])] == before[name], name
        made = set(range(len(before["form"]), len(after["form"])))
        assert [i for i in after["order"] if i not in made] == before["order"]
        assert (after["texts"], after["total"]) == (before["texts"], before["total"])
        with pytest.raises(IllegalEditError, match="not live"):
            undo(twin.context, twin.log, record)


def test_nothing_is_lost(episodes):
    for episode in episodes:
        context, archive = episode.context, episode.services.archive
        for i in context.columns.order[: context.length]:
            if context.columns.form[i] != Form.FULL:
                segment = context.entries[i].segment
                assert archive.get(episode.services.session, segment.id) == segment


def test_a_summary_is_smaller_than_what_it_replaces(episodes):
    made = [r for e in episodes for r in e.log if r.op == Op.SUMMARIZE]
    assert {r.outcome for r in made} == {Outcome.APPLIED, Outcome.REJECTED_INFLATED}
    for record in made:
        assert record.summarizer_tokens[0] > 0
        if record.outcome == Outcome.APPLIED:
            assert record.after_tokens < record.before_tokens
            assert record.output
        else:
            assert record.after_tokens == record.before_tokens
            assert not record.changes


def test_a_summary_is_trusted_as_its_least_trusted_source(episodes):
    for context in (episode.context for episode in episodes):
        by_id = {entry.segment.id: entry.segment for entry in context.entries}
        for made in (entry.segment for entry in context.entries[context.native :]):
            sources = [by_id[name] for name in made.lineage]
            assert made.trust == min(source.trust for source in sources)
            assert made.kind == Kind.SUMMARY or len(sources) == 1
