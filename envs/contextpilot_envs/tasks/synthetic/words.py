"""Fills the slots of templates, and sees to it that no value of a fact occurs by accident.

Facts are drawn from forms that nothing else uses (five digits, codes, names of people outside the
cast of the filler), so that finding a value in a text means that the text states the fact.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import TypeVar

from contextpilot_envs.tasks.synthetic.templates import FactTemplate, FamilyText

Choice = TypeVar("Choice")
_SLOT = re.compile(r"\{(\w+)\}")
_CAST = 12
"""How many people the filler of one task talks about."""
_NOTHING: Mapping[str, str] = {}


@cache
def _pieces(template: str) -> tuple[str, ...]:
    """Returns literals at even places and slot names at odd ones."""
    return tuple(_SLOT.split(template))


class Words:
    """Draws words for one task."""

    def __init__(self, rng: Random, text: FamilyText) -> None:
        self._rng = rng
        self._text = text
        self._used: set[str] = set()
        self._people: set[str] = set()
        self._pools = dict(text.pools)
        self._makers: dict[str, Callable[[], str]] = {
            "full": self._new_person,
            "n5": self._number,
            "d4": lambda: str(self._between(1000, 9999)),
            "code": self._code,
            "tens": lambda: str(self._between(11, 89)),
            "few": lambda: str(self._between(2, 9)),
            "day": lambda: str(self._between(11, 28)),
            "percent": lambda: f"{self._between(11, 69)}%",
            "hour": lambda: f"{self._between(10, 20)}:{self._between(10, 59)}",
        }
        self._pools["person"] = tuple(self._new_person() for _ in range(_CAST))

    def set_names(self, names: Sequence[str]) -> None:
        """Makes the names of the task's subjects available to filler that mentions others."""
        self._pools["other"] = tuple(names)

    def pick(self, options: Sequence[Choice]) -> Choice:
        """Returns one of `options`."""
        return options[int(self._rng.random() * len(options))]

    def fill(self, template: str, known: Mapping[str, str] = _NOTHING) -> str:
        """Returns the template with each slot filled; equal slots get different words.

        `known` goes before the pools. Its values are not to come back in another slot.
        """
        pieces = _pieces(template)
        if len(pieces) == 1:
            return template
        drawn: set[str] = set(known.values())
        out = list(pieces)
        for place in range(1, len(pieces), 2):
            slot = pieces[place]
            word = known.get(slot)
            if word is None:
                word = self._draw(slot)
                while word in drawn:
                    word = self._draw(slot)
                drawn.add(word)
            out[place] = word
        return "".join(out)

    def value(self, template: FactTemplate, known: Mapping[str, str] = _NOTHING) -> str:
        """Returns a value for a fact, one that this task has not used before."""
        return self.unique(template.value, known)

    def unique(self, template: str, known: Mapping[str, str] = _NOTHING) -> str:
        """Returns the filled template, different from all that were made by this method."""
        while (text := self.fill(template, known)) in self._used:
            pass
        self._used.add(text)
        return text

    def _draw(self, slot: str) -> str:
        pool = self._pools.get(slot)
        return self._makers[slot]() if pool is None else self.pick(pool)

    def _between(self, low: int, high: int) -> int:
        return low + int(self._rng.random() * (high - low + 1))

    def _new_person(self) -> str:
        """Returns somebody whom this task has not named yet."""
        while (name := self.fill(self._text.phrases["person"])) in self._people:
            pass
        self._people.add(name)
        return name

    def _number(self) -> str:
        parts = {"thousands": str(self._between(10, 99)), "rest": f"{self._between(101, 999)}"}
        return self.fill(self._text.phrases["number"], parts)

    def _code(self) -> str:
        first, second, last = (self.pick(string.ascii_uppercase) for _ in range(3))
        return f"{first}{second}-{self._between(1000, 9999)}-{last}"
