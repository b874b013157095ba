"""What a provider's refusal of a too long request says: how long it was, how long it may be."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARKS = re.compile(
    r"context[_ ]?(?:length|window|size|limit)|context the overflows|exceed_context"
    r"|(?:prompt|input|request|context|inputs?)[\w` ]*? (?:is |was |are )?too (?:long|large)"
    r"|too many tokens|too large for model|input tokens? exceed|token (?:count|limit)"
    r"|maximum (?:prompt|input|model|number of|sequence|context)[a-z ]*(?:length|tokens|size)"
    r"|(?:exceeds?|exceeded|exceeding|longer than)[a-z` ]* (?:max(?:imum)?|limit|model)"
    r"|request_too_large|exceeds the maximum size|exceeds max length|expected maxlength"
    r"|range of input length|inputs` (?:tokens|must have less)|max size: \d",
    re.IGNORECASE,
)
_CERTAIN = re.compile(r"context_length_exceeded|request too large for model", re.IGNORECASE)
_OTHERS = re.compile(
    r"throttl|quota|per[ -]minute|per[ -]day|rate[ _]limit(?! for)|rate limit reached|try again in"
    r"|array too long|string too long|'?stop'?:|image exceeds|completion tokens, whereas"
    r"|output tokens for",
    re.IGNORECASE,
)
"""Errors that talk of lengths, and are about something else."""

_N = r"(\d[\d,_]*\d|\d)"
_WINDOW, _SENT = (rf"(?P<{name}>\d[\d,_]*\d|\d)" for name in ("window", "sent"))
_READINGS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"length is {_WINDOW} tokens.*?resulted in {_SENT}",
        rf"length (?:is|of) {_WINDOW} tokens.*?\({_SENT} in the messages",
        rf"length is {_WINDOW} tokens.*?requested about (?P<all>\d+) tokens"
        r".*?(?P<out>\d+) in the out",
        rf"length of {_WINDOW} tokens.*?: {_SENT} tokens from the input",
        rf"limit of {_WINDOW} tokens.*?resulted in {_SENT}",
        rf"length is {_WINDOW} tokens.*?request has {_SENT} input",
        rf"passed {_SENT} input tokens.*?length is only {_WINDOW}",
        rf"length is {_WINDOW} tokens.*?requested {_SENT} tokens",
        rf"prompt length is {_WINDOW} but the request contains {_SENT}",
        rf"{_SENT} tokens > {_WINDOW} max",
        rf"context limit: {_SENT} \+ {_N} > {_WINDOW}",
        rf"token count(?: is|s? of)? \(?{_SENT}\)?[a-z ]*?(?:exceeds|but)[a-z ]*\(?{_WINDOW}",
        rf"length {_SENT}\) is longer than[a-z ]*{_WINDOW}",
        rf"\({_SENT} tokens\) is longer than[a-z' ]*\({_WINDOW}",
        rf"\({_SENT} > {_WINDOW}\)",
        rf"too long: {_SENT}, [a-z ]*length: {_WINDOW}",
        rf"\({_SENT} tokens\) exceeds[a-z ]*\({_WINDOW}",
        rf"n_prompt_tokens\D+{_SENT}.*?n_ctx\D+{_WINDOW}",
        rf"first {_SENT} tokens.*?length of only {_WINDOW}",
        rf"contains {_SENT} tokens.*?with {_WINDOW} max",
        rf"cannot exceed {_WINDOW}\D+received {_SENT}",
        rf"(?:<=|less than) {_WINDOW}.*?given: {_SENT}",
        rf"token limit: {_WINDOW} \(requested: {_SENT}",
        rf"limit {_WINDOW}, requested {_SENT}",
        rf"range of input length should be \[{_N}, {_WINDOW}",
        rf"max size: {_WINDOW}",
        rf"(?<!expected max)(?:length|size|limit)(?: is| of|:)? {_WINDOW}(?: tokens|\b)",
        rf"tokens allowed \(?{_WINDOW}",
    )
)


class Overflow(NamedTuple):
    """A refusal: the window and the input that it names, in tokens; 0 where it names none."""

    window: int
    sent: int


def read_overflow(error: BaseException) -> Overflow | None:
    """Returns what an error says of a request that was too long; None where it is another error.

    It is read from the error's text and from its `code`, whatever client raised it. Limits of a
    rate or of a quota are other errors: a shorter request would not be let through either.
    """
    text = f"{getattr(error, 'code', '') or ''} {error}"
    certain = _CERTAIN.search(text) is not None
    if not certain and (_OTHERS.search(text) or not _MARKS.search(text)):
        return None
    for reading in _READINGS:
        found = reading.search(text)
        if found is not None:
            read = {name: _number(value) for name, value in found.groupdict().items()}
            sent = read.get("sent", read.get("all", 0) - read.get("out", 0))
            return Overflow(read.get("window", 0), sent)
    return Overflow(0, 0)


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))
