"""What a provider's refusal of a too long request says: how long it was, how long it may be."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = r"(\d[\d,_. ]*\d|\d)"
_MARKS = re.compile(
    r"context[_ ]?(?:length|window|size)|maximum context|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|token limit|tokens? exceed|exceeds? the (?:maximum|model|limit)"
    r"|max(?:imum)? (?:input )?(?:prompt )?(?:tokens|length)|request too large|string_above_max",
    re.IGNORECASE,
)
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:maximum|max)[a-z _]*(?:context|prompt|input|token|sequence|model)[a-z _]*"
        rf"(?:is|of|:|\()\s*{_NUMBER}",
        rf">\s*{_NUMBER}\s*(?:tokens?\s*)?max",
        rf"(?:limit|window)[a-z ]*(?:is|of|:)\s*{_NUMBER}",
        rf"up to {_NUMBER} tokens",
        rf"less than or equal to {_NUMBER}",
    )
)
_SENT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER}\s*(?:tokens?\s*)?(?:\([^)]*\)\s*)?>\s*\d",
        rf"messages resulted in {_NUMBER}",
        rf"\({_NUMBER} in the (?:messages|prompt|input)",
        rf"(?:input|prompt)[a-z _]*(?:has|contains|is|of|:|\()\s*{_NUMBER} ?(?:input )?tokens",
        rf"(?:requested|received|got|sent)[a-z ]*{_NUMBER}\s*(?:input )?tokens",
    )
)


class Overflow(NamedTuple):
    """A refusal: the window and the input that it names, in tokens; 0 where it names none."""

    window: int
    sent: int


def read_overflow(error: BaseException) -> Overflow | None:
    """Returns what an error says of a request that was too long; None where it is another error.

    It is read from the error's text and from its `code`, whatever client raised it.
    """
    text = f"{getattr(error, 'code', '') or ''} {error}"
    if _MARKS.search(text) is None:
        return None
    return Overflow(_first(_LIMITS, text), _first(_SENT, text))


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int:
    for pattern in patterns:
        found = pattern.search(text)
        if found is not None:
            return int(re.sub(r"\D", "", found.group(1)))
    return 0
