"""Claude Code session files: one JSON object a line, several lines for one assistant message."""

from __future__ import annotations

from typing import Any

from contextpilot_envs.tasks.transcripts.base import (
    Entry,
    Episode,
    Message,
    UnreadableFileError,
    Usage,
)

_TYPES = frozenset({"user", "assistant", "system", "progress", "summary", "file-history-snapshot"})
_FILLED_IN = "<synthetic>"
"""The model name of messages that the program wrote itself: no request stands behind them."""


class ClaudeCodeReader:
    """Merges lines into messages. A `compact_boundary` ends an episode and begins the next."""

    agent = "claude_code"

    def __init__(self) -> None:
        self._episodes = [Episode(self.agent, "anthropic")]
        self._sidechain: bool | None = None
        self._turn_id = ""
        self._turn: list[Any] = []
        self._usage: Usage | None = None
        self._results: list[Any] = []
        self._rest: list[Any] = []

    @staticmethod
    def matches(entry: Entry) -> bool:
        """True for a conversation line: a known type, a message with a role, a line id."""
        message = entry.get("message")
        return (
            entry.get("type") in _TYPES
            and ("uuid" in entry or "sessionId" in entry)
            and (not isinstance(message, dict) or "role" in message)
        )

    def add(self, entry: Entry) -> None:
        """Takes a line; what is not part of the conversation of this file is passed over."""
        kind = entry.get("type")
        if kind == "system" and entry.get("subtype") == "compact_boundary":
            self._split(entry)
        if kind not in ("user", "assistant"):
            return
        if str(entry.get("agentId", "")).startswith("acompact"):
            raise UnreadableFileError(
                "this is the side call that wrote a compaction summary, not a session",
                "Nothing to do: the summary is in the session itself.",
            )
        message = entry["message"]
        content = _blocks(message["content"])
        sidechain = bool(entry.get("isSidechain"))
        if self._sidechain is None:  # a sub-agent's own file consists of sidechain lines
            self._sidechain = sidechain
        if sidechain != self._sidechain:
            return
        if kind == "assistant":
            self._add_assistant(entry, message, content)
        else:
            self._add_user(entry, content)

    def finish(self) -> list[Episode]:
        """Returns the episodes, without those in which nothing was said."""
        self._flush()
        return [episode for episode in self._episodes if episode.messages]

    def _add_assistant(self, entry: Entry, message: Message, content: list[Any]) -> None:
        if message.get("model") == _FILLED_IN or entry.get("isApiErrorMessage"):
            return
        turn_id = str(message.get("id") or entry.get("uuid"))
        if turn_id != self._turn_id:
            self._flush()
            self._turn_id = turn_id
            self._usage = None
        self._turn.extend(content)
        self._usage = _usage(message.get("usage"), self._usage)

    def _add_user(self, entry: Entry, content: list[Any]) -> None:
        for block in content:
            is_result = block.get("type") == "tool_result"
            (self._results if is_result else self._rest).append(block)
        metadata = self._episodes[-1].metadata
        if "goal" in metadata or entry.get("isMeta"):
            return
        texts = [block["text"] for block in content if block.get("type") == "text"]
        if texts:
            metadata["goal"] = "\n".join(texts)

    def _split(self, entry: Entry) -> None:
        self._flush()
        self._turn_id = ""
        before = self._episodes[-1].metadata
        metadata = {"compacted": "before"}
        if "goal" in before:  # the summary stands first now; the goal is still the user's
            metadata["goal"] = before["goal"]
        tokens = (entry.get("compactMetadata") or {}).get("preTokens")
        if tokens is not None:
            before["compacted_at_tokens"] = str(tokens)
        self._episodes.append(Episode(self.agent, "anthropic", metadata=metadata))

    def _flush(self) -> None:
        """Moves the open assistant message, and what was answered to it, into the episode."""
        episode = self._episodes[-1]
        if self._turn:
            episode.add_turn({"role": "assistant", "content": self._turn}, self._usage)
        answer = self._results + self._rest  # the format wants results first
        if answer:
            episode.messages.append({"role": "user", "content": answer})
        self._turn, self._results, self._rest = [], [], []


def _blocks(content: object) -> list[Any]:
    """Returns content as a list of blocks; a bare string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise TypeError(f"message content is neither a string nor blocks but {type(content)}")
    return content


def _usage(reported: object, earlier: Usage | None) -> Usage | None:
    """Reads the usage of one line. Lines of one message repeat it; output may still grow."""
    if not isinstance(reported, dict):
        return earlier
    cached = int(reported.get("cache_read_input_tokens") or 0)
    written = int(reported.get("cache_creation_input_tokens") or 0)
    total = int(reported.get("input_tokens") or 0) + cached + written
    output = int(reported.get("output_tokens") or 0)
    if earlier is not None:
        output = max(output, earlier.output_tokens or 0)
    return Usage(total, cached, output) if total or output else earlier
