"""What the items of a Responses list are: who wrote them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextpilot.errors import MessageFormatError, did_you_mean
from contextpilot.messages.checks import malformed

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

MAY_WAIT = ("mcp_approval_request", "tool_search_call")
"""Calls that the conversation may pass over, or that the provider answers itself."""

SETTINGS = frozenset(
    {"additional_tools", "configuration_update", "compaction", "compaction_trigger"}
)
"""What steers the whole request, or stands for what went before: neither turn nor input."""


_RESULTS = "Write the result as a 'function_call_output' item that names the call's 'call_id'."
_REMEDIES = {
    "system": "",
    "developer": "",
    "user": "",
    "assistant": "",
    "tool": _RESULTS,
    "function": _RESULTS,
}


ROLES = tuple(role for role, remedy in _REMEDIES.items() if not remedy)
"""The roles of messages."""


def each_item(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields (index, item).

    Raises:
        MessageFormatError: at the first entry that is no item of a known role.
    """
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Sequence):
        raise MessageFormatError(
            f"items must be a list of dicts. Received {type(items).__name__}. Pass the whole "
            "conversation, oldest item first; a text alone as {'role': 'user', 'content': text}."
        )
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise malformed(
                index, "an item must be a dict", item,
                "Convert SDK objects first, such as with item.model_dump(exclude_unset=True).",
            )  # fmt: skip
        kind = item_type(item)
        if not kind:
            raise malformed(index, "an item needs a 'type'", item, "Set it; messages need a role.")
        if kind == "message":
            _check_role(index, item.get("role"))
        yield index, item


def _check_role(index: int, role: object) -> None:
    if not isinstance(role, str) or role not in _REMEDIES:
        taken = [name for name, remedy in _REMEDIES.items() if not remedy]
        near = did_you_mean(role if isinstance(role, str) else "", taken)
        raise malformed(index, "unknown role", role, f"Set 'role'.{near}")
    if _REMEDIES[role]:
        raise malformed(index, "a role that this format does not take", role, _REMEDIES[role])


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


def blocks(entries: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[int, int]:
    """Returns by index in which block an item is, which goes by the index of its first item.

    A block is what the model wrote in a row, and the answers right behind it; -1 for the others.
    """
    found: dict[int, int] = {}
    block, answered = -1, False
    for index, item in entries:
        is_answer = item_type(item) in ANSWERS
        if is_turn_item(item):
            block = index if block < 0 or answered else block
        elif not is_answer:
            block = -1
        answered = is_answer
        found[index] = block
    return found


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
