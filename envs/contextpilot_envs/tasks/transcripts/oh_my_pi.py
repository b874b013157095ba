"""Session files of pi and its fork Oh My Pi: tree entries, one a line, read in written order."""

from __future__ import annotations

from typing import Any

from contextpilot_envs.tasks.transcripts.base import Entry, Episode, Usage

_TYPES = frozenset({"session", "session_init", "model_change", "custom_message", "compaction"})


class OhMyPiReader:
    """Turns entries into Anthropic messages; a `compaction` entry ends an episode."""

    agent = "oh_my_pi"

    def __init__(self) -> None:
        self._episodes = [Episode(self.agent, "anthropic")]
        self._answers: list[Any] = []

    @staticmethod
    def matches(entry: Entry) -> bool:
        """True for a message entry, or for the header that comes before all of them."""
        if entry.get("type") == "message":
            return isinstance(entry.get("message"), dict)
        return entry.get("type") in _TYPES and "timestamp" in entry and "payload" not in entry

    def add(self, entry: Entry) -> None:
        """Takes an entry; changes of settings are passed over."""
        kind = entry.get("type")
        if kind == "message":
            self._add_message(entry["message"])
        elif kind == "custom_message":
            self._answers.extend(_blocks(entry["content"]))
        elif kind == "compaction":
            self._split(str(entry["summary"]))

    def finish(self) -> list[Episode]:
        """Returns the episodes, without those in which nothing was said."""
        self._flush()
        return [episode for episode in self._episodes if episode.messages]

    def _add_message(self, message: dict[str, Any]) -> None:
        role, content = message["role"], _blocks(message["content"])
        if role == "assistant":
            if content:  # an attempt that failed before its first token is no request
                self._flush()
                turn = {"role": "assistant", "content": [_turn_block(block) for block in content]}
                self._episodes[-1].add_turn(turn, _usage(message.get("usage")))
        elif role == "toolResult":
            result = {
                "type": "tool_result",
                "tool_use_id": message["toolCallId"],
                "content": content,
            }
            self._answers.append(result)
        elif role == "user":
            texts = [block["text"] for block in content if block["type"] == "text"]
            self._episodes[-1].metadata.setdefault("goal", "\n".join(texts))
            self._answers.extend(content)

    def _split(self, summary: str) -> None:
        self._flush()
        metadata = dict(self._episodes[-1].metadata, compacted="before")
        self._episodes.append(Episode(self.agent, "anthropic", metadata=metadata))
        self._answers.append({"type": "text", "text": summary})

    def _flush(self) -> None:
        """Appends what was answered to the last turn as one user message, results first."""
        if self._answers:
            self._answers.sort(key=lambda block: block["type"] != "tool_result")
            self._episodes[-1].messages.append({"role": "user", "content": self._answers})
        self._answers = []


def _blocks(content: object) -> list[Any]:
    """Returns content as Anthropic blocks; a bare string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError(f"content is neither a string nor blocks but {type(content)}")
    return [_image(block) if block["type"] == "image" else block for block in content]


def _image(block: dict[str, Any]) -> dict[str, Any]:
    source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
    return {"type": "image", "source": source}


def _turn_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": block["thinking"], "signature": ""}
    if block["type"] == "toolCall":
        call = {"id": block["id"], "name": block["name"], "input": block["arguments"]}
        return {"type": "tool_use", **call}
    return block


def _usage(reported: object) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    cached = int(reported.get("cacheRead") or 0)
    total = int(reported.get("input") or 0) + cached + int(reported.get("cacheWrite") or 0)
    output = int(reported.get("output") or 0)
    return Usage(total, cached, output) if total or output else None
