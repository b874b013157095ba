"""Writes the papers: sentences around the facts, in the style of each topic.

A fact never stands in the first three or the last two lines of its paper, which is what a fold
leaves visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random

from contextpilot_envs.tasks.synthetic.config import SyntheticConfig
from contextpilot_envs.tasks.synthetic.family import Family
from contextpilot_envs.tasks.synthetic.templates import FamilyText
from contextpilot_envs.tasks.synthetic.words import Words
from contextpilot_envs.tasks.synthetic.world import Fact, Paper, World

_HEAD, _TAIL = 3, 2
"""Filler before and behind the facts; the title stands above."""
_SHORTEST_PAPER = 14
"""Sentences; the same for all, or the short ones would be known to state little."""
_SHORTEST = 0.7
_TOKENS_PER_SENTENCE: Mapping[str, float] = {
    "lines": 13.0, "paragraphs": 14.5, "bullets": 13.0, "table": 13.0, "json": 24.5, "log": 20.5,
}  # fmt: skip
_BOILERPLATE = 0.3
_SILENT_ON_OTHERS = 0.6
"""Share of papers that mention no other subject."""
_LEVELS = ("INFO", "WARN", "ERROR")


def write_papers(
    rng: Random,
    words: Words,
    text: FamilyText,
    family: Family,
    world: World,
    config: SyntheticConfig,
) -> None:
    """Fills in the title and the text of every paper of `world`."""
    for paper in world.papers:
        if paper.repeats is not None:
            paper.title, paper.text = paper.repeats.title, paper.repeats.text
            continue
        style = (paper.topic or words.pick(text.topics)).style
        sentences = _sentences(rng, words, text, paper, _length(rng, family, style, config))
        paper.title = _title(words, text, paper)
        paper.text = _STYLES[style](rng, paper.title, sentences)
        if paper.carrier == "user":
            paper.text = f"{words.pick(text.paste)}\n{paper.text}"


def _title(words: Words, text: FamilyText, paper: Paper) -> str:
    if paper.topic is None:
        return words.fill(words.pick(text.plain_titles))
    title = paper.topic.title
    if paper.revises is not None:
        title = words.fill(text.phrases["revised_title"], {"title": title})
    return words.fill(text.phrases["heading"], {"e": paper.reference, "title": title})


def _length(rng: Random, family: Family, style: str, config: SyntheticConfig) -> int:
    """Returns a number of sentences, with a heavy tail."""
    factor = rng.uniform(*family.long_factor) if rng.random() < family.long else 1.0
    factor *= rng.uniform(_SHORTEST, 2 - _SHORTEST)
    # The long papers raise the mean; the others are shorter for it.
    mean = config.segment_tokens / (1 + family.long * (sum(family.long_factor) / 2 - 1))
    return round(factor * mean / _TOKENS_PER_SENTENCE[style])


def _sentences(
    rng: Random, words: Words, text: FamilyText, paper: Paper, count: int
) -> list[tuple[str, bool]]:
    """Returns the sentences of a paper, and for each whether it states a fact."""
    facts = [*paper.facts, *([paper.link] if paper.link else [])]
    rng.shuffle(facts)
    known = {"e": paper.reference}
    stated = [_state(words, fact, known) for fact in facts]
    filler = _filler(rng, words, text, paper, max(count, _SHORTEST_PAPER) - len(facts))
    if paper.revises is not None:
        filler[0] = text.phrases["revised_note"]
    if rng.random() < _BOILERPLATE:
        filler[-1] = words.pick(text.boilerplate)
    total = len(filler) + len(stated)
    places = sorted(rng.sample(range(_HEAD, total - _TAIL), len(stated)))
    lines = [(sentence, False) for sentence in filler]
    for place, sentence in zip(places, stated, strict=True):
        lines.insert(place, (sentence, True))
    return lines


def _state(words: Words, fact: Fact, known: Mapping[str, str]) -> str:
    """Returns the sentence of a fact, its value in it."""
    template = fact.template
    return words.fill(template.before, known) + fact.value + words.fill(template.after, known)


def _filler(rng: Random, words: Words, text: FamilyText, paper: Paper, count: int) -> list[str]:
    """Returns `count` filler sentences; templates come again only when all were used."""
    own = paper.topic.filler if paper.topic is not None else ()
    templates = [*own, *text.filler]
    if rng.random() < _SILENT_ON_OTHERS:
        templates = [template for template in templates if "{other}" not in template]
    known = {"e": paper.reference}
    drawn: list[str] = []
    while len(drawn) < count:
        rng.shuffle(templates)
        drawn += [words.fill(template, known) for template in templates[: count - len(drawn)]]
    return drawn


Sentences = Sequence[tuple[str, bool]]


def _lines(_: Random, title: str, sentences: Sentences) -> str:
    return "\n".join([title, *(sentence for sentence, _ in sentences)])


def _bullets(_: Random, title: str, sentences: Sentences) -> str:
    return "\n".join([f"## {title}", *(f"- {sentence}" for sentence, _ in sentences)])


def _paragraphs(rng: Random, title: str, sentences: Sentences) -> str:
    """Two or three sentences a line, but for the first and the last lines."""
    texts = [sentence for sentence, _ in sentences]
    middle, lines = texts[_HEAD:-_TAIL], [title, *texts[:_HEAD]]
    gap = " " if title.isascii() else ""
    while middle:
        size = rng.choice((2, 3))
        lines.append(gap.join(middle[:size]))
        middle = middle[size:]
    return "\n".join([*lines, *texts[-_TAIL:]])


def _table(_: Random, title: str, sentences: Sentences) -> str:
    rows = [f"| {number} | {text} |" for number, (text, _) in enumerate(sentences, 1)]
    return "\n".join([title, "| no | entry |", "| --- | --- |", *rows])


def _json(_: Random, title: str, sentences: Sentences) -> str:
    rows = [{"no": number, "entry": text} for number, (text, _) in enumerate(sentences, 1)]
    return json.dumps({"title": title, "rows": rows}, ensure_ascii=False, indent=1)


def _log(rng: Random, title: str, sentences: Sentences) -> str:
    """Timestamped lines. What states a fact is more often an error, but most errors do not."""
    lines = [f"=== {title} === 2025-03-{rng.randrange(11, 29)}"]
    clock = rng.randrange(3600, 80_000) * 1000
    for sentence, states in sentences:
        clock += rng.randrange(20, 9000)
        level = rng.choices(_LEVELS, (4, 3, 3) if states else (7, 2, 2))[0]
        minutes, second = divmod(clock // 1000, 60)
        stamp = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
        lines.append(f"{stamp} {level:5} {sentence}")
    return "\n".join(lines)


_STYLES: Mapping[str, Callable[[Random, str, Sentences], str]] = {
    "lines": _lines,
    "paragraphs": _paragraphs,
    "bullets": _bullets,
    "table": _table,
    "json": _json,
    "log": _log,
}
