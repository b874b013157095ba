"""What a desk shows: its visible segments, what stands for what, and what must stay."""

from __future__ import annotations

from contextpilot.core.segment import Form, Kind
from contextpilot.manager.desk import Desk
from contextpilot.messages.rendered import RenderedSegment


def shown(desk: Desk) -> list[RenderedSegment]:
    """Returns the visible segments in order, each in its form."""
    context, out = desk.context, []
    for index in context.visible():
        form = context.form(index)
        text = None if form == Form.FULL else context.text(index)
        out.append(RenderedSegment(context.entries[index].segment, form, text))
    return out


def covered(desk: Desk) -> dict[str, list[int]]:
    """Returns by id of a visible summary the positions of the messages it stands for."""
    c, entries = desk.context.columns, desk.entries
    found: dict[str, list[int]] = {
        entries.id(i): [] for i in desk.context.visible() if c.kind[i] == Kind.SUMMARY
    }
    for index in desk.present.indices:
        summary = c.covered[index]
        while summary >= 0 and c.covered[summary] >= 0:  # one summary consumed another
            summary = c.covered[summary]
        if summary >= 0 and entries.id(summary) in found:
            found[entries.id(summary)].append(entries.all[index].segment.position[0])
    return found


def pinned(desk: Desk) -> tuple[tuple[str, int], ...]:
    """Returns (id, tokens) of what no edit may touch in the present history."""
    c = desk.context.columns
    return tuple((desk.entries.id(i), c.size[i]) for i in desk.context.visible() if c.pinned[i])
