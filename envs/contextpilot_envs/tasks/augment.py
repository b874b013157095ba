"""Variants of replays for training: windows, renamed values, distractors, hidden texts.

There are few recorded sessions and many episodes to train on. A policy that could learn them by
heart would: a variant keeps how a session goes, and changes what it is about.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from contextpilot.core.segment import Kind, Part, Segment
from contextpilot.errors import ConfigurationError
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.demands import relabel
from contextpilot_envs.tasks.renaming import renamer
from contextpilot_envs.tasks.replay import cut

_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_READABLE = frozenset({"text", "reasoning", "call"})
_FOREIGN_MESSAGES = 1_000_000
"""Where the message numbers of spliced exchanges begin, before everything is renumbered."""


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How far a variant goes from its original.

    Attributes:
        min_requests: shortest window; a shorter task is taken whole.
        max_requests: longest window.
        max_spliced_share: spliced exchanges per request of the window, at most.
        max_hidden_share: share of the results whose text is made unreadable, at most.
        rename: whether paths, ids and numbers get other names.
    """

    min_requests: int = 40
    max_requests: int = 80
    max_spliced_share: float = 0.15
    max_hidden_share: float = 0.1
    rename: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.min_requests <= self.max_requests:
            raise ConfigurationError(
                "Windows need 1 <= min_requests <= max_requests. "
                f"Received {self.min_requests} and {self.max_requests}."
            )
        for name in ("max_spliced_share", "max_hidden_share"):
            share = getattr(self, name)
            if not 0.0 <= share <= 1.0:
                raise ConfigurationError(f"{name} is a share in [0, 1]. Received {share}.")


_DEFAULT = Augmentation()


@dataclass(frozen=True, slots=True)
class _Arriving:
    segment: Segment
    arrival: int


def augment(
    task: Task,
    rng: np.random.Generator,
    others: Sequence[Task] = (),
    settings: Augmentation = _DEFAULT,
) -> Task:
    """Returns a random variant of a replay, for training only.

    Its segments are made anew, without the objects of the wire, since exchanges of several formats
    may stand side by side. Its facts are found again in the changed stream: what lost its evidence
    is no longer demanded.

    Args:
        task: a replay, whole or a window.
        rng: decides everything.
        others: tasks of other runs of the same split, whose exchanges become distractors.
        settings: how far the variant goes.
    """
    window = _window(task, rng, settings)
    stream = _with_distractors(window, rng, others, settings)
    rename = renamer(window, rng) if settings.rename else str
    segments = [_made(arriving.segment, rename) for arriving in stream]
    segments = _renumbered(_with_hidden(segments, rng, settings))
    arrivals = tuple(arriving.arrival for arriving in stream)
    facts, demands = relabel(
        segments,
        arrivals,
        [replace(fact, value=rename(fact.value)) for fact in window.facts],
        [replace(demand, query=rename(demand.query)) for demand in window.demands],
    )
    return replace(
        window,
        id=f"{window.id}~{rng.integers(1 << 32):08x}",
        goal=rename(window.goal),
        segments=tuple(segments),
        arrivals=arrivals,
        facts=facts,
        demands=demands,
        recorded_input_tokens=(),
        metadata={**window.metadata, "augmented": "true"},
    )


def _window(task: Task, rng: np.random.Generator, settings: Augmentation) -> Task:
    if task.requests <= settings.min_requests:
        return task
    longest = min(settings.max_requests, task.requests)
    length = int(rng.integers(settings.min_requests, longest + 1))
    start = int(rng.integers(0, task.requests - length + 1))
    return cut(task, start, start + length)


def _with_distractors(
    task: Task, rng: np.random.Generator, others: Sequence[Task], settings: Augmentation
) -> list[_Arriving]:
    """Returns the stream with whole exchanges of other runs in front of some arrivals."""
    stream = [_Arriving(*pair) for pair in zip(task.segments, task.arrivals, strict=True)]
    most = int(settings.max_spliced_share * task.requests)
    if not others or not most or task.requests < 2:
        return stream
    for number in range(int(rng.integers(0, most + 1))):
        exchange = _exchange(others[int(rng.integers(len(others)))], rng)
        request = int(rng.integers(1, task.requests))
        place = bisect_left(stream, request, key=lambda arriving: arriving.arrival)
        stream[place:place] = [_Arriving(_foreign(s, number), request) for s in exchange]
    return stream


def _exchange(task: Task, rng: np.random.Generator) -> list[Segment]:
    """Returns a random turn of another run with all its results, or nothing where it has none."""
    members: dict[str, list[Segment]] = {}
    for segment in task.segments:
        if segment.exchange:
            members.setdefault(segment.exchange, []).append(segment)
    whole = [m for m in members.values() if len(m) > 1 and not any(s.pending for s in m)]
    return whole[int(rng.integers(len(whole)))] if whole else []


def _foreign(segment: Segment, number: int) -> Segment:
    """Returns a segment of another run with an exchange, calls and messages of its own."""
    prefix = f"other{number}:"
    parts = tuple(
        replace(part, call_id=prefix + part.call_id) if part.call_id else part
        for part in segment.parts
    )
    message, block = segment.position
    return replace(
        segment,
        parts=parts,
        exchange=prefix + segment.exchange,
        call_id=prefix + segment.call_id if segment.call_id else "",
        position=((number + 1) * _FOREIGN_MESSAGES + message, block),
    )


def _made(segment: Segment, rename: Callable[[str], str]) -> Segment:
    """Returns a segment with renamed texts and without the objects that it came from."""
    parts = tuple(
        Part(part.type, rename(part.text), part.name, part.call_id)
        if part.type in _READABLE
        else part
        for part in segment.parts
        if part.type != "opaque"
    )
    return replace(segment, parts=parts, metadata={})


def _with_hidden(
    segments: Sequence[Segment], rng: np.random.Generator, settings: Augmentation
) -> list[Segment]:
    """Returns the segments with the letters and digits of some results blotted out."""
    share = rng.uniform(0.0, settings.max_hidden_share)
    hidden = rng.random(len(segments)) < share
    return [
        _made(segment, _blotted) if hide and segment.kind == Kind.RESULT else segment
        for segment, hide in zip(segments, hidden, strict=True)
    ]


def _blotted(text: str) -> str:
    """Keeps the length and the layout, so that the size is still true."""
    return _DIGIT.sub("0", _LETTER.sub("o", text))


def _renumbered(segments: Sequence[Segment]) -> list[Segment]:
    """Returns the segments with ids, exchanges and messages numbered in their new order."""
    exchanges: dict[str, str] = {"": ""}
    messages: dict[int, int] = {}
    numbered = []
    for number, segment in enumerate(segments, start=1):
        message, block = segment.position
        numbered.append(
            replace(
                segment,
                id=f"s{number}",
                exchange=exchanges.setdefault(segment.exchange, f"x{number}"),
                position=(messages.setdefault(message, len(messages)), block),
            )
        )
    return numbered
