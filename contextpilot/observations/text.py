"""Text as integers without a vocabulary: words hashed into buckets, the same everywhere."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TEXT_VOCABULARY = 8192
"""Bucket 0 is padding."""

SEGMENT_TEXT_TOKENS = 16
GOAL_TEXT_TOKENS = 32

_WORD = re.compile(r"[A-Za-z]+|\d+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\s\w]")
_HEAD_CHARS, _TAIL_CHARS = 160, 60


def text_tokens(text: str, length: int) -> tuple[int, ...]:
    """Returns `length` hashed words of a text: three quarters from its head, the rest its tail."""
    words = _WORD.findall(text[:_HEAD_CHARS] if len(text) > 2 * _HEAD_CHARS else text)
    if len(words) > length or len(text) > 2 * _HEAD_CHARS:
        tail = length // 4
        words = words[: length - tail] + _WORD.findall(text[-_TAIL_CHARS:])[-tail:]
    buckets = tuple(map(_bucket, words[:length]))
    return buckets + (0,) * (length - len(buckets))


@lru_cache(maxsize=1 << 15)
def _bucket(word: str) -> int:
    return 1 + zlib.crc32(word.lower().encode("utf-8", "surrogatepass")) % (TEXT_VOCABULARY - 1)


@lru_cache(maxsize=1 << 12)
def goal_tokens(goal: str) -> NDArray[np.int16]:
    """Returns the text tokens of a goal, (Tg,)."""
    return np.array(text_tokens(goal, GOAL_TEXT_TOKENS), np.int16)
