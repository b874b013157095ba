"""What stands in the place of a folded segment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from contextpilot.core.segment import Kind, Segment
from contextpilot.summarizers.outline import outlined_pieces
from contextpilot.summarizers.split import split_structure

_NOUNS = {kind: kind.name.lower() for kind in Kind}
_LONGEST_NAME = 24
_SAMPLE_ROWS = 3
_UNSAFE = re.compile(r"[\s\[\];,]+")


def bare_stub(segment: Segment, hidden_tokens: int) -> str:
    """Returns one line of about 15 tokens: the id, what is hidden, how much, how to get it back."""
    return stub_line(segment.id, segment.name, segment.kind, hidden_tokens)


def stub_line(segment_id: str, name: str, kind: Kind, hidden_tokens: int) -> str:
    """Returns the bare stub of a segment that need not be at hand."""
    what = _shown_name(name) + _NOUNS[kind]
    return f"[folded {segment_id}: {what}, {hidden_tokens} tokens; reload {segment_id}]"


@lru_cache(maxsize=1024)
def _shown_name(name: str) -> str:
    """Returns a name and a space, or nothing.

    A name is the host's text: it must not close the bracket or begin a line.
    """
    shown = _UNSAFE.sub(" ", name[: 2 * _LONGEST_NAME]).strip()[:_LONGEST_NAME].rstrip()
    return f"{shown} " if shown else ""


def outline_stub(
    segment: Segment,
    hidden_tokens: int,
    head_lines: int = 3,
    tail_lines: int = 2,
    max_chars: int = 400,
) -> str:
    """Returns the bare line and an outline below it.

    The outline is the schema and sample rows of JSON and tables, and the first and last lines of
    everything else. Where all this would not be shorter than the original, the bare line alone is
    returned.

    Args:
        segment: what is folded.
        hidden_tokens: tokens of its full form.
        head_lines: first lines to show; blank ones do not count.
        tail_lines: last lines to show.
        max_chars: limit of the outline, which does not include the bare line.
    """
    bare = bare_stub(segment, hidden_tokens)
    text = segment.text
    if len(text) <= len(bare):
        return bare
    outline = _outline(text, head_lines, tail_lines, max_chars)
    stub = f"{bare}\n{outline}"
    return stub if outline and len(stub) < len(text) else bare


@lru_cache(maxsize=1 << 12)
def _outline(text: str, head_lines: int, tail_lines: int, max_chars: int) -> str:
    """Returns what an original and all its copies have below their bare lines."""
    return _data_outline(text, max_chars) or _line_outline(text, head_lines, tail_lines, max_chars)


def _data_outline(text: str, max_chars: int) -> str:
    """Returns the schema and the first rows of JSON or a table, "" for any other text."""
    start = text.lstrip()
    if start[:1] not in ("{", "[") and not _begins_as_table(start):
        return ""
    pieces = outlined_pieces(text)
    if not pieces or pieces[0].kind not in ("shape", "schema"):
        return ""
    shown: list[str] = []
    rows, room = 0, max_chars - len("... and 00000 more")
    for piece in pieces:
        rows += piece.kind not in ("shape", "schema")
        line = _clipped(piece.text, max_chars // 2)
        room -= len(line) + 1
        if rows > _SAMPLE_ROWS or room < 0:
            break
        shown.append(line)
    more = len(pieces) - len(shown)
    return "\n".join([*shown, f"... and {more} more"] if more else shown)[:max_chars]


def _begins_as_table(text: str) -> bool:
    """Says whether the first lines are rows; the rest need not be read for that."""
    first_lines = text[:2000].splitlines()[:4]
    pieces = split_structure("\n".join(first_lines))
    return bool(pieces) and pieces[0].kind == "table"


def _line_outline(text: str, head_lines: int, tail_lines: int, max_chars: int) -> str:
    """Returns the first and the last lines, each clipped to its share of the room."""
    lines = [line.strip() for line in text.splitlines() if line and not line.isspace()]
    hidden = len(lines) - head_lines - tail_lines
    if hidden > 0:
        gap = f"... {hidden} more ..."
        lines = [*lines[:head_lines], gap, *lines[len(lines) - tail_lines :]]
    if not lines:
        return ""
    return "\n".join(_shared_room(lines, max_chars))[:max_chars]


def _shared_room(lines: Sequence[str], max_chars: int) -> list[str]:
    """Returns the lines clipped so that they fit; what short ones leave, long ones get."""
    room = max_chars - len(lines) + 1
    limits: dict[int, int] = {}
    left = len(lines)
    for index in sorted(range(len(lines)), key=lambda index: len(lines[index])):
        limits[index] = min(len(lines[index]), room // left)
        room -= limits[index]
        left -= 1
    return [_clipped(line, limits[index]) for index, line in enumerate(lines)]


def _clipped(line: str, length: int) -> str:
    """Returns the line, or its beginning and its end around a gap."""
    if len(line) <= length:
        return line
    tail = max(0, length - len(" ... ")) // 3
    head = max(0, length - len(" ... ") - tail)
    return f"{line[:head]} ... {line[len(line) - tail :]}"[: max(0, length)]
