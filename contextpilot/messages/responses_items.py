"""What the items of a Responses list are: who wrote them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

CALLS: Mapping[str, str] = MappingProxyType(
    {"function_call": "arguments", "custom_tool_call": "input"}
)
"""Calls of the host's own tools, and where each holds what it passes on."""

OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Results of the host's own tools: a string or a list of parts under `output`."""

ANSWERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # a local shell's result also comes as the output of a function call
        "function_call_output": ("function_call", "local_shell_call"),
        "custom_tool_call_output": ("custom_tool_call",),
        "computer_call_output": ("computer_call",),
        "local_shell_call_output": ("local_shell_call",),
        "shell_call_output": ("shell_call",),
        "apply_patch_call_output": ("apply_patch_call",),
        "mcp_approval_response": ("mcp_approval_request",),
        "tool_search_output": ("tool_search_call",),
    }
)
"""What answers a call, and which kinds of call it answers."""

ANSWERED = frozenset(kind for kinds in ANSWERS.values() for kind in kinds)
"""Kinds of call that something else in the list answers."""

SETTINGS = frozenset(
    {"additional_tools", "configuration_update", "compaction", "compaction_trigger"}
)
"""What steers the whole request, or stands for what went before: neither turn nor input."""


def item_type(item: Mapping[str, Any]) -> str:
    """Returns what an item is; "" where that cannot be told.

    Messages and references may leave out their type.
    """
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference" if "id" in item else ""
    return kind if isinstance(kind, str) else ""


def is_turn_item(item: Mapping[str, Any]) -> bool:
    """True for what the model wrote, and for what the provider's own tools did for it."""
    kind = item_type(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in ANSWERS and kind not in SETTINGS


def call_key(item: Mapping[str, Any]) -> Any:
    """Returns the id that the answer to a call names."""
    return item.get("id" if item_type(item) == "mcp_approval_request" else "call_id")


def answer_key(item: Mapping[str, Any]) -> Any:
    """Returns the id of the call that an item answers."""
    kind = item_type(item)
    if kind == "mcp_approval_response":
        return item.get("approval_request_id")
    if kind == "local_shell_call_output" and item.get("call_id") is None:
        return item.get("id")  # as the provider's types have it
    return item.get("call_id")


def answers(item: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """True where an item answers a call: of its kind, and by its id."""
    kinds = ANSWERS.get(item_type(item), ())
    return item_type(call) in kinds and answer_key(item) == call_key(call)


def runs(
    entries: Iterable[tuple[int, Mapping[str, Any]]],
) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    """Yields (index of the first item, items): an assistant turn as one, any other item alone.

    A turn is what the model wrote in a row, with the answers that stay inside it: those of the
    provider's own tools, and those of calls that the list only refers to. Behind such an answer
    the turn goes on where what follows may need the reasoning at its start.
    """
    start, run = 0, list[Mapping[str, Any]]()
    for index, item in entries:
        if run and not _continues(run, item):
            yield start, run
            run = []
        if not run:
            start = index
        run.append(item)
    if run:
        yield start, run


def _continues(run: Sequence[Mapping[str, Any]], item: Mapping[str, Any]) -> bool:
    if not is_turn_item(run[0]):
        return False
    if not is_turn_item(item):
        return _stays_inside(run, item)
    if is_turn_item(run[-1]):
        return True
    reasoned = any(item_type(before) == "reasoning" for before in run)
    return reasoned and item_type(item) != "reasoning"


def _stays_inside(run: Sequence[Mapping[str, Any]], item: Mapping[str, Any]) -> bool:
    """True for an answer that is not a result of its own."""
    kind = item_type(item)
    if kind not in ANSWERS:
        return False
    if any(answers(item, call) for call in run):
        return kind not in OUTPUTS
    return any(item_type(before) == "item_reference" for before in run)
