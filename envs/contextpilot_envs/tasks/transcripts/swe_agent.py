"""SWE-agent `.traj` files: the chat under `history`, its actions calls or quoted commands."""

from __future__ import annotations

import json
from typing import Any

from contextpilot_envs.tasks.transcripts.base import Entry, Episode, Message


def matches(entry: Entry) -> bool:
    """True for a trajectory document."""
    return isinstance(entry.get("history"), list) or isinstance(entry.get("trajectory"), list)


def read(entry: Entry) -> Episode:
    """Returns the run as an episode of chat messages.

    Runs whose agent quoted its commands in the text become calls of a tool `command`, and what
    the shell answered their results: that is what they are, and what an edit may remove.
    """
    episode = Episode("swe_agent")
    status = (entry.get("info") or {}).get("exit_status")
    if status:
        episode.metadata["exit_status"] = str(status)
    calls: list[str] = []
    for message in entry.get("history") or _from_steps(entry["trajectory"]):
        role, content = message["role"], _text(message["content"])
        if role == "assistant":
            turn = _turn(message, content, f"call_{len(episode.usage)}")
            calls = [call["id"] for call in turn.get("tool_calls", ())]
            episode.add_turn(turn)
        elif calls and (role == "tool" or not message.get("is_demo")):
            call_id = (message.get("tool_call_ids") or calls)[0]
            calls = [call for call in calls if call != call_id]
            result = {"role": "tool", "tool_call_id": call_id, "content": content}
            episode.messages.append(result)
        elif message.get("is_demo"):  # a worked example is instruction, not the task
            episode.messages.append({"role": "system", "content": content})
        else:
            episode.messages.append({"role": role, "content": content})
            if role == "user":
                episode.metadata.setdefault("goal", content)
    return episode


def _turn(message: Message, content: str, call_id: str) -> Message:
    if message.get("tool_calls"):
        return {"role": "assistant", "content": content, "tool_calls": message["tool_calls"]}
    action = message.get("action")
    if not action:
        return {"role": "assistant", "content": content}
    arguments = json.dumps({"command": action}, ensure_ascii=False)
    function = {"name": "command", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": message.get("thought") or None, "tool_calls": calls}


def _from_steps(steps: list[Any]) -> list[Message]:
    """Rebuilds a history from `trajectory`, for files that hold nothing else."""
    history: list[Message] = []
    for step in steps:
        turn = {"role": "assistant", "content": step.get("response") or ""}
        history.append(turn | {key: step.get(key) for key in ("action", "thought")})
        history.append({"role": "user", "content": step.get("observation") or ""})
    return history


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content)
    if isinstance(content, str):
        return content
    raise TypeError(f"message content is neither a string nor parts but {type(content)}")
