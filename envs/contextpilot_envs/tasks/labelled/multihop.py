"""Multi-hop questions (MuSiQue, HotpotQA) over paragraphs that arrive a few at a time.

Two to four questions make a task. The paragraphs of each question arrive in a seeded order, and
when the last of them is there, its supporting facts are demanded once. At the end all questions are
answered, so that what was read first has to last longest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from contextpilot.errors import ConfigurationError, TranscriptError
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.labelled.items import (
    LabelledSource,
    by_split,
    data_folder,
    digest,
    field,
    read_records,
)
from contextpilot_envs.tasks.synthetic.stream import Stream

_MUSIQUE, _HOTPOT = "musique_train.json", "hotpotqa_train.json"
_SIZES = (2, 3, 4)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SHORTEST_VALUE = 4
_MOST_MENTIONS = 2
"""An answer that more documents of its question mention is demanded as the sentence around it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its paragraphs.

    Attributes:
        documents: (title, text) of each paragraph, supporting or not.
        facts: (value, kind) of what the supporting paragraphs state.
    """

    id: str
    text: str
    documents: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]


class MultihopSource(LabelledSource):
    """Tasks "multihop/train/004", composed of the questions in `multihop/` of the data folder."""

    def __init__(self, data: Path | None = None, documents_per_request: int = 4) -> None:
        """Reads both files.

        Args:
            data: the folder that holds `multihop/`; by default from CONTEXTPILOT_DATA.
            documents_per_request: how many paragraphs arrive at once.

        Raises:
            TranscriptError: when a file is missing or malformed.
        """
        if documents_per_request < 1:
            raise ConfigurationError(
                f"`documents_per_request` must be 1 or more. Received {documents_per_request}."
            )
        self._documents_per_request = documents_per_request
        questions = {question.id: question for question in _read(data_folder(data) / "multihop")}
        self._groups: dict[str, tuple[Question, ...]] = {}
        ids: dict[str, list[str]] = {}
        for split, items in by_split(questions).items():
            groups = [tuple(questions[item] for item in group) for group in _grouped(items)]
            ids[split] = [f"multihop/{split}/{number:03d}" for number in range(len(groups))]
            self._groups.update(zip(ids[split], groups, strict=True))
        super().__init__("multihop", ids)

    def load(self, task_id: str) -> Task:
        """Returns a task.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
        """
        self._require(task_id)
        questions = self._groups[task_id]
        stream, faced = _play(questions, task_id, self._documents_per_request)
        facts: list[KeyFact] = []
        places: dict[str, tuple[int, ...]] = {}
        for question in questions:
            first = len(facts)
            facts += [KeyFact(value, kind, stream.stating(value)) for value, kind in question.facts]
            places[question.id] = tuple(range(first, len(facts)))
        return Task(
            id=task_id,
            source=self.name,
            cluster=task_id,
            goal=stream.segments[0].text,
            segments=tuple(stream.segments),
            arrivals=tuple(stream.arrivals),
            requests=len(stream.output_tokens),
            output_tokens=tuple(stream.output_tokens),
            facts=tuple(facts),
            demands=tuple(
                Demand(request, places[question.id], question.text, final)
                for request, question, final in faced
            ),
            metadata={"questions": " ".join(question.id for question in questions)},
        )


def _play(
    questions: Sequence[Question], task_id: str, documents_per_request: int
) -> tuple[Stream, list[tuple[int, Question, bool]]]:
    """Returns the stream, and (request, question, final) for each demand."""
    rng = Random(digest(task_id))
    stream = Stream()
    listed = "\n".join(f"{n}. {question.text}" for n, question in enumerate(questions, 1))
    stream.user(0, f"I will send you documents. Answer these from them:\n{listed}", pinned=True)
    faced = []
    request = 0
    for number, question in enumerate(questions, 1):
        documents = rng.sample(question.documents, len(question.documents))
        for start in range(0, len(documents), documents_per_request):
            request += 1
            stream.turn(request, "I have read these. Please send the next documents.")
            if start == 0:
                stream.user(request, f"Here is what I found for question {number}.")
            for title, text in documents[start : start + documents_per_request]:
                stream.document(request, f"{title}\n{text}", title)
        faced.append((request, question, False))
    for number, question in enumerate(questions, 1):
        request += 1
        stream.turn(request, "I have what I need for this one.")
        stream.user(request, f"Please answer question {number} now: {question.text}")
        faced.append((request, question, True))
    stream.bill("This is the answer to the last question, from the documents.")
    return stream, faced


def _grouped(items: Sequence[str]) -> list[list[str]]:
    """Returns groups of two, three and four in turn; a single item left over joins the last."""
    groups: list[list[str]] = []
    start = 0
    while start < len(items):
        size = _SIZES[len(groups) % len(_SIZES)]
        groups.append(list(items[start : start + size]))
        start += size
    if len(groups) > 1 and len(groups[-1]) == 1:
        single = groups.pop()
        groups[-1] += single
    return groups


def _read(folder: Path) -> list[Question]:
    questions = []
    for name, parse in ((_MUSIQUE, _musique), (_HOTPOT, _hotpot)):
        path = folder / name
        for number, record in enumerate(read_records(path), 1):
            questions.append(parse(record, f"{path}, record {number}"))
    return questions


def _musique(record: dict[str, Any], where: str) -> Question:
    """A question whose steps each have an answer in one paragraph."""
    text = field(record, "question", str, where)
    paragraphs = {
        field(paragraph, "idx", int, where): (
            field(paragraph, "title", str, where),
            field(paragraph, "paragraph_text", str, where),
        )
        for paragraph in field(record, "paragraphs", list, where)
    }
    facts = []
    for step in field(record, "question_decomposition", list, where):
        place = field(step, "paragraph_support_idx", int, where)
        if place not in paragraphs:
            raise TranscriptError(
                f"{where}: no paragraph has idx {place}. Leave the record out, or repair it."
            )
        answer = field(step, "answer", str, where)
        mentions = sum(answer in other for _, other in paragraphs.values())
        facts.append(_musique_fact(answer, paragraphs[place][1], text, mentions))
    distinct = tuple(dict.fromkeys(facts))
    documents = tuple(paragraphs.values())
    return Question(field(record, "id", str, where), text, documents, distinct)


def _musique_fact(answer: str, paragraph: str, question: str, mentions: int) -> tuple[str, str]:
    """Returns the answer, or the sentence that states it where the answer alone proves nothing."""
    telling = len(answer) >= _SHORTEST_VALUE and mentions <= _MOST_MENTIONS
    if telling and answer in paragraph and answer not in question:
        return answer, "number" if answer.isdigit() else "name"
    sentences = _SENTENCE.split(paragraph)
    return next((line for line in sentences if answer in line), sentences[0]), "clause"


def _hotpot(record: dict[str, Any], where: str) -> Question:
    """A question whose supporting sentences are given by title and number."""
    sentences: dict[str, list[str]] = {}
    for entry in field(record, "context", list, where):
        title, lines = entry
        sentences[title] = lines
    facts = []
    for title, number in field(record, "supporting_facts", list, where):
        if number >= len(sentences.get(title, ())):
            raise TranscriptError(
                f"{where}: no sentence {number} under {title!r}. Leave it out, or repair it."
            )
        facts.append((sentences[title][number].strip(), "clause"))
    documents = tuple((title, "".join(lines)) for title, lines in sentences.items())
    text = field(record, "question", str, where)
    distinct = tuple(dict.fromkeys(facts))
    return Question(field(record, "_id", str, where), text, documents, distinct)
