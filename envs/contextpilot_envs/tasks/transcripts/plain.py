"""Plain conversations: lists of OpenAI or Anthropic messages, whole or one message a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from contextpilot_envs.tasks.transcripts.base import Entry, Episode, Message, Usage, WireFormat

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


class PlainMessageReader:
    """Reads JSONL with one message a line: the file is one conversation."""

    agent = "plain"

    def __init__(self) -> None:
        self._messages: list[Message] = []

    @staticmethod
    def matches(entry: Entry) -> bool:
        """True for a message."""
        return is_message(entry)

    def add(self, entry: Entry) -> None:
        """Takes a message."""
        self._messages.append(_checked(entry))

    def finish(self) -> list[Episode]:
        """Returns the conversation."""
        return [conversation(self._messages)] if self._messages else []


def is_message(value: object) -> bool:
    """True where `value` looks like a chat message of either provider."""
    return (
        isinstance(value, dict)
        and value.get("role") in _ROLES
        and ("content" in value or "tool_calls" in value)
    )


def matches(entry: object) -> bool:
    """True for a conversation: a list of messages, or an object that holds one as `messages`."""
    messages = entry.get("messages") if isinstance(entry, dict) else entry
    return isinstance(messages, list) and bool(messages) and is_message(messages[0])


def read(entry: Entry | list[Message]) -> Episode:
    """Returns a conversation as an episode; a top-level `system` goes into its metadata."""
    if isinstance(entry, list):
        return conversation(entry)
    episode = conversation(entry["messages"])
    system = _text(entry.get("system"))
    if system:
        episode.metadata["system"] = system
    if entry.get("id") is not None:
        episode.metadata["session"] = str(entry["id"])
    return episode


def conversation(messages: Sequence[Message], agent: str = "plain") -> Episode:
    """Returns messages as an episode, with the format found from their content.

    Raises:
        TypeError: when an item is not a chat message.
    """
    episode = Episode(agent, detect_format(messages))
    for message in messages:
        checked = _checked(message)
        if checked["role"] == "assistant":
            episode.add_turn(checked, _usage(checked.pop("usage", None)))
            continue
        episode.messages.append(checked)
        if checked["role"] == "user" and "goal" not in episode.metadata:
            text = _text(checked.get("content"))
            if text:
                episode.metadata["goal"] = text
    return episode


def detect_format(messages: Iterable[Message]) -> WireFormat:
    """Returns "anthropic" where a block says so, else "openai": bare texts are valid in both."""
    for message in messages:
        content = message.get("content")
        if message.get("tool_calls") or message.get("role") == "tool":
            return "openai"
        for block in content if isinstance(content, list) else ():
            kind = block.get("type")
            if kind in _ANTHROPIC_BLOCKS or (kind == "image" and "source" in block):
                return "anthropic"
    return "openai"


def _checked(message: Any) -> Message:
    if not is_message(message):
        raise TypeError(f"expected a chat message with role and content. Received {message!r:.80}")
    return dict(message)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def _usage(reported: object) -> Usage | None:
    """Reads usage as either provider reports it."""
    if not isinstance(reported, dict):
        return None
    if "prompt_tokens" in reported:
        details = reported.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens")
        return Usage(reported["prompt_tokens"], cached, reported.get("completion_tokens"))
    if "input_tokens" not in reported:
        return None
    cached = int(reported.get("cache_read_input_tokens") or 0)
    written = int(reported.get("cache_creation_input_tokens") or 0)
    total = int(reported["input_tokens"] or 0) + cached + written
    return Usage(total, cached, reported.get("output_tokens"))
