"""The sentences that each family is written with, read from the `vocabulary` folder.

A template names its slots in braces. In the template of a fact, square brackets hold the value,
which must be readable word for word. Everything outside the brackets may be lost.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_VALUE = re.compile(r"\[(.+?)\]")
STYLES = ("lines", "paragraphs", "bullets", "table", "json", "log")
LOSSY_KINDS = ("negation", "clause", "ordering")
"""Kinds of facts that a summary loses easily: they have no digits, codes or names to cling to."""


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """A sentence that states a value: `before`, the value, `after`."""

    kind: str
    attribute: str
    before: str
    value: str
    after: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of paper about a subject. `wanted` is how a goal asks for it, in other words."""

    title: str
    wanted: str
    style: str
    tool: str
    facts: tuple[FactTemplate, ...]
    filler: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FamilyText:
    """Everything that one family says in one language."""

    pools: Mapping[str, tuple[str, ...]]
    """Words by slot name."""
    phrases: Mapping[str, str]
    """Single templates by name: name, alias, goal, goal_item, answer, misleading, ..."""
    link: FactTemplate
    filler: tuple[str, ...]
    boilerplate: tuple[str, ...]
    announce: tuple[str, ...]
    turns: tuple[str, ...]
    paste: tuple[str, ...]
    plain_titles: tuple[str, ...]
    topics: tuple[Topic, ...]


_SENTENCES = ("filler", "boilerplate", "announce", "turns", "paste", "plain_titles")
_SLOTS = {"items": "item", "teams": "team", "stems": "stem", "tails": "tail"}


@cache
def family_text(family: str, language: str) -> FamilyText:
    """Returns the texts of a family. Read once per process."""
    own = _read(f"{family}.{language}.toml")
    shared = _read(f"shared.{language}.toml")
    pools = {key: tuple(words) for key, words in shared.items() if isinstance(words, list)}
    pools |= {slot: tuple(own[key]) for key, slot in _SLOTS.items() if key in own}
    phrases = {key: text.strip() for key, text in own.items() if isinstance(text, str)}
    phrases |= {key: text for key, text in shared.items() if isinstance(text, str)}
    link = phrases.pop("link")
    return FamilyText(
        pools=pools,
        phrases=phrases,
        link=_fact_template("identifier", "", link),
        topics=tuple(_topic(table) for table in own["topics"]),
        **{key: tuple(own[key]) for key in _SENTENCES},
    )


def _read(name: str) -> dict[str, Any]:
    text = files(__package__).joinpath("vocabulary", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _topic(table: Mapping[str, Any]) -> Topic:
    rows = [[cell.strip() for cell in row.split("|")] for row in table["facts"]]
    facts = tuple(_fact_template(kind, attribute, line) for kind, attribute, line in rows)
    return Topic(
        table["title"], table["wanted"], table["style"], table["tool"], facts,
        tuple(table["filler"]),
    )  # fmt: skip


def _fact_template(kind: str, attribute: str, line: str) -> FactTemplate:
    before, value, after = _VALUE.split(line)
    return FactTemplate(kind, attribute, before, value, after)
