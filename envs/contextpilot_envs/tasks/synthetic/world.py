"""Who is who in a task: subjects, the papers about them, when those arrive, what they state.

Everything here is made before anything is asked, and in the same way for every subject. What will
be needed is then drawn from it (`demands.py`), so that nothing but the goal tells it apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from contextpilot_envs.tasks.synthetic.config import SyntheticConfig
from contextpilot_envs.tasks.synthetic.family import Family
from contextpilot_envs.tasks.synthetic.templates import (
    LOSSY_KINDS,
    FactTemplate,
    FamilyText,
    Topic,
)
from contextpilot_envs.tasks.synthetic.words import Words

CARRIERS = ("result", "document", "user")
_EXTRA_PAPERS, _EXTRA_SHARE = 2, 0.15
"""Papers beyond one a request: so many, and a share of the horizon. They come early: one reads,
then acts. Without them, coming early would be a sign of being needed."""
_HARD_FACTS, _LOSSY_FACTS = 2, 1
"""Facts of each sort in one paper."""
_REVISED_FACTS = 2
"""How many facts of a paper its correction states anew."""


@dataclass(slots=True)
class Fact:
    """A value that a paper states, and the wrong values that are stated elsewhere."""

    template: FactTemplate
    value: str
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Paper:
    """One piece of material: a document, a result or a user text.

    Attributes:
        arrival: request at which it is there.
        carrier: one of `CARRIERS`.
        subject: what it is about; None for a circular without facts.
        topic: what kind of paper it is; None for a circular.
        reference: how it names its subject: by name, or by the alias.
        facts: what can be asked of it.
        link: the sentence that introduces its subject's alias, where it does.
        revises: the paper that it corrects.
        repeats: the paper that it repeats word for word; all else is then ignored.
        title, text: filled in by `compose.py`.
    """

    arrival: int
    carrier: str
    subject: Subject | None = None
    topic: Topic | None = None
    reference: str = ""
    facts: list[Fact] = field(default_factory=list)
    link: Fact | None = None
    revises: Paper | None = None
    repeats: Paper | None = None
    title: str = ""
    text: str = ""


@dataclass(slots=True, eq=False)
class Subject:
    """Something that papers are about: a project, a customer, a service, ..."""

    name: str
    alias: str = ""
    papers: list[Paper] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class World:
    """All papers in order of arrival, and all subjects."""

    papers: tuple[Paper, ...]
    subjects: tuple[Subject, ...]


def make_world(
    rng: Random, words: Words, text: FamilyText, family: Family, config: SyntheticConfig
) -> World:
    """Returns subjects and papers, with facts and without sentences."""
    papers = [
        Paper(arrival, rng.choices(CARRIERS, family.carriers)[0])
        for arrival in _arrivals(rng, config.horizon)
    ]
    stating = _assign_plain_and_repeated(rng, papers, config)
    subjects = []
    for share in _deal(rng, stating, family, config):
        subject = Subject(words.unique(text.phrases["name"]))
        _write_subject(rng, words, text, subject, *share)
        subjects.append(subject)
    words.set_names([subject.name for subject in subjects])
    return World(tuple(papers), tuple(subjects))


def _arrivals(rng: Random, horizon: int) -> list[int]:
    """Returns one arrival for each request from 1, and more of them early than late."""
    requests = range(1, horizon)
    weights = [horizon - request for request in requests]
    extra = rng.choices(requests, weights, k=_EXTRA_PAPERS + round(_EXTRA_SHARE * horizon))
    return sorted([*requests, *extra])


def _assign_plain_and_repeated(
    rng: Random, papers: list[Paper], config: SyntheticConfig
) -> list[Paper]:
    """Sets aside circulars and repetitions; returns the papers that state facts."""
    needed = config.demands + 2
    spare = len(papers) - needed
    repeated = min(round(config.duplication * len(papers)), spare)
    # Rounded down: in a short task a single circular would be a large part of the filler.
    plain = min(int((1 - config.distractor_share) * len(papers)), spare - repeated)
    # What is read twice is read again late.
    copies = set(rng.sample(range(len(papers) // 2, len(papers)), repeated))
    others = [index for index in range(2, len(papers)) if index not in copies]
    circulars = set(rng.sample(others, plain))
    stating: list[Paper] = []
    for index, paper in enumerate(papers):
        if index in copies:
            paper.repeats = rng.choice(stating)
            paper.carrier = paper.repeats.carrier
        elif index not in circulars:
            stating.append(paper)
    return stating


def _deal(
    rng: Random, papers: list[Paper], family: Family, config: SyntheticConfig
) -> list[tuple[str, list[Paper]]]:
    """Deals the papers to subjects, one or two each, and says what sort of subject each is."""
    order = {id(paper): index for index, paper in enumerate(papers)}
    left = rng.sample(papers, len(papers))
    sorts = ("single", "pair", "aliased", "revised")
    ease = 1 - config.difficulty
    weights = (0.3 + 0.4 * ease, 0.2 - 0.1 * ease, 0.4 - 0.25 * ease, family.revised)
    dealt: list[tuple[str, list[Paper]]] = []
    while left:
        # Small worlds need single papers, or there would be too few subjects to ask about.
        scarce = len(left) - 2 < config.demands + 1 - len(dealt)
        sort = "single" if scarce or len(left) == 1 else rng.choices(sorts, weights)[0]
        share = [left.pop() for _ in range(1 if sort == "single" else 2)]
        dealt.append((sort, sorted(share, key=lambda paper: order[id(paper)])))
    return dealt


def _write_subject(
    rng: Random, words: Words, text: FamilyText, subject: Subject, sort: str, papers: list[Paper]
) -> None:
    """Gives each paper of a subject its topic, its reference and its facts."""
    topics = rng.sample(text.topics, len(papers))
    for paper, topic in zip(papers, topics, strict=True):
        paper.subject, paper.topic, paper.reference = subject, topic, subject.name
        subject.papers.append(paper)
    first, last = papers[0], papers[-1]
    if sort == "aliased":
        subject.alias = last.reference = words.unique(text.phrases["alias"])
        known = {"name": subject.name, "alias": subject.alias}
        first.link = Fact(text.link, words.value(text.link, known))
    first.facts = [Fact(template, words.value(template)) for template in _chosen(rng, first)]
    if sort == "revised":
        last.topic, last.revises = first.topic, first
        corrected = rng.sample(first.facts, _REVISED_FACTS)
        last.facts = [
            Fact(old.template, words.value(old.template), [old.value]) for old in corrected
        ]
    elif last is not first:
        last.facts = [Fact(template, words.value(template)) for template in _chosen(rng, last)]


def _chosen(rng: Random, paper: Paper) -> list[FactTemplate]:
    """Returns some of the topic's fact templates of either sort."""
    assert paper.topic is not None
    hard = [fact for fact in paper.topic.facts if fact.kind not in LOSSY_KINDS]
    lossy = [fact for fact in paper.topic.facts if fact.kind in LOSSY_KINDS]
    return rng.sample(hard, _HARD_FACTS) + rng.sample(lossy, _LOSSY_FACTS)
