"""`apply_edit`: the only way a context is edited, in the environment and in production."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextpilot.core.context import Context
from contextpilot.core.edit import (
    OP_OF,
    ChangeRow,
    Drop,
    Edit,
    EditRecord,
    Expire,
    Fold,
    Keep,
    Op,
    Outcome,
    Placement,
    Position,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.edit_log import EditLog
from contextpilot.core.interned import Interned
from contextpilot.core.segment import Form, Kind, Segment
from contextpilot.edits.check import check_edit
from contextpilot.edits.effect import Effect, count_reloads, created, rejected, shift
from contextpilot.edits.error_text import is_empty_text, is_error_text
from contextpilot.edits.made import summary_segment
from contextpilot.edits.services import Services
from contextpilot.tokenizers.count import MESSAGE_TOKENS

_logger = logging.getLogger(__name__)

# Plain integers: enumeration members are slow to compare and to store.
_ABSENT, _FULL = int(Form.ABSENT), int(Form.FULL)
_STUB_FORM, _SUMMARY_FORM = int(Form.STUB), int(Form.SUMMARY)
_SUMMARY_KIND = int(Kind.SUMMARY)
_IN_PLACE, _AT_END = Placement.IN_PLACE, Placement.AT_END


def apply_edit(
    context: Context, edit: Edit, services: Services, log: EditLog, reason: str = ""
) -> EditRecord:
    """Applies one edit, appends its record to the log and returns it.

    What leaves the context or loses its full form is in the archive before it does. A summary that
    fails, is empty or does not save tokens replaces nothing; its record says so.

    Args:
        context: changed in place.
        edit: targets are indices into `context.entries`.
        services: tokenizer, summarizer and archive of the conversation.
        log: the context's log.
        reason: the policy's own words, or which signal decided.

    Raises:
        IllegalEditError: when an invariant forbids the edit; nothing has changed then.
    """
    check_edit(context, edit)
    return commit_edit(context, edit, services, log, reason)


def commit_edit(
    context: Context, edit: Edit, services: Services, log: EditLog, reason: str = ""
) -> EditRecord:
    """Does what `apply_edit` does with an edit that is known to be legal.

    An action that the mask allows is: mask and check come from the same invariants.
    """
    started = time.perf_counter()
    before = context.total
    op = OP_OF[type(edit)]
    try:
        effect = _HANDLERS[op](context, edit, services)
    except _NotArchivedError as error:
        _logger.error("The archive failed with %s; nothing was hidden.", error)
        ids = () if isinstance(edit, Keep) else _ids(context, edit.targets)
        effect = rejected(ids, _NO_PARAMS, Outcome.REJECTED_NOT_ARCHIVED, (0, 0))
    broke = context.break_at if context.has_pending_break else -1
    record = EditRecord(
        len(log), context.request, op, effect.targets, effect.params, reason, before,
        context.total, effect.outcome, broke, time.perf_counter() - started, effect.output,
        effect.summarizer_tokens, -1, effect.rows,
    )  # fmt: skip
    log.append(record)
    return record


def _ids(context: Context, targets: Sequence[int]) -> tuple[str, ...]:
    entries = context.entries
    if len(targets) == 1:
        return (entries[targets[0]].id,)
    return tuple([entries[i].id for i in targets])


class _NotArchivedError(Exception):
    """The archive, which may be anybody's, did not take something; nothing has changed yet."""


def _store(services: Services, *segments: Segment) -> None:
    """Puts segments into the archive before anything of them goes."""
    for segment in segments:
        try:
            services.archive.put(services.session, segment)
        except Exception as error:
            raise _NotArchivedError(type(error).__name__) from error


def _keep(_context: Context, _edit: Keep, _services: Services) -> Effect:
    return Effect(())


def _fold(context: Context, edit: Fold, services: Services) -> Effect:
    changes, form = [], int(edit.form)
    _store(services, *[context.entries[index].segment for index in edit.targets])
    for index in edit.targets:
        changes.append(shift(context, index, form=form, mark=-1, edited=context.request))
    params = _STUB if form == _STUB_FORM else _OUTLINE
    return Effect(_ids(context, edit.targets), params, tuple(changes))


def _expire(context: Context, edit: Expire, _services: Services) -> Effect:
    due = context.request + edit.requests
    changes = tuple([shift(context, index, mark=due) for index in edit.targets])
    return Effect(_ids(context, edit.targets), {"requests": str(edit.requests)}, changes)


