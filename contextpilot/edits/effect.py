"""What an edit did, and the one primitive that changes a segment's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from contextpilot.core.context import Context
from contextpilot.core.edit import MOVED_FROM, UNCHANGED, ChangeRow, Outcome
from contextpilot.core.segment import Form

_UNCHANGED = (UNCHANGED, UNCHANGED)
_NEW = (int(Form.ABSENT), int(Form.FULL), *(-1, -1) * 3)


class Effect(NamedTuple):
    """The part of an edit record that the operation itself decides."""

    targets: tuple[str, ...]
    params: Mapping[str, str] = MappingProxyType({})
    rows: tuple[ChangeRow, ...] = ()
    output: str = ""
    summarizer_tokens: tuple[int, int] = (0, 0)
    outcome: Outcome = Outcome.APPLIED


def created(index: int, behind: int) -> ChangeRow:
    """Returns the change of a segment that did not exist, now behind another (-1: in front)."""
    return (index, *_NEW, -1, behind, *_UNCHANGED)


def count_reloads(context: Context, rows: Iterable[ChangeRow], step: int) -> None:
    """Adds `step` to the reload count of every original that a reload touched."""
    reloads = context.columns.reloads
    for row in rows:
        if row[MOVED_FROM] == UNCHANGED:
            reloads[row[0]] += step


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
    after: tuple[int, int] = _UNCHANGED,
) -> ChangeRow:
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
    standing = _UNCHANGED
    if covered is not None:
        standing = c.covered[index], covered
        c.covered[index] = covered
    return (
        index, old_form, new_form, old_mark, new_mark, old_edited, new_edited, old_reloaded,
        new_reloaded, *after, *standing,
    )  # fmt: skip
