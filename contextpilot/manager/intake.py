"""A host's lists as the session keeps them: copies that nobody changes, as providers take them.

A host passes its whole history each time, changes messages in place, or parses the list anew. What
is equal (`==`) to what stood at the same place of the last list is the same copy; so everything
behind this module may tell by identity what it knows already. Only what is new is looked at: a
list is valid where it goes on validly from a valid one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from contextpilot.manager.message_key import copied
from contextpilot.manager.tails import LOCAL, Validator, alike
from contextpilot.messages.encodable import fault_of
from contextpilot.messages.repair import Repaired, repair

Message: TypeAlias = Mapping[str, Any]

_WITHIN = ("empty_text", "empty_calls", "arguments")
"""Repairs of one message by itself: they stay the same, whatever is said later."""

_UNCOPIED: Any = object()
"""Stands for what cannot be copied, and equals nothing."""


class Intake:
    """Takes the lists of one conversation."""

    def __init__(self, format: str, pending_wait: int) -> None:
        self._format, self._pending_wait = format, pending_wait
        self._validator = Validator(format)
        self._copies: list[Any] = []
        self._taken: tuple[Sequence[Any], Repaired] = (), repair(format, [])
        self._given: dict[int, Message] = {}

    def take(self, messages: Sequence[Message]) -> Repaired:
        """Returns the list as the session keeps it, repaired.

        Raises:
            MessageFormatError: naming the first message that cannot be read at all.
        """
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
            return repair(self._format, messages, pending_wait=self._pending_wait)  # which raises
        messages = list(messages)
        copies = self._copied(messages)
        kept = [
            given if own is _UNCOPIED else own for own, given in zip(copies, messages, strict=True)
        ]
        self._copies = copies
        self._given = dict(zip(map(id, kept), messages, strict=True))
        last, whole = self._taken
        if len(last) != len(kept) or alike(kept, last) < len(kept) or _UNCOPIED in copies:
            whole = self._repaired(kept, is_plain=_UNCOPIED not in copies)
            self._taken = kept, whole
        return whole

    def given(self, message: Message) -> Message | None:
        """Returns the host's own object of the last list that a message is kept for."""
        return self._given.get(id(message))

    def handed_out(self, message: Message) -> Any:
        """Returns what the host gets for a message: its own object, or one that it may change."""
        own = self._given.get(id(message))
        return copied(message) if own is None else own

    def _copied(self, messages: list[Message]) -> list[Any]:
        """Returns the session's copy of each message, as it was where it was equal."""
        before = self._copies
        same = equal(messages, before)
        out = before[:same]
        for at in range(same, len(messages)):
            message = messages[at]
            is_known = at < len(before) and message == before[at]
            out.append(before[at] if is_known else _copy(message))
        return out

    def _repaired(self, kept: list[Any], is_plain: bool) -> Repaired:
        """Returns a list as providers take it; what is repaired as before is the same object."""
        last, whole = self._taken
        is_aligned = len(whole.messages) == len(last) and all(
            each.rule in _WITHIN for each in whole.repairs
        )
        same = alike(kept, last) if is_aligned else 0
        if kept and is_plain and self._format in LOCAL and (same or not last):
            messages = [*whole.messages[:same], *kept[same:]]
            if not self._validator.problems(messages):
                repairs = tuple(each for each in whole.repairs if each.index < same)
                return Repaired(messages, repairs, frozenset())
        again = repair(self._format, kept, pending_wait=self._pending_wait)
        before = whole.messages
        messages = [
            before[at]
            if at < len(before) and id(message) not in self._given and message == before[at]
            else message
            for at, message in enumerate(again.messages)
        ]
        return Repaired(messages, again.repairs, again.synthetic)


def equal(messages: list[Any], before: list[Any]) -> int:
    """Returns how many leading messages are equal."""
    shared = min(len(messages), len(before))
    if messages[:shared] == before[:shared]:  # one comparison, in C
        return shared
    pairs = zip(messages, before, strict=False)
    return next((at for at, (new, old) in enumerate(pairs) if new != old), shared)


def _copy(message: Any) -> Any:
    """Returns a message in objects of its own, where it is plain JSON that can be encoded."""
    if not isinstance(message, Mapping) or fault_of(message):
        return _UNCOPIED
    try:
        return copied(message)
    except RecursionError:
        return _UNCOPIED
