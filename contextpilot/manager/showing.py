"""What a desk shows: its visible segments, what stands for what, and what must stay."""

from __future__ import annotations

from contextpilot.core.invariants import is_legal
from contextpilot.core.segment import Form, Kind
from contextpilot.manager.desk import Desk
from contextpilot.messages.rendered import RenderedSegment

_FULL = int(Form.FULL)
_SHRINKS = ("fold", "drop", "summarize_run")


class Shown:
    """The visible segments of a desk in their forms; what is shown as before is the same object."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._before: dict[int, RenderedSegment] = {}

    def segments(self) -> list[RenderedSegment]:
        """Returns the visible segments in order."""
        context, before = self._desk.context, self._before
        forms, entries = context.columns.form, context.entries
        shown: dict[int, RenderedSegment] = {}
        for index in context.visible():
            form, segment = forms[index], entries[index].segment
            text = None if form == _FULL else context.text(index)
            known = before.get(index)
            if (
                known is None
                or known.segment is not segment
                or known.form != form
                or known.text is not text
            ):
                known = RenderedSegment(segment, Form(form), text)
            shown[index] = known
        self._before = shown
        return list(shown.values())


def covered(desk: Desk) -> dict[str, list[int]]:
    """Returns by id of a visible summary the positions of the messages it stands for."""
    c, entries = desk.context.columns, desk.entries
    found: dict[str, list[int]] = {
        entries.id(i): [] for i in desk.context.visible() if c.kind[i] == Kind.SUMMARY
    }
    for index in desk.present.indices if found else ():
        summary = c.covered[index]
        while summary >= 0 and c.covered[summary] >= 0:  # one summary consumed another
            summary = c.covered[summary]
        if summary >= 0 and entries.id(summary) in found:
            found[entries.id(summary)].append(entries.all[index].segment.position[0])
    return found


def pinned(desk: Desk) -> tuple[tuple[str, int], ...]:
    """Returns (id, tokens) of what no edit may make smaller now, the largest first."""
    context, ids = desk.context, desk.entries
    stays = [
        (ids.id(i), context.columns.size[i])
        for i in context.visible()
        if not any(is_legal(rule, context, i) for rule in _SHRINKS)
    ]
    return tuple(sorted(stays, key=lambda each: -each[1]))
