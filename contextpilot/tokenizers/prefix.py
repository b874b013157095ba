"""Finding the longest prefix that fits, with any counter."""

from __future__ import annotations

from collections.abc import Callable


def fit_prefix(count: Callable[[str], int], text: str, guess: int, max_tokens: int) -> str:
    """Returns a prefix of `text` that fits and whose next character would not.

    A merge across the cut can make a prefix cost more or less than the tokens it was cut from, so
    a cut by token index is only a guess, off by a few characters.

    Args:
        count: counts the tokens of a text.
        text: what to cut.
        guess: length in characters to start from.
        max_tokens: the limit.
    """
    length = max(0, min(guess, len(text)))
    while length and count(text[:length]) > max_tokens:
        length -= 1
    while length < len(text) and count(text[: length + 1]) <= max_tokens:
        length += 1
    return text[:length]
