"""Which values an agent's turn shows that it knows: what it passed on, and what it quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from contextpilot.core.segment import Segment

MAX_VALUE_CHARS = 200
MIN_LINE_CHARS = 16
_MIN_VALUE_CHARS = 4
_MIN_QUOTE_CHARS = 5
_MIN_DIGITS = 3
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
_TOKEN = re.compile(r"((?:~?/)?\w[\w./-]*\w)(:(?!:))?")
_IDENTIFIER = re.compile(r"\d|\w[_/.]|[a-z][A-Z]|^[A-Z]{5,}$")
_DIFF_MARKS = " \t\r+-"
_COMMON = frozenset(
    """
    true false none null undefined default auto yes no and or not all any
    file files path paths line lines text content contents name names type types value values key
    keys code command commands input output result results error errors message messages data
    string number object array list dict int bool float function class method module package
    import export return test tests main src source build docs config settings utils index
    read write edit search find grep list show open close create update delete remove add get set
    bash shell exec run start stop wait status pending completed in_progress done todo
    general-purpose explore agent user assistant system tool head tail last first
    json yaml html http https text/plain utf-8 content-type origin master HEAD
    README.md package.json e.g. i.e. etc. and/or
    """.lower().split()
)


def call_values(turn: Segment) -> Iterator[str]:
    """Yields the values in the arguments of a turn's calls, in their order, some repeatedly.

    A short leaf is a value as a whole. A leaf of several lines also gives its distinctive lines,
    without the marks of a diff, since tools number the lines that they show; a leaf of several
    words (a command, a query, a script) also gives the identifiers, numbers and paths in it.
    """
    for part in turn.parts:
        if part.type == "call":
            for leaf in _leaves(_arguments(part.text)):
                yield from _leaf_values(leaf)


def quoted_values(turn: Segment) -> Iterator[str]:
    """Yields the identifiers, numbers and paths in a turn's text, in their order."""
    for part in turn.parts:
        if part.type == "text":
            yield from _tokens(part.text)


def fact_kind(value: str) -> str:
    """Returns the `KeyFact.kind` of a derived value."""
    if _NUMBER.fullmatch(value):
        return "number"
    if "\n" in value or len(value.split()) > 1:
        return "line"
    return "path" if "/" in value else "identifier"


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield json.dumps(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)


def _leaf_values(leaf: str) -> Iterator[str]:
    whole = leaf.strip()
    if len(whole) <= MAX_VALUE_CHARS and not _is_trivial(whole):
        yield whole
    # agents that write scripts put the line breaks of a patch into them as escapes
    lines = whole.replace("\\n", "\n").split("\n")
    if len(lines) > 1:
        for line in lines:
            line = line.strip(_DIFF_MARKS)
            if MIN_LINE_CHARS <= len(line) <= MAX_VALUE_CHARS and not _is_trivial(line):
                yield line
    elif " " in whole or len(whole) > MAX_VALUE_CHARS:
        yield from _tokens(whole)


def _tokens(text: str) -> Iterator[str]:
    for token, colon in _TOKEN.findall(text):
        if not _IDENTIFIER.search(token) or (colon and token.isidentifier()):
            continue  # a word before a colon is a key: it names a value and is none
        if (len(token) >= _MIN_QUOTE_CHARS or token.isdigit()) and not _is_trivial(token):
            yield token


def _is_trivial(value: str) -> bool:
    """True for what proves nothing: short, common, or without a word in it."""
    if _NUMBER.fullmatch(value):
        return sum(character.isdigit() for character in value) < _MIN_DIGITS
    if len(value) < _MIN_VALUE_CHARS or value.lower() in _COMMON:
        return True
    return not any(character.isalnum() for character in value)
