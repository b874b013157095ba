"""The task source: from an id to a task with its labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from random import Random

from contextpilot.errors import ConfigurationError, UnknownTaskError
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.splits import SPLITS, check_split
from contextpilot_envs.tasks.synthetic.chat import CHAT
from contextpilot_envs.tasks.synthetic.compose import write_papers
from contextpilot_envs.tasks.synthetic.config import SyntheticConfig
from contextpilot_envs.tasks.synthetic.demands import Question, draw_questions
from contextpilot_envs.tasks.synthetic.docqa import DOCQA
from contextpilot_envs.tasks.synthetic.logs import LOGS
from contextpilot_envs.tasks.synthetic.play import Play
from contextpilot_envs.tasks.synthetic.restock import RESTOCK
from contextpilot_envs.tasks.synthetic.stream import Stream
from contextpilot_envs.tasks.synthetic.templates import family_text
from contextpilot_envs.tasks.synthetic.tools import TOOLS
from contextpilot_envs.tasks.synthetic.words import Words
from contextpilot_envs.tasks.synthetic.world import Fact, make_world

_FAMILIES = {family.name: family for family in (DOCQA, TOOLS, CHAT, LOGS, RESTOCK)}
_NUMBER = re.compile(r"\d{6}")


class SyntheticSource:
    """Generates tasks of one family, language and horizon.

    Ids look like "tools/en/h20/000017". Even numbers are for training, odd ones for validation;
    any number of six digits loads, also beyond those that `ids` lists.
    """

    def __init__(self, config: SyntheticConfig, tasks_per_split: int = 200) -> None:
        """Makes the source.

        Raises:
            ConfigurationError: when `tasks_per_split` is not from 1 to 500,000.
        """
        if not 1 <= tasks_per_split <= 500_000:
            raise ConfigurationError(
                "`tasks_per_split` must be from 1 to 500000, as ids have six digits. "
                f"Received {tasks_per_split}."
            )
        self.config = config
        self.name = f"{config.family}/{config.language}/h{config.horizon}"
        self._tasks_per_split = tasks_per_split

    def ids(self, split: str) -> Sequence[str]:
        """Returns the task ids of "train" or "validation".

        Raises:
            ConfigurationError: when there is no such split.
        """
        first = SPLITS.index(check_split(split))
        return [f"{self.name}/{first + 2 * index:06d}" for index in range(self._tasks_per_split)]

    def load(self, task_id: str) -> Task:
        """Returns the task: the same for the same id and config, always.

        Raises:
            UnknownTaskError: when the id does not belong to this source.
        """
        prefix, _, number = task_id.rpartition("/")
        if prefix != self.name or not _NUMBER.fullmatch(number):
            raise UnknownTaskError(
                f"Task {task_id!r} does not belong to {self.name!r}. Its ids are {self.name}/ "
                "and six digits, and another horizon or language is another source."
            )
        return _generate(task_id, self.config)


def _generate(task_id: str, config: SyntheticConfig) -> Task:
    family = _FAMILIES[config.family]
    text = family_text(config.family, config.language)
    for attempt in count():
        seed = blake2b(f"{task_id}#{attempt}".encode(), digest_size=8).digest()
        rng = Random(int.from_bytes(seed, "big"))
        words = Words(rng, text)
        world = make_world(rng, words, text, family, config)
        questions = draw_questions(rng, world, family, config)
        if questions:
            break
    write_papers(rng, words, text, family, world, config)
    stream = Play(rng, words, text, family, world, questions, config.horizon).stream()
    facts, demands = _label(stream, questions)
    return Task(
        id=task_id,
        source=config.family,
        cluster=f"{config.family}/{config.language}/{task_id.rpartition('/')[2]}",
        goal=stream.segments[0].text,
        segments=tuple(stream.segments),
        arrivals=tuple(stream.arrivals),
        requests=config.horizon,
        output_tokens=tuple(stream.output_tokens),
        facts=facts,
        demands=demands,
        language=config.language,
        success="answer",
        metadata={"family": config.family, "horizon": str(config.horizon)},
    )


def _label(
    stream: Stream, questions: Sequence[Question]
) -> tuple[tuple[KeyFact, ...], tuple[Demand, ...]]:
    """Returns key facts, with all segments found that state them, and demands."""
    facts: list[KeyFact] = []
    demands = []
    for question in questions:
        needed = [*([question.link] if question.link else []), *question.facts]
        places = tuple(range(len(facts), len(facts) + len(needed)))
        facts += [_key_fact(fact, stream) for fact in needed]
        demands.append(Demand(question.request, places, question.query(), final=True))
    return tuple(facts), tuple(demands)


def _key_fact(fact: Fact, stream: Stream) -> KeyFact:
    stating = stream.stating(fact.value)
    wrong = {place for value in fact.wrong for place in stream.stating(value)}
    stale = tuple(sorted(wrong.difference(stating)))
    return KeyFact(fact.value, fact.template.kind, stating, stale)
