"""Random edits, and what must hold after each of them: the edit algebra under load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from contextpilot.core.context import Context
from contextpilot.core.edit import Op
from contextpilot.core.segment import Form
from contextpilot.edits.undo import replay, undo
from contextpilot.messages import openai
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.validate import problems
from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.episode import Episode

State = tuple[tuple[int, int, int, int, int, int], ...]


class BrokenInvariantError(AssertionError):
    """Something that must hold after every edit does not."""


@dataclass
class StressReport:
    """How many edits were made of each operation, and how many episodes had enough of them."""

    edits: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    shortest_episode_edits: int = 1 << 30
    undone: int = 0
    replayed: int = 0

    @property
    def total(self) -> int:
        """All edits but keep."""
        return sum(self.edits.values())

    def shares(self) -> dict[str, float]:
        """Returns each operation's share of the edits."""
        return {op: count / self.total for op, count in sorted(self.edits.items())}


def state_of(context: Context) -> State:
    """Returns what an edit can change and undo must bring back, in context order."""
    c = context.columns
    return tuple(
        (i, c.form[i], c.size[i], c.mark[i], c.edited[i], c.reloaded[i])
        for i in c.order[: context.length]
        if c.form[i] or i < context.native
    )


def check_context(episode: Episode) -> None:
    """Checks one context: totals, pins, whole exchanges, and a valid request.

    Raises:
        BrokenInvariantError: naming what does not hold.
    """
    context = episode.context
    c = context.columns
    shown = list(context.visible())
    if sum(c.size[i] for i in shown) != context.total:
        raise BrokenInvariantError("tokens do not add up")
    for i in c.order[: context.length]:
        if c.size[i] != context.entries[i].tokens(c.form[i]):
            raise BrokenInvariantError(f"segment {i} has the size of another form")
        if c.pinned[i] and c.form[i] != Form.FULL:
            raise BrokenInvariantError(f"pinned segment {i} is not shown whole")
        present = {bool(c.form[j]) for j in context.group(i) if c.rank[j] >= 0}
        if len(present) > 1:
            raise BrokenInvariantError(f"the exchange of segment {i} is split")
    found = problems("openai", render_openai(context))
    if found:
        raise BrokenInvariantError(f"the request is invalid: {found[0]}")


def render_openai(context: Context) -> list[dict[str, object]]:
    """Returns the request that a context stands for, as OpenAI chat messages."""
    rendered = [
        RenderedSegment(
            context.entries[i].segment,
            context.form(i),
            None if context.form(i) == Form.FULL else context.text(i),
        )
        for i in context.visible()
    ]
    return openai.render(rendered)


def check_archive(episode: Episode) -> None:
    """Checks that every original that is not shown whole is in the archive, unchanged."""
    context = episode.context
    for i in context.columns.order[: context.length]:
        segment = context.entries[i].segment
        if context.columns.form[i] != Form.FULL and not _was_undone(context, i):
            stored = episode.services.archive.get(episode.services.session, segment.id)
            if stored != segment:
                raise BrokenInvariantError(f"the archive changed segment {segment.id}")


def _was_undone(context: Context, index: int) -> bool:
    """A manager-made segment whose making was undone: it never had to be kept."""
    return index >= context.native and not context.columns.form[index]


def check_replay(episode: Episode) -> None:
    """Checks that replaying the log on a fresh context gives the same context."""
    prepared = episode.prepared
    fresh = Episode(prepared, episode.noise_seed)
    context = fresh.context

    def advance(target: Context, request: int) -> None:
        while target.request < request:
            target.send()
            for index in prepared.arriving[target.request]:
                target.arrive(index)

    replay(context, episode.log, advance, episode.services)
    advance(context, min(episode.context.request, prepared.task.requests - 1))
    if state_of(context) != state_of(episode.context) or context.total != episode.context.total:
        raise BrokenInvariantError("replaying the log does not give the context")


def stress(
    engine: Engine,
    task_ids: Iterable[str],
    edits: int,
    seed: int,
    *,
    keep_share: float = 0.08,
    on_edits: Callable[[int], object] = lambda _count: None,
) -> StressReport:
    """Plays random legal edits until `edits` have been made, checking after each of them.

    Args:
        engine: an engine of one row.
        task_ids: played in turn, again and again.
        edits: how many edits to make, keep excluded.
        seed: of the choices.
        keep_share: probability of sending the request at each step.
        on_edits: called with the number of edits of each finished episode.

    Raises:
        BrokenInvariantError: at the first thing that does not hold.
    """
    rng, report = np.random.default_rng(seed), StressReport()
    ids = list(task_ids)
    while report.total < edits:
        engine.begin(0, ids[report.episodes % len(ids)], int(rng.integers(2**31)))
        engine.observe([0])
        made = _play(engine, rng, report, keep_share)
        check_archive(engine.episodes[0])
        check_replay(engine.episodes[0])
        report.replayed += 1
        report.episodes += 1
        report.shortest_episode_edits = min(report.shortest_episode_edits, made)
        on_edits(made)
    return report


def _play(engine: Engine, rng: np.random.Generator, report: StressReport, keep_share: float) -> int:
    episode, made = engine.episodes[0], 0
    while not episode.ended:
        action = 0 if rng.random() < keep_share else _choose(engine, rng, report)
        op = engine.codec.decode(action).op
        before = state_of(episode.context)
        sends = action == 0 or engine.states[0].step + 1 >= engine.simulator.max_edits
        engine.step([action], [0])
        check_context(episode)
        if op == Op.KEEP:
            continue
        report.edits[op.name.lower()] += 1
        made += 1
        if not sends and rng.random() < 0.25:
            _undo(engine, episode, before, stay=bool(rng.random() < 0.5))
            report.undone += 1
    return made


def _choose(engine: Engine, rng: np.random.Generator, report: StressReport) -> int:
    """Returns a legal action, of the operation that has been made least so far."""
    legal = np.nonzero(engine.encoder.action_mask[0])[0][1:]
    if not len(legal):
        return 0
    ops = np.array([engine.codec.decode(int(a)).op for a in legal])
    present = np.unique(ops)
    counts = [report.edits[Op(int(op)).name.lower()] for op in present]
    op = present[int(np.argmin(counts))] if rng.random() < 0.6 else rng.choice(present)
    return int(rng.choice(legal[ops == op]))


def _undo(engine: Engine, episode: Episode, before: State, *, stay: bool) -> None:
    """Undoes the last edit and compares; goes on from there, or returns to where it was."""
    log = episode.log
    record = log[len(log) - 1]
    if not log.is_live(record):
        return
    snapshot, after = episode.snapshot(), state_of(episode.context)
    undo(episode.context, log, record)
    if state_of(episode.context) != before:
        raise BrokenInvariantError(
            f"undoing {record.op.name.lower()} does not bring the state back"
        )
    if not stay:
        episode.restore(snapshot)
        if state_of(episode.context) != after:
            raise BrokenInvariantError("restoring a snapshot does not bring the state back")
    engine.observe([0])
