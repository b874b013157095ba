"""Telling a summary from the text of a failure that was returned in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FAILURE = re.compile(
    r"""\s*(?:
        [A-Za-z_.]*(?:Error|Exception)\b\s*[:(]     # RateLimitError: 429 slow down
      | error\b\s*(?:code\s*)?[:\d]               # Error: ..., error code 500
      | traceback\ \(most\ recent\ call\ last\)
      | (?:http[/ ]?[\d.]*\s*)?[45]\d\d\s+(?:bad|unauthorized|forbidden|not\ found|too\ many
          |request|internal|service|gateway|client|server|error)
      | \{\s*"(?:error|detail)"\s*:
      | failed\ to\ (?:generate|create|produce)\ (?:a\ |the\ )?summary
      | (?:an|the)\ (?:error|exception)\ (?:has\ )?occurred
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED_CHARS = 24


def is_error_text(text: str, sources: Sequence[str] = ()) -> bool:
    """Returns True where a text begins as an error report does, and no source says the same.

    Some clients return what went wrong instead of raising it. A summary of a log may itself begin
    with an error of the log: what is quoted from a source is no failure.

    Args:
        text: what a summarizer returned.
        sources: what it was given.
    """
    if _FAILURE.match(text) is None:
        return False
    begins = text.strip()[:_QUOTED_CHARS]
    return not any(begins in source for source in sources)
