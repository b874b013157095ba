"""Giving the names in a task other names: everywhere the same, and looking alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from contextpilot_envs.tasks.base import Task

_WORD = re.compile(r"\w+", re.ASCII)
_KEY = re.compile(r'"(\w+)":', re.ASCII)
_MIN_DIGITS = 3
_MIN_NAME_CHARS = 5
_CONSONANTS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiouy"
_ATTEMPTS = 20


def renamer(task: Task, rng: np.random.Generator) -> Callable[[str], str]:
    """Returns a function that renames the ids, numbers and path parts in the task's facts.

    It replaces whole words by words of the same length, letter for letter and digit for digit, so
    that token counts stay about the same and a value is found where it was found before. Names of
    tools and of their arguments stay.
    """
    texts = [segment.text for segment in task.segments]
    taken = {word for text in texts for word in _WORD.findall(text)}
    names = dict.fromkeys(word for word in _names(task) if word in taken)
    for key in _schema_words(task):
        names.pop(key, None)
    mapping: dict[str, str] = {}
    for name in names:
        other = _alike(name, taken, rng)
        if other is not None:
            mapping[name] = other
            taken.add(other)

    def rename(text: str) -> str:
        return _WORD.sub(lambda match: mapping.get(match[0], match[0]), text)

    return rename


def _names(task: Task) -> Iterator[str]:
    for fact in task.facts:
        for word in _WORD.findall(fact.value):
            letters = word.strip("0123456789")
            if not letters:
                if len(word) >= _MIN_DIGITS:
                    yield word
            elif len(word) >= _MIN_NAME_CHARS and (fact.kind == "path" or _is_coined(word)):
                yield word


def _is_coined(word: str) -> bool:
    """True for identifiers and ids; false for words of a language."""
    inner = word[1:]
    return "_" in inner or inner != inner.lower() or any(character.isdigit() for character in word)


def _schema_words(task: Task) -> Iterator[str]:
    for segment in task.segments:
        yield from _WORD.findall(segment.name)
        for part in segment.parts:
            if part.type == "call":
                yield from _WORD.findall(part.name)
                yield from _KEY.findall(part.text)


def _alike(name: str, taken: Iterable[str], rng: np.random.Generator) -> str | None:
    """Returns a new word of the same shape, or None where there is hardly one left."""
    for _ in range(_ATTEMPTS):
        draws = rng.integers(0, 1 << 30, size=len(name))
        word = "".join(
            _replacement(character, place, int(draw))
            for place, (character, draw) in enumerate(zip(name, draws, strict=True))
        )
        if word not in taken:
            return word
    return None


def _replacement(character: str, place: int, draw: int) -> str:
    if character.isdigit():
        # a leading zero would look like another kind of number
        return str(draw % 10) if place and character != "0" else str(1 + draw % 9)
    if character == "_":
        return character
    letters = _VOWELS if place % 2 else _CONSONANTS
    letter = letters[draw % len(letters)]
    return letter.upper() if character.isupper() else letter
