"""What sessions send is what the providers' own packages call a message, edited or not."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
from pydantic import TypeAdapter

from contextpilot.manager import Request, Session
from contextpilot.manager.reload_tool import tool_definition

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")
TYPES: dict[str, tuple[Any, Any]] = {
    "openai": (
        openai.types.chat.ChatCompletionMessageParam,
        openai.types.chat.ChatCompletionToolUnionParam,
    ),
    "anthropic": (anthropic.types.MessageParam, anthropic.types.ToolParam),
    "responses": (
        openai.types.responses.ResponseInputItemParam,
        openai.types.responses.ToolParam,
    ),
}
HISTORIES, LONGEST = 150, 60


def exhaust(value: Any) -> Any:
    """Reads iterables to their ends: pydantic checks their items only then."""
    if isinstance(value, dict):
        return {key: exhaust(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [exhaust(item) for item in value]


def refused(adapter: TypeAdapter[Any], messages: Sequence[Any]) -> list[str]:
    found = []
    for message in messages:
        try:
            exhaust(adapter.validate_python(message))
        except ValueError as error:
            found.append(f"{json.dumps(message)[:300]}: {str(error)[:500]}")
    return found


def test_requests_of_random_sessions_have_the_packages_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    soak = importlib.import_module("soak_sessions")
    adapters = {name: TypeAdapter(message) for name, (message, _) in TYPES.items()}
    seen, wrong = dict.fromkeys(TYPES, 0), list[str]()
    prepare = Session.prepare

    def checked(self: Session, *given: Any, **named: Any) -> Request:
        request = prepare(self, *given, **named)
        format = self._config.format
        encodable = [m for m in request.messages if soak.is_encodable([m])]
        seen[format] += len(encodable)
        wrong.extend(refused(adapters[format], encodable))
        return request

    monkeypatch.setattr(Session, "prepare", checked)
    for number in range(HISTORIES):
        assert soak.Drive(11, number, LONGEST).run().violations == []
    assert wrong == []
    assert min(seen.values()) > 1000, seen


@pytest.mark.parametrize("format", TYPES)
def test_the_reload_tool_has_the_packages_type(format: str) -> None:
    assert refused(TypeAdapter(TYPES[format][1]), [tool_definition(format)]) == []


@pytest.mark.parametrize("format", TYPES)
def test_what_is_no_message_is_refused(format: str) -> None:
    wrong = {"role": "assistant", "content": [{"type": "no such block"}], "tool_calls": "none"}
    assert refused(TypeAdapter(TYPES[format][0]), [wrong])
