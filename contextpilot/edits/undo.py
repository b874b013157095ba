"""Undo and replay: the log is enough to go back, and to get here again."""

from __future__ import annotations

from collections.abc import Callable

from contextpilot.core.context import Context
from contextpilot.core.edit import Change, EditRecord, Op
from contextpilot.core.edit_log import EditLog
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Form
from contextpilot.edits.effect import count_reloads
from contextpilot.edits.services import Services
from contextpilot.errors import IllegalEditError


def undo(context: Context, log: EditLog, record: EditRecord) -> tuple[int, ...]:
    """Takes an edit back, exactly; appends one record per edit that was taken back.

    Later edits that touched the same segments, or what this edit made, are undone first.

    Returns:
        The ids of the records undone, the latest first; the last one is `record.id`.

    Raises:
        IllegalEditError: when the record is not live (rejected, empty, or undone before).
    """
    if not log.is_live(record):
        raise IllegalEditError(
            f"record {record.id} cannot be undone: it is not live "
            f"(op {record.op.name.lower()}, outcome {record.outcome.value}).",
            "live",
        )
    undone = []
    for later in reversed(_with_dependants(log, record)):
        before = context.total
        for change in reversed(later.changes):
            _revert(context, change)
        if later.op == Op.RELOAD:
            count_reloads(context, later.rows, -1)
        log.append(
            EditRecord(
                len(log),
                context.request,
                later.op,
                later.targets,
                {},
                "undo",
                before,
                context.total,
                undoes=later.id,
            )
        )
        undone.append(later.id)
    return tuple(undone)


def _with_dependants(log: EditLog, record: EditRecord) -> list[EditRecord]:
    """Returns the record and the live ones after it that build on what it changed."""
    touched = {row[0] for row in record.rows}
    moves = record.op == Op.REORDER
    chain = [record]
    for later in log.live_since(record.id):
        indices = {row[0] for row in later.rows}
        if indices & touched or (moves and later.op == Op.REORDER):
            touched |= indices
            chain.append(later)
    return chain


def _revert(context: Context, change: Change) -> None:
    c, index = context.columns, change.index
    if change.after is not None and change.form[0] != Form.ABSENT:  # a move, not a creation
        behind = change.after[0]
        target = c.rank[behind] + 1 if behind >= 0 else 0
        if c.rank[index] < target:
            target -= 1
        context.move(index, target)
    if change.form[0] != c.form[index]:
        context.set_form(index, change.form[0])
    if change.covered is not None:
        c.covered[index] = change.covered[0]
    c.mark[index], c.edited[index] = change.mark[0], change.edited[0]
    c.reloaded[index] = change.reloaded[0]


def replay(
    context: Context,
    log: EditLog,
    advance: Callable[[Context, int], None],
    services: Services,
) -> None:
    """Repeats a log on a fresh context, without asking a summarizer again.

    Args:
        context: a context of the same conversation before its first arrival.
        log: the log to repeat.
        advance: brings the context to a request number: sends and arrivals of the host.
        services: its archive has the summaries that the log's edits made.
    """
    for record in log:
        advance(context, record.request)
        if record.undoes >= 0:
            undone = log[record.undoes]
            for change in reversed(undone.changes):
                _revert(context, change)
            if undone.op == Op.RELOAD:
                count_reloads(context, undone.rows, -1)
            continue
        if record.op == Op.SUMMARIZE and record.rows and "run" not in record.params:
            text = services.archive.get(services.session, record.output).text
            context.entries[record.rows[0][0]].set_summary(text, services.shown_tokens(text))
        for change in record.changes:
            _repeat(context, change, record, services)
        if record.op == Op.RELOAD:
            count_reloads(context, record.rows, 1)


def _repeat(context: Context, change: Change, record: EditRecord, services: Services) -> None:
    """Makes one change again."""
    c, index = context.columns, change.index
    if change.after is not None:
        behind = change.after[1]
        position = c.rank[behind] + 1 if behind >= 0 else 0
        if change.form[0] == Form.ABSENT:
            context.add(_made(context, record, services), position)
            return
        if c.rank[index] < position:
            position -= 1
        context.move(index, position)
    if c.form[index] != change.form[1]:
        context.set_form(index, change.form[1])
    if change.covered is not None:
        c.covered[index] = change.covered[1]
    c.mark[index], c.edited[index] = change.mark[1], change.edited[1]
    c.reloaded[index] = change.reloaded[1]


def _made(context: Context, record: EditRecord, services: Services) -> Interned:
    """Returns the segment that an edit made, as it was."""
    if record.op == Op.RELOAD:
        ids = [entry.id for entry in context.entries]
        origin = ids.index(record.targets[0])
        return services.interned_copy(context.entries[origin], origin, len(ids))
    summary = services.archive.get(services.session, record.output)
    return services.interned(summary, leader=len(context.entries))