def _drop(context: Context, edit: Drop, services: Services) -> Effect:
    c = context.columns
    changes = []
    group = [i for i in _groups(context, edit.targets) if c.rank[i] >= 0 and c.form[i]]
    _store(services, *[context.entries[index].segment for index in group])
    for index in group:
        changes.append(shift(context, index, form=_ABSENT, mark=-1, edited=context.request))
        if c.kind[index] == _SUMMARY_KIND:
            changes += _uncovered(context, index)
    return Effect(_ids(context, edit.targets), _NO_PARAMS, tuple(changes))


def _uncovered(context: Context, summary: int) -> Iterable[ChangeRow]:
    """Frees what a dropped summary stood for: nothing says it any more, so it may return."""
    c = context.columns
    for index in c.order[: context.length].tolist():
        if c.covered[index] == summary:
            yield shift(context, index, covered=-1)
            if c.kind[index] == _SUMMARY_KIND:  # an earlier one, which this one consumed
                yield from _uncovered(context, index)


def _groups(context: Context, targets: Sequence[int]) -> Iterable[int]:
    """Returns the members of the targets' exchanges, each once, in order of first mention."""
    if len(targets) == 1:
        return context.group(targets[0])
    return dict.fromkeys([i for target in targets for i in context.group(target)])


def _summarize(context: Context, edit: Summarize, services: Services) -> Effect:
    if edit.run:
        return _summarize_run(context, edit, services)
    (index,) = edit.targets
    ids, params = _ids(context, edit.targets), {"max_tokens": str(edit.max_tokens)}
    entry = context.entries[index]
    segment = entry.segment
    text, raw_tokens, cost, failure = _ask_summarizer(services, [entry], edit.max_tokens)
    if failure is not None:
        return rejected(ids, params, failure, cost)
    tokens = services.scaled(raw_tokens + MESSAGE_TOKENS)
    if tokens >= context.columns.size[index]:
        return rejected(ids, params, Outcome.REJECTED_INFLATED, cost)
    output = f"{segment.id}.summary"
    _store(services, segment, summary_segment(output, text, [segment]))
    entry.set_summary(text, tokens)
    change = shift(context, index, form=_SUMMARY_FORM, mark=-1, edited=context.request)
    return Effect(ids, params, (change,), output, cost)


def _summarize_run(context: Context, edit: Summarize, services: Services) -> Effect:
    """One summary segment takes the place of the run; an earlier summary in it is consumed."""
    c = context.columns
    group = _groups(context, edit.targets)
    run = sorted([i for i in group if c.rank[i] >= 0 and c.form[i]], key=c.rank.__getitem__)
    ids = _ids(context, run)
    params = {"max_tokens": str(edit.max_tokens), "run": "true"}
    entries = [context.entries[i] for i in run]
    text, raw_tokens, cost, failure = _ask_summarizer(services, entries, edit.max_tokens)
    if failure is not None:
        return rejected(ids, params, failure, cost)
    made = len(context.entries)
    if services.scaled(raw_tokens + MESSAGE_TOKENS) >= sum([c.size[i] for i in run]):
        return rejected(ids, params, Outcome.REJECTED_INFLATED, cost)
    summary = summary_segment(f"m{made}", text, [entry.segment for entry in entries])
    _store(services, *[entry.segment for entry in entries], summary)
    position = c.rank[run[0]]
    behind = c.order[position - 1] if position else -1
    context.add(services.interned_summary(summary, made, raw_tokens), position)
    changes = [created(made, behind)]
    for index in run:
        changes.append(
            shift(context, index, form=_ABSENT, mark=-1, edited=context.request, covered=made)
        )  # fmt: skip
    return Effect(ids, params, tuple(changes), summary.id, cost)


def _reload(context: Context, edit: Reload, services: Services) -> Effect:
    in_place = edit.placement == _IN_PLACE
    changes: list[ChangeRow] = []
    output = ""
    for target in edit.targets:
        absent = in_place and context.columns.form[target] == _ABSENT
        if not in_place:
            change, output = append_copy(context, target, services)
            changes.append(change)
        for index in context.group(target):  # hysteresis holds for the exchange as a whole
            returns = absent or (in_place and index == target)
            changes.append(_reloaded(context, index, _FULL if returns else None))
    count_reloads(context, changes, 1)
    return Effect(
        _ids(context, edit.targets), _PLACED[edit.placement], tuple(changes), output
    )  # fmt: skip


