"""What providers refuse, made right on the way out; the host's own list stays as it is.

| rule | what is done |
|---|---|
| empty_list | a note says that nothing is left of the conversation |
| shape, role, foreign | nothing can be: an error says where |
| lone_surrogate | replaced by U+FFFD, since no request with them can be encoded |
| late_system | moved behind the system messages in front |
| first_user | a note in front says that the beginning is missing |
| empty_content, reasoning_only | the message is left out; a result without content becomes "" |
| empty_text, empty_calls | the block or the key is left out |
| blank_thinking | the block is left out; behind the open tool loop, all thinking of its turn |
| arguments | parsed, or kept as text under "unparsed_arguments" |
| duplicate_call | the later call gets a suffix, and so does its result |
| dangling_call | a made result says that the call is pending, or that no result ever came |
| late_result | moved beside its call |
| orphan_result | left out |
| duplicate_result | the last one is kept |
| result_order | moved to the front of its message |
| server_pair | what is alone is left out |

Calls that are still without results at the end of the list are pending, and stay so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.messages.repair_anthropic import repair_anthropic
from contextpilot.messages.repair_openai import repair_openai
from contextpilot.messages.repair_record import Repair, Repaired
from contextpilot.messages.repair_responses import repair_responses

__all__ = ["Repair", "Repaired", "repair"]

_REPAIRS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], int], Repaired]] = MappingProxyType(
    {"anthropic": repair_anthropic, "openai": repair_openai, "responses": repair_responses}
)


_NOTHING_LEFT = MappingProxyType(
    {
        "role": "user",
        "content": "[ContextPilot, not the user: nothing is left of this conversation]",
    }
)


def repair(
    format: str, messages: Sequence[Mapping[str, Any]], *, pending_wait: int = 8
) -> Repaired:
    """Returns the message list as providers take it: `problems` finds nothing in it.

    A valid list comes back as it is, and so does a repaired one.

    Args:
        format: "openai", "anthropic" or "responses".
        messages: the list as the host has it; neither it nor a message in it is changed.
        pending_wait: requests, that is assistant messages behind a call, after which its result
            is not waited for any more.

    Raises:
        ConfigurationError: for an unknown format, or a negative wait.
        MessageFormatError: naming the first message that cannot be read: one that is no dict, has
            a role that the format does not have, content that is neither text nor blocks, or calls
            without ids.
    """
    if format not in _REPAIRS:
        raise ConfigurationError(
            f"no repair for this message format. Received {format!r}."
            f"{did_you_mean(format, _REPAIRS)}"
        )
    if pending_wait < 0:
        raise ConfigurationError(
            f"pending_wait must be at least 0. Received {pending_wait!r}. "
            "Pass a number of requests; 0 waits for no result."
        )
    repaired = _REPAIRS[format](messages, pending_wait)
    if repaired.messages:
        return repaired
    made = Repair(0, "empty_list", "a note says that nothing is left of the conversation")
    return Repaired([dict(_NOTHING_LEFT)], (made, *repaired.repairs), frozenset({0}))
