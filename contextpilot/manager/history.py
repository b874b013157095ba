"""The host's history as it was before any edit, whatever the host passes.

A host may keep its own list, or go on with the requests that it was given. In the second case the
originals are put back where the session's renderings stand, so that everything after this module
sees one history and edits it anew: the same edits on the same originals give the same request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from contextpilot.manager.identity import IdentifiedMessages, MessageIdentity, MessageMatch

Message: TypeAlias = Mapping[str, Any]

_Shown: TypeAlias = tuple[tuple[int, ...], ...]


class Said(NamedTuple):
    """One message of a history, and its number in the conversation."""

    number: int
    message: Message


class HostHistory:
    """Recognises messages across calls and undoes, in the list, what the session did to it.

    Args:
        original: returns the message of a number as it was when it was edited, or None where it
            is not to be had any more.
    """

    def __init__(self, original: Callable[[int], Message | None]) -> None:
        self.identity = MessageIdentity()
        self._original = original
        self._request: _Shown = ()
        self._behind: tuple[int, ...] = ()

    def read(self, messages: Sequence[Message]) -> list[Said]:
        """Returns the history that a list stands for; what is not edited is the host's object.

        A rendering whose original is lost stands for itself, under a number below 0.

        Raises:
            MessageFormatError: for a message that is no dict, or holds what JSON cannot.
        """
        found = self._found(messages)
        shown = tuple(match.numbers for match in found.matches)
        lost = {
            match.numbers
            for match in found.matches
            if match.rendered and any(self._original(n) is None for n in match.numbers)
        }
        begins = len(self._request) if not lost and self._is_request(found, shown) else 0
        if not begins and not any(match.rendered for match in found.matches):
            return [Said(n, message) for (n,), message in zip(shown, messages, strict=True)]
        here = dict[int, Message]()
        numbers = list(self._behind if begins else ())
        for at, (match, message) in enumerate(zip(found.matches, messages, strict=True)):
            stands_for = match.numbers
            if not match.rendered:
                here[stands_for[0]] = message
            elif stands_for in lost:
                stands_for = (-1 - stands_for[0],)
                here[stands_for[0]] = message
            numbers += stands_for if at >= begins else ()
        said = []
        for number in dict.fromkeys(numbers):
            original = here[number] if number in here else self._original(number)
            if original is not None:
                said.append(Said(number, original))
        return said

    def rendered(
        self, messages: Sequence[Message], shows: Sequence[Sequence[int]], history: Sequence[Said]
    ) -> None:
        """Remembers the request that a history was rendered as.

        Args:
            messages: the request.
            shows: for each of its messages, the positions in `history` that it shows.
            history: what `read` returned.
        """
        known = [
            tuple(n if (n := history[at].number) >= 0 else -1 - n for at in positions)
            for positions in shows
        ]
        self.identity.register_rendering(messages, known)
        self._request = tuple(known)
        self._behind = tuple(said.number for said in history)

    def state_dict(self) -> dict[str, Any]:
        """Returns what a restarted session needs, as plain JSON."""
        return {
            "identity": self.identity.state_dict(),
            "request": [list(numbers) for numbers in self._request],
            "behind": list(self._behind),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces everything by what `state_dict` returned.

        Raises:
            ConfigurationError: as `MessageIdentity.load_state_dict`.
        """
        self.identity.load_state_dict(state["identity"])
        self._request = tuple(tuple(numbers) for numbers in state["request"])
        self._behind = tuple(state["behind"])

    def _found(self, messages: Sequence[Message]) -> IdentifiedMessages:
        """Returns what the messages are.

        What a host says behind a request is new, even where it equals what the request hides.
        """
        found, length = self.identity.identify(messages), len(self._request)
        shown = tuple(match.numbers for match in found.matches)
        if not length or self._is_own(found):
            return found
        if shown[:length] == self._request:
            hidden = set(self._behind).difference(*self._request)
            if hidden.isdisjoint(chain.from_iterable(shown[length:])):
                return found
        return self.identity.as_request(self._request, self._behind) or found

    def _is_own(self, found: IdentifiedMessages) -> bool:
        """True where the host's list is the history as it was, cut or grown."""
        own = [MessageMatch((number,)) for number in self._behind]
        return list(found.matches[: len(own)]) == own[: len(found.matches)]

    def _is_request(self, found: IdentifiedMessages, shown: _Shown) -> bool:
        """True where a list begins with the last request, and that is not how the history began."""
        length = len(self._request)
        if not length or shown[:length] != self._request:
            return False
        if any(match.rendered for match in found.matches[:length]):
            return True
        own = tuple((number,) for number in self._behind)
        if length < len(shown) and (self._is_own(found) or self._request == own[:length]):
            return False  # an answer made anew is likelier than a request that lost its end
        return self._request != own
