"""What will be asked: drawn from the world, at the requests where it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from contextpilot_envs.tasks.synthetic.config import SyntheticConfig
from contextpilot_envs.tasks.synthetic.family import Family
from contextpilot_envs.tasks.synthetic.templates import LOSSY_KINDS, FamilyText
from contextpilot_envs.tasks.synthetic.world import Fact, Paper, Subject, World

_LOSSY = 0.42
"""Chance that a demanded fact is of a lossy kind; links are not, which makes a third in all."""
_SECOND_FACT = 0.4
_LATE = 2 / 3
"""Share of the horizon after which things are asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """One demand before it is labelled.

    Attributes:
        request: when it is faced.
        paper: where the facts are.
        facts: of the paper, the ones that are needed.
        announced: a user text asks for it one request ahead.
    """

    request: int
    paper: Paper
    facts: tuple[Fact, ...]
    announced: bool

    @property
    def subject(self) -> Subject:
        """What it is about."""
        assert self.paper.subject is not None
        return self.paper.subject

    @property
    def link(self) -> Fact | None:
        """The sentence that leads from the subject's name to the paper, where one is needed."""
        if self.paper.reference == self.subject.name:
            return None
        return self.subject.papers[0].link

    def slots(self, text: FamilyText) -> dict[str, str]:
        """Returns what templates about this question name."""
        assert self.paper.topic is not None
        attributes = [fact.template.attribute for fact in self.facts]
        stated = [
            text.phrases["answer_fact"].format(attribute=fact.template.attribute, v=fact.value)
            for fact in self.facts
        ]
        return {
            "name": self.subject.name,
            "wanted": self.paper.topic.wanted,
            "attributes": text.phrases["comma"].join(attributes),
            "facts": text.phrases["semicolon"].join(stated),
        }

    def query(self) -> str:
        """Returns what the agent would search with: what it knows, never the values."""
        assert self.paper.topic is not None
        attributes = [fact.template.attribute for fact in self.facts]
        known = [self.subject.name, self.subject.alias if self.link else ""]
        return " ".join(word for word in (*known, self.paper.topic.title, *attributes) if word)


def draw_questions(
    rng: Random, world: World, family: Family, config: SyntheticConfig
) -> tuple[Question, ...]:
    """Returns the questions in the order in which they are faced, each about another subject.

    Empty where the world states too little in time, which happens at the shortest horizons.
    """
    askable = [paper for paper in world.papers if _is_askable(paper)]
    asked: set[int] = set()
    questions = []
    for request in _requests(rng, config):
        there = [paper for paper in askable if paper.arrival < request]
        free = [paper for paper in there if id(paper.subject) not in asked]
        if not free:
            return ()
        paper = _draw_paper(rng, free, request, config)
        asked.add(id(paper.subject))
        announced = rng.random() < family.announced
        questions.append(Question(request, paper, _draw_facts(rng, paper), announced))
    _carry_announcements(world, questions)
    return tuple(questions)


def _carry_announcements(world: World, questions: list[Question]) -> None:
    """Lets the user hand over a paper with each announcement, as users do.

    User texts of one line would otherwise stand out as what never needs to be kept.
    """
    announcing = {question.request - 1 for question in questions if question.announced}
    handed = {paper.arrival for paper in world.papers if paper.carrier == "user"}
    for paper in reversed(world.papers):
        if paper.arrival in announcing - handed:
            paper.carrier = "user"
            handed.add(paper.arrival)


def _is_askable(paper: Paper) -> bool:
    """True for a paper with facts, unless a later one corrects it or leans on it for the name.

    A paper that introduces an alias is needed whenever the other one is. Asked about for itself as
    well, it would be needed twice as often as others, and the alias would give it away.
    """
    if paper.subject is None or paper.link is not None:
        return False
    return paper.subject.papers[-1].revises is not paper


def _requests(rng: Random, config: SyntheticConfig) -> list[int]:
    """Returns one request per demand, all late, the last one at the end."""
    last = config.horizon - 1
    start = min(round(_LATE * config.horizon), config.horizon - config.demands)
    return [*sorted(rng.sample(range(start, last), config.demands - 1)), last]


def _draw_paper(rng: Random, free: list[Paper], request: int, config: SyntheticConfig) -> Paper:
    """Returns a paper with a lag as wished, or as near to it as there is."""
    low, high = (share * config.horizon for share in config.lag)

    def misfit(paper: Paper) -> float:
        lag = request - paper.arrival
        return max(low - lag, lag - high, 0.0)

    best = min(misfit(paper) for paper in free)
    return rng.choice([paper for paper in free if misfit(paper) == best])


def _draw_facts(rng: Random, paper: Paper) -> tuple[Fact, ...]:
    """Returns one or two facts of a paper, a fixed share of them of lossy kinds."""
    left = list(paper.facts)
    drawn = []
    for _ in range(2 if rng.random() < _SECOND_FACT else 1):
        lossy = rng.random() < _LOSSY
        fitting = [fact for fact in left if (fact.template.kind in LOSSY_KINDS) == lossy]
        fact = rng.choice(fitting or left)
        left.remove(fact)
        drawn.append(fact)
    return tuple(drawn)
