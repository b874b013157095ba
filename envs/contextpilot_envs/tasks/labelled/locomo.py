"""LoCoMo: very long conversations between two people, and questions about them at the end.

Its licence (CC BY-NC 4.0) allows tests and evaluation but no training, so the training split is
empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextpilot.errors import ConfigurationError
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.labelled.items import LabelledSource, data_folder, field, read_records
from contextpilot_envs.tasks.synthetic.stream import Stream

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_ADVERSARIAL = 5
"""Category of questions that the conversation does not answer."""


@dataclass(frozen=True, slots=True)
class _Session:
    """One meeting: a title with its date, and (turn id, speaker, words) for each turn."""

    title: str
    turns: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Conversation:
    """The sessions, the questions with the words that answer them, and how many had none."""

    speakers: tuple[str, str]
    sessions: tuple[_Session, ...]
    questions: tuple[tuple[str, tuple[str, ...]], ...]
    skipped: int


class LocomoSource(LabelledSource):
    """Tasks "locomo/conv-26/02": a conversation with a batch of its questions."""

    def __init__(self, data: Path | None = None, questions_per_task: int = 10) -> None:
        """Reads the file.

        Args:
            data: the folder that holds `locomo/`; by default from CONTEXTPILOT_DATA.
            questions_per_task: how many questions are asked at the end of one task.

        Raises:
            TranscriptError: when the file is missing or malformed.
        """
        if questions_per_task < 1:
            raise ConfigurationError(
                f"`questions_per_task` must be 1 or more. Received {questions_per_task}."
            )
        path = data_folder(data) / "locomo" / "locomo7.json"
        self._questions_per_task = questions_per_task
        self._conversations = {}
        for number, record in enumerate(read_records(path), 1):
            where = f"{path}, record {number}"
            self._conversations[field(record, "sample_id", str, where)] = _conversation(
                record, where
            )
        ids = [
            f"locomo/{name}/{batch:02d}"
            for name, conversation in self._conversations.items()
            for batch in range(-(-len(conversation.questions) // questions_per_task))
        ]
        super().__init__("locomo", {"train": [], "validation": ids})

    def load(self, task_id: str) -> Task:
        """Returns a task.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
        """
        self._require(task_id)
        _, name, batch = task_id.split("/")
        conversation = self._conversations[name]
        stream = Stream()
        first, second = conversation.speakers
        stream.user(
            0,
            f"You will read the conversations of {first} and {second}, one session at a time. "
            "At the end I will ask you about details.",
            pinned=True,
        )
        for request, session in enumerate(conversation.sessions, 1):
            stream.turn(request, "I have read it. Please go on.")
            lines = [session.title, *(f"{who}: {words}" for _, who, words in session.turns)]
            stream.document(request, "\n".join(lines), session.title)
        start = int(batch) * self._questions_per_task
        facts: list[KeyFact] = []
        demands = []
        asked = conversation.questions[start : start + self._questions_per_task]
        for number, (question, values) in enumerate(asked, 1):
            request = len(conversation.sessions) + number
            stream.turn(request, "I see. What would you like to know?")
            stream.user(request, question)
            places = tuple(range(len(facts), len(facts) + len(values)))
            facts += [KeyFact(value, "line", stream.stating(value)) for value in values]
            demands.append(Demand(request, places, question, final=True))
        stream.bill("That is what they said about it.")
        return Task(
            id=task_id,
            source=self.name,
            cluster=name,
            goal=stream.segments[0].text,
            segments=tuple(stream.segments),
            arrivals=tuple(stream.arrivals),
            requests=len(stream.output_tokens),
            output_tokens=tuple(stream.output_tokens),
            facts=tuple(facts),
            demands=tuple(demands),
            metadata={"skipped_questions": str(conversation.skipped)},
        )


def _conversation(record: Mapping[str, Any], where: str) -> _Conversation:
    talk = field(record, "conversation", dict, where)
    numbers = sorted(int(match[1]) for key in talk if (match := _SESSION.fullmatch(key)))
    sessions = tuple(_session(talk, number, where) for number in numbers)
    words = {turn_id: text for session in sessions for turn_id, _, text in session.turns}
    questions = []
    skipped = 0
    for entry in field(record, "qa", list, where):
        question = field(entry, "question", str, where)
        values = _evidence(field(entry, "evidence", list, where), words)
        if values and entry.get("category") != _ADVERSARIAL:
            questions.append((question, values))
        else:
            skipped += 1
    speakers = (field(talk, "speaker_a", str, where), field(talk, "speaker_b", str, where))
    return _Conversation(speakers, sessions, tuple(questions), skipped)


def _session(talk: Mapping[str, Any], number: int, where: str) -> _Session:
    key = f"session_{number}"
    place = f"{where}, {key}"
    turns = tuple(
        (
            field(turn, "dia_id", str, place),
            field(turn, "speaker", str, place),
            field(turn, "text", str, place).strip(),
        )
        for turn in field(talk, key, list, place)
    )
    return _Session(f"Session {number}, {field(talk, f'{key}_date_time', str, place)}", turns)


def _evidence(ids: list[Any], words: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the words of the turns that answer a question; none where an id does not resolve.

    Some entries name several turns at once, and some are cut off.
    """
    found: dict[str, None] = {}
    for entry in ids:
        named = [f"D{session}:{turn}" for session, turn in _EVIDENCE.findall(str(entry))]
        if not named or not all(words.get(name) for name in named):
            return ()
        found.update((words[name], None) for name in named)
    return tuple(found)
