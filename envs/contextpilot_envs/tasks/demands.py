"""What a recorded agent needed at each request, derived from what it then did."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from contextpilot.core.segment import Kind, Segment
from contextpilot_envs.tasks.base import Demand, KeyFact
from contextpilot_envs.tasks.values import call_values, fact_kind, quoted_values

MAX_FACTS = 24
"""Distinct values demanded at one request."""

_QUERY_WORDS = 24
_QUERY_CHARS = 400
_QUERY_WORD = re.compile(r"[^\W\d_]{3,}")
_WORD_BYTES = frozenset(f"{string.ascii_letters}{string.digits}_".encode())
_BLANKS = bytes(byte if byte in _WORD_BYTES else 0x20 for byte in range(256))
"""Translates UTF-8 so that ASCII words remain: tools put arrows and boxes right before a word."""

Places = Mapping[str, tuple[int, ...]]
"""Per value, the indices of the segments that state it, in order."""


def derive(
    segments: Sequence[Segment],
    arrivals: Sequence[int],
    turns: Sequence[Segment],
    *,
    quotes: bool = True,
    prompt: str = "",
) -> tuple[tuple[KeyFact, ...], tuple[Demand, ...]]:
    """Derives key facts and demands of a replay.

    A value in a turn's call arguments (with `quotes` also: an identifier, number or path in its
    text) that an earlier result states is a key fact of that request. What a pinned segment
    states is always readable, and so never demanded.

    Args:
        segments: the stream, in host-history order.
        arrivals: per segment, the request at which it is there.
        turns: per request, what the agent then said; the last one need not be in `segments`.
        quotes: whether what the agent quotes in its text counts.
        prompt: a system prompt outside the stream; what it states is always readable too.

    Returns:
        The facts, each with every segment of the stream that states it, and at most one demand a
        request.
    """
    candidates = [tuple(dict.fromkeys(_values(turn, quotes))) for turn in turns]
    places = find_statements(segments, chain.from_iterable(candidates))
    spans = _spans(places, segments, arrivals, never=len(turns))
    labels = []
    said = ""
    for request, turn in enumerate(turns):
        said = _speech(turn) or said
        needed = (
            value
            for value in candidates[request]
            if request in spans[value] and value not in prompt
        )
        values = _most_telling(needed, places)
        facts = [KeyFact(value, fact_kind(value), places[value]) for value in values]
        labels.append((Demand(request, (), _query(turn, said, values)), facts))
    return _numbered(labels)


def relabel(
    segments: Sequence[Segment],
    arrivals: Sequence[int],
    facts: Sequence[KeyFact],
    demands: Sequence[Demand],
) -> tuple[tuple[KeyFact, ...], tuple[Demand, ...]]:
    """Finds the facts of a changed stream again, and leaves out what it no longer has to offer.

    Args:
        segments: the changed stream.
        arrivals: per segment, the request at which it is there.
        facts: the facts before, with their values as the changed stream states them.
        demands: the demands before, at requests of the changed stream.

    Returns:
        Facts and demands under the same rules as `derive`.
    """
    places = find_statements(segments, (fact.value for fact in facts))
    last = max((demand.request for demand in demands), default=0)
    spans = _spans(places, segments, arrivals, never=last + 1)
    found = [replace(fact, segments=places[fact.value], stale_segments=()) for fact in facts]
    return _numbered(
        (demand, [found[n] for n in demand.facts if demand.request in spans[found[n].value]])
        for demand in demands
    )


def _numbered(
    labels: Iterable[tuple[Demand, Sequence[KeyFact]]],
) -> tuple[tuple[KeyFact, ...], tuple[Demand, ...]]:
    """Returns the distinct facts and the demands that refer to them, without empty demands."""
    facts: dict[str, KeyFact] = {}
    demands = []
    for demand, needed in labels:
        for fact in needed:
            facts.setdefault(fact.value, fact)
        if needed:
            demands.append((demand, [fact.value for fact in needed]))
    numbers = {value: number for number, value in enumerate(facts)}
    return tuple(facts.values()), tuple(
        replace(demand, facts=tuple(numbers[value] for value in values))
        for demand, values in demands
    )


def find_statements(segments: Sequence[Segment], values: Iterable[str]) -> Places:
    """Returns which segments state each value verbatim.

    Each text is split into words once, of which only words of the values are kept. A value is then
    looked for in the few segments that hold all of its words. It has to stand there as words:
    "1234" is not stated by "51234".
    """
    words = {value: set(_words(value)) for value in values}
    postings: dict[bytes, set[int]] = {word: set() for word in chain.from_iterable(words.values())}
    wanted = set(postings)
    texts = [segment.text for segment in segments]
    for number, text in enumerate(texts):
        for word in wanted.intersection(_words(text)):
            postings[word].add(number)
    places = {}
    for value, value_words in words.items():
        holding: Iterable[int] = range(len(texts))  # for values without an ASCII word
        if value_words:
            rarest, *others = sorted((postings[word] for word in value_words), key=len)
            holding = sorted(rarest.intersection(*others))
        places[value] = tuple(number for number in holding if value in texts[number])
    return places


def _words(text: str) -> list[bytes]:
    return text.encode("utf-8", "surrogatepass").translate(_BLANKS).split()


def _values(turn: Segment, quotes: bool) -> Iterator[str]:
    yield from call_values(turn)
    if quotes:
        yield from quoted_values(turn)


def _spans(
    places: Places, segments: Sequence[Segment], arrivals: Sequence[int], never: int
) -> dict[str, range]:
    """Returns per value the requests between the first result and the first pin that state it."""
    results = {n for n, segment in enumerate(segments) if segment.kind == Kind.RESULT}
    pinned = {n for n, segment in enumerate(segments) if segment.pinned}
    spans = {}
    for value, stating in places.items():
        since = min((arrivals[n] for n in stating if n in results), default=never)
        until = min((arrivals[n] for n in stating if n in pinned), default=never)
        spans[value] = range(since, until)
    return spans


def _most_telling(values: Iterable[str], places: Places) -> list[str]:
    """Returns the values that fewest segments state, long ones first, none inside another."""
    kept: list[str] = []
    for value in sorted(values, key=lambda value: (len(places[value]), -len(value))):
        if len(kept) == MAX_FACTS:
            break
        if not any(value in longer for longer in kept):
            kept.append(value)
    return kept


def _speech(turn: Segment) -> str:
    """Returns the beginning of what a turn says in words."""
    texts = (part.text for part in turn.parts if part.type == "text")
    return " ".join(texts)[:_QUERY_CHARS].strip()


def _query(turn: Segment, said: str, values: Sequence[str]) -> str:
    """Returns the agent's own words at this request: what it would search for, values left out.

    They are what it said here, or else last, and what it called; a search for a value cannot
    name the value.
    """
    calls = (f"{p.name} {p.text[:_QUERY_CHARS]}" for p in turn.parts if p.type == "call")
    given = {word for value in values if " " not in value for word in _QUERY_WORD.findall(value)}
    words = dict.fromkeys(_QUERY_WORD.findall(" ".join((said, *calls))))
    kept = [word for word in words if word not in given][:_QUERY_WORDS]
    query = " ".join(kept)
    for value in values:
        if value in query:  # words of a phrase that stand side by side, or a word in a longer one
            kept = [word for word in kept if word not in value and value not in word]
            query = " ".join(kept)
    return query
