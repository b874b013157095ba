"""What the host says of its messages, brought to their segments: pins, marks, trust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextpilot.core.segment import Kind, Role, Segment, Source, Trust
from contextpilot.manager.config import ManagerConfig
from contextpilot.messages.builder import pins_of


def marked(
    segments: Sequence[Segment], messages: Sequence[Mapping[str, Any]], config: ManagerConfig
) -> tuple[Segment, ...]:
    """Returns the segments with what the configuration says about their messages.

    Args:
        segments: as parsed.
        messages: what they were parsed from.
        config: its functions are called once a message.
    """
    marked = list(segments)
    if config.synthetic is not None:
        made = {at for at, message in enumerate(messages) if config.synthetic(message)}
        marked = [_as_note(s) if s.position[0] in made else s for s in marked]
    if config.synthetic is not None or not config.pin_goal:
        spoken = pins_of(marked, goal=config.pin_goal)
        marked = [
            s if s.role == Role.SYSTEM else replace(s, pinned=number in spoken)
            for number, s in enumerate(marked)
        ]
    if config.pins is not None:
        kept = {at for at, message in enumerate(messages) if config.pins(message)}
        marked = [replace(s, pinned=True) if s.position[0] in kept else s for s in marked]
    if config.trust is not None:
        caps = [config.trust(message) for message in messages]
        marked = [_trusted(s, caps[s.position[0]]) for s in marked]
    return tuple(_by_tool(marked, config))


def _as_note(segment: Segment) -> Segment:
    """Returns a segment that a manager wrote: nobody's words, from sources that are not known."""
    if segment.role != Role.USER:
        return segment
    return replace(segment, kind=Kind.NOTE, source=Source.MANAGER, trust=Trust.UNTRUSTED)


def _trusted(segment: Segment, cap: Trust | None) -> Segment:
    """Returns a segment with at most the trust that the host gives its message."""
    if cap is None or cap >= segment.trust:
        return segment
    return replace(segment, trust=cap)


def _by_tool(segments: Sequence[Segment], config: ManagerConfig) -> Iterable[Segment]:
    """Returns the segments with what no edit may touch because of its tool pinned."""
    allow, deny = config.allow_tools, config.deny_tools
    if allow is None and not deny:
        return segments
    kept = {
        s.exchange or s.id
        for s in segments
        if s.kind == Kind.RESULT and (s.name in deny or (allow is not None and s.name not in allow))
    }
    return [replace(s, pinned=True) if (s.exchange or s.id) in kept else s for s in segments]
