"""A real model in the reader's place, asked for each demand about the context as it stands."""

from __future__ import annotations

from contextpilot.core.context import Context
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.readers.base import Message, Reader, joined, question
from contextpilot_envs.tasks.base import Demand


def ask(reader: Reader, context: Context, demand: Demand, goal: str, language: str) -> str:
    """Returns a reader's answer to a demand, from what is visible.

    Raises:
        ReaderError: as the reader does.
    """
    asked = {"role": "user", "content": question(demand.query or goal, language)}
    return reader.answer(joined([*visible_messages(context), asked]))


def visible_messages(context: Context) -> list[Message]:
    """Returns the context as messages of three roles; calls and results are told as text.

    Chat templates of small models know no tools, and what is read does not depend on the wire form.
    """
    messages: list[Message] = []
    for index in context.visible():
        text = context.text(index)
        if text.strip():
            segment = context.entries[index].segment
            messages.append({"role": _role(segment), "content": _told(segment, text)})
    return messages


def _role(segment: Segment) -> str:
    if segment.role == Role.SYSTEM:
        return "system"
    return "assistant" if segment.role == Role.ASSISTANT else "user"


def _told(segment: Segment, text: str) -> str:
    if segment.kind == Kind.RESULT:
        return f"[{segment.name or 'tool'} result]\n{text}"
    return text
