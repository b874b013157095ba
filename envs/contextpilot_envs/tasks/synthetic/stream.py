"""Turns papers and questions into the stream of a task: who speaks when, in a valid order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.tokenizers.estimate import EstimateTokenizer
from contextpilot_envs.tasks.synthetic.demands import Question
from contextpilot_envs.tasks.synthetic.family import Family
from contextpilot_envs.tasks.synthetic.templates import FamilyText
from contextpilot_envs.tasks.synthetic.words import Words
from contextpilot_envs.tasks.synthetic.world import Paper, World


class Stream:
    """Collects segments with their arrivals."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.arrivals: list[int] = []
        self.output_tokens: list[int] = []
        self._tokenizer = EstimateTokenizer()
        self._calls = 0

    def goal(self, text: str) -> None:
        """Adds the first user text, which is pinned."""
        self._add(0, Role.USER, Kind.TEXT, (Part("text", text),), Source.USER, Trust.USER, True)

    def say(self, request: int, text: str) -> None:
        """Adds a user text."""
        self._add(request, Role.USER, Kind.TEXT, (Part("text", text),), Source.USER, Trust.USER)

    def document(self, request: int, text: str, name: str) -> None:
        """Adds a retrieved document."""
        part = Part("text", text)
        self._add(
            request, Role.USER, Kind.DOCUMENT, (part,), Source.RETRIEVED, Trust.UNTRUSTED, name=name
        )

    def turn(
        self, request: int, text: str, calls: Sequence[tuple[str, Mapping[str, str], str]] = ()
    ) -> None:
        """Adds the agent's turn and the results of its calls.

        `calls` are (tool, arguments, result).
        """
        exchange = f"x{len(self.segments) + 1}" if calls else ""
        parts, results = [Part("text", text)], []
        for tool, arguments, result in calls:
            self._calls += 1
            call_id = f"call_{self._calls}"
            arguments_json = json.dumps(arguments, ensure_ascii=False)
            parts.append(Part("call", arguments_json, name=tool, call_id=call_id))
            results.append((tool, call_id, result))
        self._add(
            request, Role.ASSISTANT, Kind.TURN, tuple(parts), Source.ASSISTANT, Trust.AGENT,
            exchange=exchange,
        )  # fmt: skip
        self.output_tokens.append(self.count(self.segments[-1].text))
        for tool, call_id, result in results:
            self._add(
                request, Role.TOOL, Kind.RESULT, (Part("text", result, call_id=call_id),),
                Source.TOOL, Trust.UNTRUSTED, exchange=exchange, call_id=call_id, name=tool,
            )  # fmt: skip

    def count(self, text: str) -> int:
        """Returns the estimated tokens of `text`."""
        return self._tokenizer.count(text)

    def _add(
        self,
        request: int,
        role: Role,
        kind: Kind,
        parts: tuple[Part, ...],
        source: Source,
        trust: Trust,
        pinned: bool = False,
        exchange: str = "",
        call_id: str = "",
        name: str = "",
    ) -> None:
        number = len(self.segments)
        self.segments.append(
            Segment(
                f"s{number + 1}", role, kind, parts, source, trust, pinned, exchange, call_id, name,
                position=(number, 0),
            )  # fmt: skip
        )
        self.arrivals.append(request)


def play(
    rng: Random,
    words: Words,
    text: FamilyText,
    family: Family,
    world: World,
    questions: Sequence[Question],
    horizon: int,
) -> Stream:
    """Returns the whole stream, from the goal to what arrives before the last request."""
    stream = Stream()
    stream.goal(_goal(rng, words, text, questions))
    papers: dict[int, list[Paper]] = defaultdict(list)
    for paper in world.papers:
        papers[paper.arrival].append(paper)
    claims = _false_claims(rng, words, text, family, world, horizon)
    faced = {question.request: question for question in questions}
    for request in range(1, horizon):
        _turn(stream, words, text, family, request, papers[request], faced, claims[request])
        for paper in papers[request]:
            if paper.carrier == "document":
                stream.document(request, paper.text, paper.title)
        said = [paper.text for paper in papers[request] if paper.carrier == "user"]
        ahead = faced.get(request + 1)
        if ahead is not None and ahead.announced:
            said[:1] = [_with_announcement(words, text, ahead, said)]
        for sentence in said:
            stream.say(request, sentence)
    final = words.fill(text.phrases["answer"], faced[horizon - 1].slots(text))
    stream.output_tokens.append(stream.count(final))
    return stream


def _with_announcement(
    words: Words, text: FamilyText, ahead: Question, said: Sequence[str]
) -> str:
    """Returns the user's request for what comes next, above the first of the texts, if any."""
    announcement = words.fill(words.pick(text.announce), ahead.slots(text))
    return "\n\n".join([announcement, *said[:1]])


def _goal(rng: Random, words: Words, text: FamilyText, questions: Sequence[Question]) -> str:
    items = [words.fill(text.phrases["goal_item"], item.slots(text)) for item in questions]
    rng.shuffle(items)
    return words.fill(text.phrases["goal"], {"items": "\n".join(items)})


def _turn(
    stream: Stream,
    words: Words,
    text: FamilyText,
    family: Family,
    request: int,
    papers: Sequence[Paper],
    faced: Mapping[int, Question],
    claims: Sequence[str],
) -> None:
    """Adds the turn that answers the request before, and the results that it called for."""
    space = text.phrases["space"]
    sentences = list(claims)
    arguments: dict[str, str] = {}
    called = [paper for paper in papers if paper.carrier == "result"]
    answered = faced.get(request - 1)
    if answered is not None:
        slots = answered.slots(text)
        sentences.append(words.fill(text.phrases["answer"], slots))
        if family.quotes_in_calls and called:
            arguments["using"] = slots["facts"]
        elif family.quotes_in_calls:
            sentences.append(slots["facts"])
    if called or not sentences:
        sentences.append(words.pick(text.turns))
    calls = []
    for paper in called:
        topic = (paper.repeats or paper).topic or words.pick(text.topics)
        calls.append((topic.tool, {"about": paper.title, **arguments}, paper.text))
        arguments = {}
    stream.turn(request, space.join(sentences), calls)


def _false_claims(
    rng: Random, words: Words, text: FamilyText, family: Family, world: World, horizon: int
) -> dict[int, list[str]]:
    """Returns wrong claims by request, and notes each wrong value with its fact."""
    claims: dict[int, list[str]] = defaultdict(list)
    for paper in world.papers:
        if paper.subject is None or paper.arrival > horizon - 3 or rng.random() >= family.misled:
            continue
        fact = rng.choice(paper.facts)
        wrong = words.value(fact.template)
        fact.wrong.append(wrong)
        slots = {
            "name": paper.subject.name, "attribute": fact.template.attribute, "v": wrong,
        }  # fmt: skip
        when = rng.randrange(paper.arrival + 2, horizon)
        claims[when].append(words.fill(text.phrases["misleading"], slots))
    return claims
