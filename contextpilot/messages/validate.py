"""Would a provider take this message list? The rules that requests are refused for, by name.

| rule | format | broken when |
|---|---|---|
| empty_list | both | there is no message at all |
| foreign | both | blocks or calls of another format |
| shape | both | an entry is no dict, or its content neither text nor blocks |
| role | both | a role that the format does not have at this place |
| late_system | openai | a system or developer message after the conversation began |
| first_user | anthropic | the first message is not the user's |
| empty_content | both | a message says nothing at all |
| empty_text | anthropic | a text or compaction block is blank |
| empty_calls | openai | `tool_calls` is an empty list |
| reasoning_only | both | an assistant message is nothing but reasoning |
| blank_thinking | anthropic | signed thinking whose text was removed |
| arguments | both | call arguments are not JSON (OpenAI), not an object (Anthropic) |
| duplicate_call | both | two calls of one turn share an id |
| dangling_call | both | a call has no result right after its turn, and more follows |
| orphan_result | both | a result answers no call of the turn right before it |
| duplicate_result | both | a second result for one call |
| result_order | anthropic | a result stands behind other blocks of its message |
| server_pair | anthropic | a server-side call or its result is alone in its turn |

"Both" are openai and anthropic. The rules of "responses" lists, which are lists of items rather
than of messages, stand in `contextpilot.messages.responses_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.messages.anthropic_rules import anthropic_problems
from contextpilot.messages.openai_rules import openai_problems
from contextpilot.messages.problem import Problem
from contextpilot.messages.responses_rules import responses_problems

__all__ = ["Problem", "problems"]

_RULES: Mapping[str, Callable[[Sequence[Any]], list[Problem]]] = MappingProxyType(
    {
        "anthropic": anthropic_problems,
        "openai": openai_problems,
        "responses": responses_problems,
    }
)


def problems(format: str, messages: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """Returns every problem of a message list, in message order; none for a valid list.

    Calls that are still without results at the end of the list are no problem: they are pending.

    Args:
        format: "openai", "anthropic" or "responses".
        messages: the list as it would be sent.

    Raises:
        ConfigurationError: for an unknown format.
    """
    if format not in _RULES:
        raise ConfigurationError(
            f"unknown message format. Received {format!r}.{did_you_mean(format, _RULES)}"
        )
    if len(messages) == 0:
        return (Problem(0, "empty_list", "a request needs a message"),)
    return tuple(sorted(_RULES[format](messages), key=lambda problem: problem.index))
