"""What a reader is, how it is asked, and how its answer is scored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

Message: TypeAlias = Mapping[str, str]
"""A role ("system", "user" or "assistant") and its content; users and assistants alternate."""

MISSING = "MISSING"
"""What a reader answers where the conversation does not say it; asking for an original follows."""

INSTRUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "en": (
            "Answer from the conversation above alone. State every value exactly as it is "
            "written there, and nothing else. If it is not there, answer with the one word "
            f"{MISSING}. Question: what does it say about: {{query}}?"
        ),
        "zh": (
            "只根据上面的对话回答。逐字写出其中的每个数值、名称和编号，不要写别的。"
            f"如果对话中没有，只回答 {MISSING}。问题：关于“{{query}}”，对话里是怎么说的？"
        ),
    }
)
"""By language; all that a reader is told besides the context."""

_SPACE = re.compile(r"\s+")


class Reader(Protocol):
    """A model that answers from messages. Safe to share; an answer depends on the request alone."""

    name: str

    def answer(self, messages: Sequence[Message]) -> str:
        """Returns the answer to the last message, a user's.

        Raises:
            ReaderError: when the model cannot be reached or takes no request of this length.
        """
        ...


def question(query: str, language: str) -> str:
    """Returns what is asked for a query, in the task's language."""
    return INSTRUCTIONS.get(language, INSTRUCTIONS["en"]).format(query=query)


def states(answer: str, value: str) -> bool:
    """True where an answer has a key point: the value, but for case, width and white space."""
    return _plain(value) in _plain(answer)


def says_missing(answer: str) -> bool:
    """True where the reader noticed that the conversation does not say it."""
    return MISSING.casefold() in answer.casefold()


def joined(messages: Sequence[Message]) -> list[Message]:
    """Returns messages whose neighbours of one role are one: many chat templates refuse others."""
    out: list[dict[str, str]] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            out[-1]["content"] += "\n\n" + message["content"]
        else:
            out.append({"role": message["role"], "content": message["content"]})
    return list(out)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()