def reload_for_agent(
    context: Context, index: int, services: Services, log: EditLog, reason: str
) -> EditRecord:
    """Shows an original at the end because the agent asked for it; hysteresis does not apply."""
    before = context.total
    change, output = append_copy(context, index, services)
    changes = (change, *(_reloaded(context, i, None) for i in context.group(index)))
    count_reloads(context, changes, 1)
    record = EditRecord(
        len(log), context.request, Op.RELOAD, _ids(context, (index,)),
        _PLACED[_AT_END], reason, before, context.total,
        break_position=context.break_at if context.has_pending_break else -1,
        output=output, rows=changes,
    )  # fmt: skip
    log.append(record)
    return record


def append_copy(context: Context, target: int, services: Services) -> tuple[ChangeRow, str]:
    """Shows an original once more at the end; returns the change and the copy's id.

    Inside an open tool loop the end is behind the last result; otherwise it is just before the
    latest user text, so that the user keeps the last word.
    """
    made = len(context.entries)
    entry = services.interned_copy(context.entries[target], target, made)
    last_word = context.latest_user_rank
    position = context.length
    if not context.in_tool_loop and last_word == context.length - 1:
        position = last_word
    behind = context.columns.order[position - 1] if position else -1
    context.add(entry, position)
    return created(made, behind), f"m{made}"


def _reloaded(context: Context, index: int, form: int | None) -> ChangeRow:
    request = context.request
    return shift(context, index, form=form, edited=request if form else None, reloaded=request)


def _reorder(context: Context, edit: Reorder, _services: Services) -> Effect:
    changes = []
    for index in edit.targets:
        c = context.columns
        old = c.rank[index]
        position = _position(context, edit.position)
        if old < position:
            position -= 1  # positions count without the segment that moves
        before = c.order[old - 1] if old else -1
        context.move(index, position)
        after = c.order[position - 1] if position else -1
        changes.append(shift(context, index, edited=context.request, after=(before, after)))
    return Effect(_ids(context, edit.targets), _MOVED[edit.position], tuple(changes))


def _position(context: Context, position: Position) -> int:
    """Returns where a reordered segment goes, in positions of the present order."""
    c = context.columns
    if position == Position.END:
        tail = context.latest_user_rank
        return tail if tail == context.length - 1 else context.length
    front = 0
    while front < context.length and c.pinned[c.order[front]]:
        front += 1
    return front


def _ask_summarizer(
    services: Services, originals: Sequence[Interned], max_tokens: int
) -> tuple[str, int, tuple[int, int], Outcome | None]:
    """Returns text, its unscaled tokens, (input, output) tokens, and why it is unusable, if so."""
    read = sum([services.text_tokens(entry) for entry in originals])
    segments = [entry.segment for entry in originals]
    try:
        text = services.summarize(segments, max_tokens)
    except Exception as error:  # the summarizer may be anybody's; nothing is replaced
        _logger.warning("The summarizer failed with %s.", type(error).__name__)
        return "", 0, (read, 0), Outcome.REJECTED_FAILED_SUMMARY
    if not isinstance(text, str) or is_error_text(text, [s.text for s in segments]):
        return "", 0, (read, 0), Outcome.REJECTED_FAILED_SUMMARY
    if is_empty_text(text):
        return "", 0, (read, 0), Outcome.REJECTED_EMPTY_SUMMARY
    if not text.isascii():  # a summarizer may cut a surrogate pair, and no request can carry half
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    tokens = services.tokenizer.count(text)
    return text, tokens, (read, services.scaled(tokens)), None


_NO_PARAMS: Mapping[str, str] = MappingProxyType({})
_PLACED: Mapping[Placement, Mapping[str, str]] = MappingProxyType(
    {placement: MappingProxyType({"placement": placement.value}) for placement in Placement}
)
_MOVED: Mapping[Position, Mapping[str, str]] = MappingProxyType(
    {position: MappingProxyType({"position": position.value}) for position in Position}
)
_STUB: Mapping[str, str] = MappingProxyType({"form": "stub"})
_OUTLINE: Mapping[str, str] = MappingProxyType({"form": "outline"})

_HANDLERS: Mapping[Op, Callable[[Context, Any, Services], Effect]] = MappingProxyType(
    {
        Op.KEEP: _keep,
        Op.SUMMARIZE: _summarize,
        Op.FOLD: _fold,
        Op.EXPIRE: _expire,
        Op.DROP: _drop,
        Op.RELOAD: _reload,
        Op.REORDER: _reorder,
    }
)
