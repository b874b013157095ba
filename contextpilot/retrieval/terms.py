"""What texts are found by: words, the parts of identifiers, characters and pairs of characters."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7a3"  # Hangul: spaced, but its endings are written onto the words
)
_TOKEN = re.compile(
    # A run without spaces, or a word with its joints, such as `db-7`, `src/main.py` or `v1.2`.
    f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+(?:[_./-]+[^\\W_{_UNSPACED}]+)*"
)
_RUN = re.compile(f"[{_UNSPACED}]")
_SEAM = re.compile(r"[_./-]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_CACHED = 40
"""Longer tokens are base64, hashes and other text that does not come again."""


def text_terms(text: str) -> list[str]:
    """Returns the terms of a text, in order and with repetitions.

    Words are lower-cased. An identifier such as `maxRetries`, `db-7` or `src/main.py` gives itself
    and its parts, so that it is found by either. Chinese, and what else is written without spaces
    between words, gives each character and each pair of neighbours.
    """
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if _RUN.match(token):
            found += token
            found += map("".join, pairwise(token))
        elif len(token) > _LONGEST_CACHED:
            found += _word_terms(token)
        else:
            found += _cached_word_terms(token)
    return found


def _word_terms(word: str) -> tuple[str, ...]:
    """Returns a word in lower case, and its parts where it has several."""
    parts = _SEAM.split(word)
    if len(parts) == 1:
        return (word.lower(),)
    return (word.lower(), *(part.lower() for part in parts if part))


_cached_word_terms = lru_cache(maxsize=65_536)(_word_terms)
"""Texts repeat their words."""
