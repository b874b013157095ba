"""GitHub Copilot CLI event files. Of usage they report the output only."""

from __future__ import annotations

import json
from typing import Any

from contextpilot_envs.tasks.transcripts.base import Entry, Episode, Usage, as_count


class CopilotReader:
    """Turns message and tool events into chat messages; `session.compaction_complete` splits."""

    agent = "copilot"

    def __init__(self) -> None:
        self._episodes = [Episode(self.agent)]
        self._texts: list[Any] = []

    @staticmethod
    def matches(entry: Entry) -> bool:
        """True for an event line: a dotted type with data."""
        return "." in str(entry.get("type", "")) and isinstance(entry.get("data"), dict)

    def add(self, entry: Entry) -> None:
        """Takes an event; those of sub-agents and of the user interface are passed over."""
        kind, data = entry["type"], entry["data"]
        if data.get("parentToolCallId"):
            return
        if kind in ("system.message", "user.message"):
            self._add_text(kind.removesuffix(".message"), data.get("content"))
        elif kind == "assistant.message":
            self._add_turn(data)
        elif kind == "tool.execution_complete":
            self._episodes[-1].messages.append(
                {"role": "tool", "tool_call_id": data["toolCallId"], "content": _outcome(data)}
            )
        elif kind == "session.compaction_complete" and data.get("success", True):
            self._split(data)

    def finish(self) -> list[Episode]:
        """Returns the episodes, without those in which nothing was said."""
        self._flush()
        return [episode for episode in self._episodes if episode.messages]

    def _add_text(self, role: str, text: str | None) -> None:
        if not text:  # the program notes its own reminders without their words
            return
        self._texts.append({"role": role, "content": text})
        if role == "user":
            self._episodes[-1].metadata.setdefault("goal", text)

    def _add_turn(self, data: dict[str, Any]) -> None:
        calls = [_call(request) for request in data.get("toolRequests") or ()]
        turn = {"role": "assistant", "content": data.get("content") or ("" if not calls else None)}
        if data.get("reasoningText"):
            turn["reasoning_content"] = data["reasoningText"]
        if calls:
            turn["tool_calls"] = calls
        output = as_count(data.get("outputTokens"))
        self._flush()
        self._episodes[-1].add_turn(turn, Usage(output_tokens=output) if output else None)

    def _split(self, data: dict[str, Any]) -> None:
        self._flush()
        metadata = dict(self._episodes[-1].metadata, compacted="before")
        self._episodes.append(Episode(self.agent, metadata=metadata))
        if data.get("summaryContent"):
            self._texts.append({"role": "user", "content": data["summaryContent"]})

    def _flush(self) -> None:
        """Places what was typed while tools ran behind their results."""
        self._episodes[-1].messages.extend(self._texts)
        self._texts = []


def _call(request: dict[str, Any]) -> dict[str, Any]:
    arguments = request.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": request["toolCallId"],
        "type": "function",
        "function": {"name": request["name"], "arguments": arguments},
    }


def _outcome(data: dict[str, Any]) -> str:
    """Returns what the tool gave the model: its content, or the error in its place."""
    result = data.get("result") or data.get("error") or ""
    if isinstance(result, dict):
        result = result.get("content") or result.get("message") or ""
    return str(result)
