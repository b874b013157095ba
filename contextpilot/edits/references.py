"""Which earlier segments a new one refers to, and what a result is a reading of.

These are the manager's own string matches: they exist in production as they do in the
environment, and know nothing of labels.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from functools import lru_cache

from contextpilot.core.segment import Kind, Segment

_DISTINCTIVE = re.compile(r"[A-Za-z_][\w./-]{5,80}|\d[\d.:-]{3,40}|[\u4e00-\u9fff]{2,8}")
_WORD = re.compile(r"[a-z0-9]{4,}|[\u4e00-\u9fff]")
_RESOURCE_KEYS = (
    "file_path", "path", "filename", "notebook_path", "url", "command", "cmd", "query",
)  # fmt: skip

COMMON_SHARE = 6
"""A string that more than this many segments have does not tell which one is meant."""

MAX_GOAL_WORDS = 48
"""A goal's first words say what it is about; a pasted document behind them does not."""

MAX_READ_CHARS = 20_000
"""Only this much of a segment is indexed; the rest of a huge result rarely gets quoted."""


class ReferenceIndex:
    """Distinctive strings of the segments so far, for finding what a new turn repeats."""

    def __init__(self) -> None:
        self._holders: dict[str, list[int]] = defaultdict(list)

    def add(self, index: int, segment: Segment) -> tuple[int, ...]:
        """Indexes a segment; returns the earlier ones that it refers to (turns and users only)."""
        text = segment.text[:MAX_READ_CHARS]
        strings = set(_DISTINCTIVE.findall(text))
        found: set[int] = set()
        if segment.kind in (Kind.TURN, Kind.TEXT):
            for string in strings:
                holders = self._holders.get(string)
                if holders and len(holders) <= COMMON_SHARE:
                    found.update(holders)
        else:
            for string in strings:
                holders = self._holders[string]
                if len(holders) <= COMMON_SHARE:
                    holders.append(index)
        return tuple(sorted(found))


def resource_of(segment: Segment, turn: Segment) -> str:
    """Returns what a result is a reading of: its tool and the path or query; "" where unknown."""
    if segment.kind != Kind.RESULT:
        return ""
    for part in turn.parts:
        if part.type == "call" and part.call_id == segment.call_id:
            try:
                arguments = json.loads(part.text)
            except ValueError:
                return ""
            if isinstance(arguments, dict):
                for key in _RESOURCE_KEYS:
                    value = arguments.get(key)
                    if isinstance(value, str) and value:
                        return f"{part.name}:{value}"
            return ""
    return ""


@lru_cache(maxsize=64)
def goal_words(goal: str) -> tuple[str, ...]:
    """Returns the first content words of a goal, or its characters where it is Chinese."""
    return tuple(dict.fromkeys(_WORD.findall(goal[:4000].lower())))[:MAX_GOAL_WORDS]


class GoalRelevance:
    """BM25 of each new segment against the goal, with the statistics of the segments so far.

    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond",
    k1 = 1.2 and b = 0.75. Running statistics, since in production later segments are unknown.
    """

    K1, B = 1.2, 0.75

    def __init__(self, goal: str) -> None:
        self._words = goal_words(goal)
        self._document_frequency = dict.fromkeys(self._words, 0)
        self._documents = 0
        self._characters = 0

    def add(self, text: str) -> float:
        """Returns the segment's score as a share of the largest possible one, in [0, 1]."""
        lowered = text[:MAX_READ_CHARS].lower()
        self._documents += 1
        self._characters += len(lowered) + 1
        length = (len(lowered) + 1) * self._documents / self._characters
        damping = self.K1 * (1 - self.B + self.B * length)
        score = best = 0.0
        for word in self._words:
            count = lowered.count(word)
            known = self._document_frequency[word]
            idf = math.log(1 + (self._documents - known + 0.5) / (known + 0.5))
            best += idf * (self.K1 + 1)
            if count:
                score += idf * count * (self.K1 + 1) / (count + damping)
                self._document_frequency[word] = known + 1
        return score / best if best else 0.0
