"""What was computed of objects that nobody changes, for as long as requests have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """Computes once what several requests in a row need of the same objects.

    Objects are known by identity, so they must never be changed. What a request does not ask for
    is forgotten when the one after it begins.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[int, ...], tuple[Any, T]] = {}
        self._now: dict[tuple[int, ...], tuple[Any, T]] = {}

    def begin(self) -> None:
        """Begins a request."""
        self._before, self._now = self._now, {}

    def of(self, objects: tuple[Any, ...], compute: Callable[[], T]) -> T:
        """Returns what `compute` returned, or returns now, for some objects."""
        key = tuple(map(id, objects))
        known = self._now.get(key)
        if known is None:
            # with the objects, or their ids would be given to others
            known = self._now[key] = self._before.get(key) or (objects, compute())
        return known[1]
