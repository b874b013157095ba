"""Folding the arguments of a call: long strings leave, the JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

FOLD_MIN_CHARS = 80
"""String leaves up to this length stay: paths, queries and flags are what a call is known by."""


def fold_arguments(arguments_json: str, segment_id: str, min_chars: int = FOLD_MIN_CHARS) -> str:
    """Replaces the long string leaves of call arguments by markers that name the segment.

    Args:
        arguments_json: the arguments as JSON text.
        segment_id: the turn that holds the call; a reload by this id shows the arguments whole.
        min_chars: leaves of at most so many characters stay.

    Returns:
        JSON text, never longer than it was. What is not JSON, or has no long leaf, comes back
        unchanged.
    """
    if len(arguments_json) <= min_chars:
        return arguments_json
    try:
        value = json.loads(arguments_json)
        folded = _fold(value, segment_id, min_chars)
        if folded is value:
            return arguments_json
        text = _compact(folded)
    except (ValueError, RecursionError):
        return arguments_json
    return text if len(text) < len(arguments_json) else arguments_json


def _fold(value: Any, segment_id: str, min_chars: int) -> Any:
    """Returns `value` with its long leaves replaced; the same object where there is none."""
    if isinstance(value, str):
        marker = f"[… {len(value)} chars hidden, id {segment_id}]"
        return marker if len(value) > max(min_chars, len(marker)) else value
    if isinstance(value, dict):
        folded = {key: _fold(item, segment_id, min_chars) for key, item in value.items()}
        return folded if any(folded[key] is not value[key] for key in value) else value
    if isinstance(value, list):
        items = [_fold(item, segment_id, min_chars) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _compact(value: Any) -> str:
    """Returns compact JSON that can be encoded: lone surrogates only exist as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text
