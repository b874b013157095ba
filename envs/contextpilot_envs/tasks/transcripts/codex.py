"""Codex rollouts: items of the Responses API, one a line, with usage events between requests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from contextpilot_envs.tasks.transcripts.base import Entry, Episode, Message, Usage, as_count

_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_ROLES = {"user": "user", "developer": "system", "system": "system"}
_PREAMBLES = ("<", "# AGENTS.md")
"""How user texts begin that the program, not the user, wrote."""


class CodexReader:
    """Groups items into one assistant message a request; `compacted` ends an episode.

    A request's items end at its `token_count` event. Older rollouts have none: there a request
    also ends where the model speaks again after results or a user text.
    """

    agent = "codex"

    def __init__(self) -> None:
        self._episodes = [Episode(self.agent)]
        self._turn: Message | None = None
        self._answers: list[Message] = []
        self._closed = False

    @staticmethod
    def matches(entry: Entry) -> bool:
        """True for a rollout line: a known type with a payload."""
        return entry.get("type") in _TYPES and isinstance(entry.get("payload"), dict)

    def add(self, entry: Entry) -> None:
        """Takes a line; events other than token counts repeat what the items say."""
        kind, payload = entry["type"], entry["payload"]
        if kind == "response_item":
            self._add_item(payload)
        elif kind == "compacted":
            self._split(payload)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            self._add_usage(payload)

    def finish(self) -> list[Episode]:
        """Returns the episodes, without those in which nothing was said."""
        self._flush()
        return [episode for episode in self._episodes if episode.messages]

    def _add_item(self, item: dict[str, Any]) -> None:
        kind = item["type"]
        if kind == "message" and item["role"] == "assistant":
            self._speak("content", _text(item["content"]))
        elif kind == "message":
            self._add_input(item)
        elif kind == "reasoning":
            self._speak("reasoning_content", _text(item.get("summary") or []))
        elif kind == "function_call":
            self._call(item, "function", name=item["name"], arguments=item["arguments"])
        elif kind == "custom_tool_call":
            self._call(item, "custom", name=item["name"], input=item["input"])
        elif kind == "local_shell_call":
            arguments = json.dumps(item["action"], ensure_ascii=False)
            self._call(item, "function", name="shell", arguments=arguments)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            content = _output(item["output"])
            self._answers.append(
                {"role": "tool", "tool_call_id": item["call_id"], "content": content}
            )
        elif kind == "web_search_call":  # the provider searched; no result is recorded
            action = item.get("action") or {}
            self._speak("content", f"[web search: {action.get('query') or action.get('url', '')}]")

    def _add_input(self, item: dict[str, Any]) -> None:
        message = {"role": _ROLES[item["role"]], "content": _output(item["content"])}
        self._answers.append(message)
        metadata = self._episodes[-1].metadata
        if message["role"] == "user" and "goal" not in metadata:
            said = [text for text in _texts(item["content"]) if not text.startswith(_PREAMBLES)]
            if said:
                metadata["goal"] = "\n".join(said)

    def _open(self) -> Message:
        """Returns the assistant message of the current request, beginning a new one if due."""
        turn = self._turn
        if turn is None or self._closed or self._answers:
            self._flush()
            turn = self._turn = {"role": "assistant", "content": None}
            self._episodes[-1].add_turn(turn)
        return turn

    def _speak(self, field: str, text: str) -> None:
        if not text:
            return
        turn = self._open()
        turn[field] = f"{turn[field]}\n\n{text}" if turn.get(field) else text

    def _call(self, item: dict[str, Any], kind: str, **body: str) -> None:
        call = {"id": item["call_id"], "type": kind, kind: body}
        self._open().setdefault("tool_calls", []).append(call)

    def _add_usage(self, payload: dict[str, Any]) -> None:
        reported = payload.get("last_token_usage") or (payload.get("info") or {}).get(
            "last_token_usage"
        )
        total = as_count((reported or {}).get("input_tokens"))
        if reported is None or total is None or self._turn is None:
            return
        cached = int(reported.get("cached_input_tokens") or 0)
        output = as_count(reported.get("output_tokens"))
        self._episodes[-1].usage[-1] = Usage(total, cached, output)
        self._closed = True

    def _split(self, payload: dict[str, Any]) -> None:
        summary = {"type": "message", "role": "user", "content": payload.get("message") or ""}
        history = payload.get("replacement_history") or [summary]
        self._flush()
        metadata = dict(self._episodes[-1].metadata, compacted="before")
        self._episodes.append(Episode(self.agent, metadata=metadata))
        for item in history:
            if item.get("type") == "message" and item.get("role") in _ROLES:
                self._add_input(item)
            elif item.get("type") == "message":
                self._speak("content", _text(item["content"]))

    def _flush(self) -> None:
        if self._turn is not None and "tool_calls" not in self._turn:
            self._turn["content"] = self._turn["content"] or ""
        # what the user typed while tools ran is recorded before their results
        self._answers.sort(key=lambda message: message["role"] != "tool")
        self._episodes[-1].messages.extend(self._answers)
        self._turn, self._answers, self._closed = None, [], False


def _texts(content: str | Iterable[dict[str, Any]]) -> list[str]:
    """Returns the texts of content parts, images left out."""
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part.get("text")]


def _text(content: str | Iterable[dict[str, Any]]) -> str:
    """Returns the texts of content parts as one."""
    return "\n".join(_texts(content))


def _output(content: str | Iterable[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Returns content as a chat message holds it: a string, or parts where images are among it."""
    if isinstance(content, str):
        return content
    parts = list(content)
    if not any(part.get("type") == "input_image" for part in parts):
        return _text(parts)
    return [
        {"type": "image_url", "image_url": {"url": part["image_url"]}}
        if part.get("type") == "input_image"
        else {"type": "text", "text": part.get("text") or ""}
        for part in parts
    ]
