"""What an edit did, and the one primitive that changes a segment's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from contextpilot.core.context import Context
from contextpilot.core.edit import Change, Outcome
from contextpilot.core.segment import Form

_NEW, _NOTHING = (int(Form.ABSENT), int(Form.FULL)), (-1, -1)


class Effect(NamedTuple):
    """The part of an edit record that the operation itself decides."""

    targets: tuple[str, ...]
    params: Mapping[str, str] = MappingProxyType({})
    changes: tuple[Change, ...] = ()
    output: str = ""
    summarizer_tokens: tuple[int, int] = (0, 0)
    outcome: Outcome = Outcome.APPLIED


def created(index: int, behind: int) -> Change:
    """Returns the change of a segment that did not exist, now behind another (-1: in front)."""
    return Change(index, _NEW, _NOTHING, _NOTHING, _NOTHING, (-1, behind))


def count_reloads(context: Context, changes: Iterable[Change], step: int) -> None:
    """Adds `step` to the reload count of every original that a reload touched."""
    for change in changes:
        if change.after is None:
            context.columns.reloads[change.index] += step


def rejected(
    targets: tuple[str, ...], params: Mapping[str, str], outcome: Outcome, cost: tuple[int, int]
) -> Effect:
    """Returns the effect of an edit that replaced nothing."""
    return Effect(targets, params, (), "", cost, outcome)


def shift(
    context: Context,
    index: int,
    *,
    form: int | None = None,
    mark: int | None = None,
    edited: int | None = None,
    reloaded: int | None = None,
    covered: int | None = None,
    after: tuple[int, int] | None = None,
) -> Change:
    """Changes one segment's state and returns what it was and what it is."""
    c = context.columns
    old_form = new_form = c.form[index]
    old_mark = new_mark = c.mark[index]
    old_edited = new_edited = c.edited[index]
    old_reloaded = new_reloaded = c.reloaded[index]
    if form is not None and form != old_form:
        context.set_form(index, form)
        new_form = int(form)
    if mark is not None:
        c.mark[index] = new_mark = mark
    if edited is not None:
        c.edited[index] = new_edited = edited
    if reloaded is not None:
        c.reloaded[index] = new_reloaded = reloaded
    standing = None
    if covered is not None:
        standing = c.covered[index], covered
        c.covered[index] = covered
    return Change(
        index, (old_form, new_form), (old_mark, new_mark), (old_edited, new_edited),
        (old_reloaded, new_reloaded), after, standing,
    )  # fmt: skip
