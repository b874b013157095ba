"""Plays a world and its questions: who says what at which request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from contextpilot_envs.tasks.synthetic.demands import Question
from contextpilot_envs.tasks.synthetic.family import Family
from contextpilot_envs.tasks.synthetic.stream import Call, Stream
from contextpilot_envs.tasks.synthetic.templates import FamilyText
from contextpilot_envs.tasks.synthetic.words import Words
from contextpilot_envs.tasks.synthetic.world import Paper, World


class Play:
    """One task as it is played, from the goal to what arrives before the last request."""

    def __init__(
        self,
        rng: Random,
        words: Words,
        text: FamilyText,
        family: Family,
        world: World,
        questions: Sequence[Question],
        horizon: int,
    ) -> None:
        self._rng = rng
        self._words = words
        self._text = text
        self._family = family
        self._horizon = horizon
        self._faced = {question.request: question for question in questions}
        self._papers: dict[int, list[Paper]] = defaultdict(list)
        for paper in world.papers:
            self._papers[paper.arrival].append(paper)
        self._claims = self._false_claims(world)

    def stream(self) -> Stream:
        """Returns the whole stream."""
        stream = Stream()
        stream.user(0, self._goal(), pinned=True)
        for request in range(1, self._horizon):
            self._turn(stream, request)
            for paper in self._papers[request]:
                if paper.carrier == "document":
                    stream.document(request, paper.text, paper.title)
            for said in self._user_texts(request):
                stream.user(request, said)
        final = self._faced[self._horizon - 1]
        stream.bill(self._fill("answer", final))
        return stream

    def _fill(self, phrase: str, question: Question) -> str:
        return self._words.fill(self._text.phrases[phrase], question.slots(self._text))

    def _goal(self) -> str:
        items = [self._fill("goal_item", question) for question in self._faced.values()]
        self._rng.shuffle(items)
        return self._words.fill(self._text.phrases["goal"], {"items": "\n".join(items)})

    def _turn(self, stream: Stream, request: int) -> None:
        """Adds the turn that answers the request before, and the results that it called for."""
        sentences = list(self._claims[request])
        arguments: dict[str, str] = {}
        called = [paper for paper in self._papers[request] if paper.carrier == "result"]
        answered = self._faced.get(request - 1)
        if answered is not None:
            sentences.append(self._fill("answer", answered))
            facts = answered.slots(self._text)["facts"]
            if self._family.quotes_in_calls and called:
                arguments["using"] = facts
            elif self._family.quotes_in_calls:
                sentences.append(facts)
        if called or not sentences:
            sentences.append(self._words.pick(self._text.turns))
        calls = []
        for paper in called:
            topic = (paper.repeats or paper).topic or self._words.pick(self._text.topics)
            calls.append(Call(topic.tool, {"about": paper.title, **arguments}, paper.text))
            arguments = {}
        stream.turn(request, self._text.phrases["space"].join(sentences), calls)

    def _user_texts(self, request: int) -> list[str]:
        """Returns what the user says, the announcement of the next demand on top of it."""
        said = [paper.text for paper in self._papers[request] if paper.carrier == "user"]
        ahead = self._faced.get(request + 1)
        if ahead is not None and ahead.announced:
            announcement = self._words.fill(
                self._words.pick(self._text.announce), ahead.slots(self._text)
            )
            said[:1] = ["\n\n".join([announcement, *said[:1]])]
        return said

    def _false_claims(self, world: World) -> dict[int, list[str]]:
        """Returns wrong claims by request, and notes each wrong value with its fact."""
        claims: dict[int, list[str]] = defaultdict(list)
        for paper in world.papers:
            early = paper.arrival <= self._horizon - 3
            if paper.subject is None or not early or self._rng.random() >= self._family.misled:
                continue
            fact = self._rng.choice(paper.facts)
            wrong = self._words.value(fact.template)
            fact.wrong.append(wrong)
            slots = {
                "name": paper.subject.name,
                "attribute": fact.template.attribute,
                "v": wrong,
            }
            claims[self._rng.randrange(paper.arrival + 2, self._horizon)].append(
                self._words.fill(self._text.phrases["misleading"], slots)
            )
        return claims
