"""Which message is which, across calls: the host passes its whole history each time.

Every message that a conversation has ever had has a number, by order of first sight. A list is
matched in two steps:

1. The longest prefix that is equal (`==`) to the previous list, or to the request that was last
   rendered, keeps its numbers. Both are held as structural copies, so that a host that changes its
   messages in place is noticed.
2. Behind it, each message is looked up by its key, a hash of its own content alone. The k-th
   message of a key in a list is the k-th that was ever seen of it. A key never depends on other
   messages, so an edit, a cut or a branch in the host's list leaves the identity of the others.

A message that is not known by its key may be one that the session rendered itself (a stub, a
summary): it then stands for the messages that `register_rendering` named. It does so only while
none of them is in the list already; so a user who pastes a summary into a full history wrote a new
message. No text is ever parsed.

Equal messages cannot be told apart behind a cut or a change: of three equal ones whose first was
trimmed, the rest are taken for the first two.

Cost: a call with the same list, or one that has grown, compares the prefix in one list comparison
and hashes only what is new: at 400 messages about 0.05 ms for the same list and 0.1 ms for one more
message, where hashing all takes 10 ms and more. Behind a change only messages that differ from the
previous list at their own position are hashed, and all of them after a restart.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from contextpilot.errors import ConfigurationError
from contextpilot.manager.message_key import copied, message_key

_STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """What one message of a list is.

    Attributes:
        numbers: its number; where `rendered`, the numbers that it stands for, in host order: none
            for what the session added of its own, several for a summary of several.
        rendered: the session wrote it, so its content is not the host's.
    """

    numbers: tuple[int, ...]
    rendered: bool = False


@dataclass(frozen=True, slots=True)
class IdentifiedMessages:
    """A list, message by message.

    Attributes:
        matches: one for each message. The same number does not promise the same bytes: volatile
            fields may differ, so what is sent is the host's own object of this call.
        new: positions of the messages that were never seen before.
    """

    matches: tuple[MessageMatch, ...]
    new: tuple[int, ...]


@dataclass(slots=True)
class _Track:
    """A list as it was, position by position."""

    copies: list[Any] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    matches: list[MessageMatch] = field(default_factory=list)

    def same(self, messages: list[Mapping[str, Any]]) -> int:
        """Returns how many leading messages are equal."""
        shared = min(len(messages), len(self.copies))
        if messages[:shared] == self.copies[:shared]:  # one comparison, in C
            return shared
        pairs = zip(messages, self.copies, strict=False)
        return next((i for i, (new, old) in enumerate(pairs) if new != old), shared)

    def upto(self, length: int) -> _Track:
        """Returns the first `length` positions, as a track of its own."""
        return _Track(self.copies[:length], self.keys[:length], self.matches[:length])

    def add(self, copy: Any, key: str, match: MessageMatch) -> None:
        """Appends a position."""
        self.copies.append(copy)
        self.keys.append(key)
        self.matches.append(match)


class MessageIdentity:
    """Numbers the messages of one conversation. Not thread-safe: its session has the lock."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._known: dict[str, list[int]] = {}
        self._renderings: dict[str, list[tuple[int, ...]]] = {}
        self._host, self._shown = _Track(), _Track()

    def __len__(self) -> int:
        """How many messages were ever seen; the next new one has this number."""
        return len(self._keys)

    def identify(self, messages: Sequence[Mapping[str, Any]]) -> IdentifiedMessages:
        """Returns what each message of the host's list is, and remembers the list.

        Args:
            messages: the whole list, oldest message first; it is not changed and not kept.

        Raises:
            MessageFormatError: for a message that is no dict, or holds what JSON cannot. Nothing
                was remembered then.
        """
        messages = list(messages)
        before, same = self._nearest(messages)
        keyed = [
            (before.copies[i], before.keys[i])
            if i < len(before.copies) and messages[i] == before.copies[i]
            else _read(messages[i], i)
            for i in range(same, len(messages))
        ]
        track, new = before.upto(same), list[int]()
        # the numbers in the list so far; nobody asks where nothing is left to look up
        taken = set(chain.from_iterable([m.numbers for m in track.matches] if keyed else ()))
        for i, (copy, key) in enumerate(keyed, same):
            match = self._find(key, taken)
            if match is None:
                match = MessageMatch((self._remember(key),))
                new.append(i)
            taken.update(match.numbers)
            track.add(copy, key, match)
        self._host = track
        return IdentifiedMessages(tuple(track.matches), tuple(new))

    def as_request(
        self, request: Sequence[tuple[int, ...]], behind: Iterable[int]
    ) -> IdentifiedMessages | None:
        """Returns what the last list is if it begins with a request, or None where it does not.

        Args:
            request: for each of the request's messages the numbers that it shows.
            behind: all numbers of the history behind it; what follows the request is none of them.
        """
        last, known = self._host, len(request)
        pairs = list(zip(last.keys, request, strict=False))
        if len(pairs) < known or not all(self._shows(key, numbers) for key, numbers in pairs):
            return None
        track, taken, new = _Track(), set(behind), list[int]()
        for i, (copy, key) in enumerate(zip(last.copies, last.keys, strict=True)):
            if i < known:
                rendered = not self._is_untouched(key, request[i])
                match: MessageMatch | None = MessageMatch(request[i], rendered)
            else:
                match = self._find(key, taken)
            if match is None:
                match = MessageMatch((self._remember(key),))
                new.append(i)
            taken.update(match.numbers)
            track.add(copy, key, match)
        self._host = track
        return IdentifiedMessages(tuple(track.matches), tuple(new))

    def register_rendering(
        self, messages: Sequence[Mapping[str, Any]], stands_for: Sequence[Sequence[int]]
    ) -> None:
        """Remembers a request that the session rendered, so that the host may feed it back.

        Args:
            messages: the whole list as it goes out.
            stands_for: for each message the numbers that it shows; a message that goes out as it
                came has its own.

        Raises:
            ConfigurationError: when the lengths differ, or a number was never given out.
            MessageFormatError: as `identify`.
        """
        messages, numbers = list(messages), [tuple(each) for each in stands_for]
        self._check_numbers(len(messages), numbers)
        host = {match.numbers: i for i, match in enumerate(self._host.matches)}
        track, same = _Track(), self._shown.same(messages)
        for i, (message, shows) in enumerate(zip(messages, numbers, strict=True)):
            source, at = (self._shown, i) if i < same else (self._host, host.get(shows, -1))
            if i < same or (at >= 0 and message == source.copies[at]):
                copy, key = source.copies[at], source.keys[at]
            else:
                copy, key = _read(message, i)
            rendered = not self._is_untouched(key, shows)
            track.add(copy, key, MessageMatch(shows, rendered))
        for key, match in zip(track.keys, track.matches, strict=True):
            if match.rendered and match.numbers not in self._renderings.get(key, ()):
                self._renderings.setdefault(key, []).append(match.numbers)
        self._shown = track

    def state_dict(self) -> dict[str, Any]:
        """Returns what a restarted session needs, as plain JSON: hashes and numbers, no content."""
        renderings = {key: [list(n) for n in each] for key, each in self._renderings.items()}
        return {"version": _STATE_VERSION, "keys": list(self._keys), "renderings": renderings}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces everything by what `state_dict` returned.

        Raises:
            ConfigurationError: for a state that is damaged or of another version. Nothing has
                changed then.
        """
        keys, renderings = _checked_state(state)
        self._keys, self._known = [], {}
        self._host, self._shown = _Track(), _Track()
        for key in keys:
            self._remember(key)
        self._renderings = renderings

    def _nearest(self, messages: list[Mapping[str, Any]]) -> tuple[_Track, int]:
        """Returns the remembered list that begins most like this one, and for how long it does."""
        same = self._host.same(messages)
        if same == len(self._host.copies) and same:
            return self._host, same
        shown = self._shown.same(messages)
        # at a draw, all of a request is more likely than a part of the history
        if shown > same or 0 < shown == same == len(self._shown.copies):
            return self._shown, shown
        return self._host, same

    def _is_untouched(self, key: str, numbers: tuple[int, ...]) -> bool:
        """True where a message that shows some numbers is one that the host wrote."""
        return len(numbers) == 1 and numbers[0] in self._known.get(key, ())

    def _shows(self, key: str, numbers: tuple[int, ...]) -> bool:
        """True where a message of a key may show some numbers."""
        rendered = self._renderings.get(key, ())
        return self._is_untouched(key, numbers) or numbers in rendered

    def _find(self, key: str, taken: set[int]) -> MessageMatch | None:
        """Returns the known message of a key that is not in the list yet, or the rendering."""
        for number in self._known.get(key, ()):
            if number not in taken:
                return MessageMatch((number,))
        for numbers in self._renderings.get(key, ()):
            if taken.isdisjoint(numbers):
                return MessageMatch(numbers, rendered=True)
        return None

    def _remember(self, key: str) -> int:
        """Gives the next number to a message."""
        number = len(self._keys)
        self._keys.append(key)
        self._known.setdefault(key, []).append(number)
        return number

    def _check_numbers(self, length: int, numbers: Sequence[tuple[int, ...]]) -> None:
        if len(numbers) != length:
            raise ConfigurationError(
                "`stands_for` must have one entry for each message. "
                f"Received {len(numbers)} for {length} messages."
            )
        for number in chain.from_iterable(numbers):
            if not 0 <= number < len(self._keys):
                raise ConfigurationError(
                    f"`stands_for` names a message that was never identified. Received {number}; "
                    f"{len(self._keys)} are known. Call `identify` first."
                )


def _read(message: Mapping[str, Any], index: int) -> tuple[Any, str]:
    """Returns a message's copy and key; the key first, since it refuses what is not JSON."""
    key = message_key(message, index)
    return copied(message), key


def _checked_state(state: Any) -> tuple[list[str], dict[str, list[tuple[int, ...]]]]:
    """Returns keys and renderings of a saved state, or raises ConfigurationError."""
    version = state.get("version") if isinstance(state, Mapping) else None
    if version != _STATE_VERSION:
        raise ConfigurationError(
            f"this is not an identity state of version {_STATE_VERSION}. Received version "
            f"{version!r}. Pass what `state_dict` of this program version returned."
        )
    keys, saved = state.get("keys"), state.get("renderings")
    try:
        renderings = {key: [tuple(numbers) for numbers in each] for key, each in saved.items()}
        numbers = chain.from_iterable(chain.from_iterable(renderings.values()))
        sound = (
            isinstance(keys, list)
            and all(isinstance(key, str) for key in chain(keys, renderings))
            and all(type(number) is int and 0 <= number < len(keys) for number in numbers)
        )
    except (AttributeError, TypeError):
        sound = False
    if not sound:
        raise ConfigurationError(
            "the identity state is damaged. 'keys' must be a list of hashes and 'renderings' map "
            f"hashes to lists of known numbers. Received {reprlib.repr(state)}. Begin the session "
            "anew, without this state."
        )
    return list(keys), renderings
