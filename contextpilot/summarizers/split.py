"""Cutting a text where its own structure cuts it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

LONGEST_PIECE = 400
"""Characters; longer lines are cut at spaces, so that none of them can take a whole budget."""

_LINE = re.compile(
    r"""[ \t]*+(?:
    (?P<heading>\#{1,6}[ ]+\S | (?:\d+\.)+\d+[ ]+\S.{0,60}$
        | 第[一二三四五六七八九十百\d]+[章节条部].{0,40}$ | [一二三四五六七八九十]+、.{0,40}$)
    |(?P<log>[^:]{2,42}+(?<=\d\d):\d\d:\d\d | \[?\d{4}[-/.]\d\d[-/.]\d\d[T ,_] | (?:-[ ])?\d{10}[ ]
        | \d{6}[ ]\d{6}[ ] | Traceback[ ] | Caused[ ]by: | at[ ][\w$.<>]+\( | File[ ]"
        | \[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)\b)
    |(?P<item>[-*+•][ ]+\S | \d{1,3}[.)][ ]+\S | \d{1,3}、)
    |(?P<field>["'*]*[^\W\d_][^:=：.!?,;。，；/\\(){}\[\]]{0,39}+(?::(?=[ \t"])|=(?!=)|：)[ \t]*\S)
    )""",
    re.VERBOSE,
)
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_TABLE_LINE = re.compile(r"[ \t]*\|.*\|")
_SYMBOLS = b"{}()[];<>_|&$\\/"
_CODE_START = re.compile(r"[ \t]*+\d+(?:→|\t)|\t|[ ]{4}")
_LABEL_END = re.compile(r"[:=：]")
_SENTENCE_END = re.compile(
    r"""[.!?] (?<!\b[A-Z]\.)
        (?<!\b(?:Dr|Mr|Ms|St|No|vs|Jr|Sr|Co)\.) (?<!\b(?:Mrs|Inc|Ltd|e\.g|i\.e)\.)
        ["')\]”]*\s+ (?=["'(\[“]?[A-Z0-9\u4e00-\u9fff])
    | [。！？；]["”』」）]*\s*""",
    re.VERBOSE,
)
_CUT = re.compile(rf".{{1,{LONGEST_PIECE}}}(?:\s+|$)|.{{1,{LONGEST_PIECE}}}", re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
_LONGEST_CELL = 25
_MOST_JSON_LINES = 1000
"""Bounds the search for the end of JSON that never ends."""
_LONGEST_FIELD = 100
_SHORTEST_TURN = 25
_WRAP_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Piece:
    """One structural unit of a text.

    `kind` is "heading", "sentence", "item", "field" (a key with its value), "turn" (of a dialogue),
    "log", "code" (one line each), "json" or "table" (a whole block).
    """

    kind: str
    text: str


def split_structure(text: str) -> tuple[Piece, ...]:
    """Returns the pieces of a text, in order.

    Only white space and code fences are left out. No piece except JSON and tables is longer than
    `LONGEST_PIECE`.
    """
    if text.lstrip()[:1] in _CLOSING and is_json(text):
        return (Piece("json", text.strip()),)
    pieces = list(_blocks_and_lines(text.splitlines()))
    if any(piece.kind == "field" for piece in pieces):
        pieces = list(_with_turns(pieces))
    if any(len(piece.text) > LONGEST_PIECE for piece in pieces):
        pieces = [part for piece in pieces for part in _shortened(piece)]
    return tuple(pieces)


def is_json(text: str) -> bool:
    """Says whether a text is a JSON object or array."""
    try:
        return isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


def _blocks_and_lines(lines: list[str]) -> Iterator[Piece]:
    """Yields JSON and tables whole, paragraphs by sentence, and everything else by line."""
    index, fence = 0, ""
    paragraph: list[str] = []
    while index < len(lines):
        line = lines[index]
        length, kind = _block_at(lines, index)
        marker = _FENCE.match(line)
        if marker and fence in ("", marker[1]):
            fence = "" if fence else marker[1]
            length, kind = 1, "fence"
        elif not length:
            length, kind = 1, "code" if fence and line.strip() else _line_kind(line)
        if paragraph and not (kind == "sentence" and _continues(paragraph[-1], line)):
            yield from _sentences(" ".join(paragraph))
            paragraph.clear()
        if kind == "sentence":
            paragraph.append(line.strip())
        elif kind not in ("", "fence"):
            block = "\n".join(lines[index : index + length])
            yield Piece(kind, block.rstrip() if kind == "code" else block.strip())
        index += length
    if paragraph:
        yield from _sentences(" ".join(paragraph))


def _line_kind(line: str) -> str:
    """Returns what a single line is, "" for a blank one."""
    if not line or line.isspace():
        return ""
    match = _LINE.match(line)
    kind = (match.lastgroup or "") if match else "sentence"
    if kind in ("heading", "log", "item"):
        return kind
    return "code" if _CODE_START.match(line) or _has_many_symbols(line) else kind


def _has_many_symbols(line: str) -> bool:
    """Says whether more than one byte in twelve is a bracket, a joint or an operator."""
    encoded = line.encode("utf-8", "surrogatepass")
    return (len(encoded) - len(encoded.translate(None, _SYMBOLS))) * 12 > len(encoded)


def _continues(previous: str, line: str) -> bool:
    """Says whether a line goes on with a hard-wrapped paragraph."""
    ends = previous[-1] in ".!?:。！？："
    return len(previous) >= _WRAP_WIDTH and (not ends or line.lstrip()[0].islower())


def _sentences(paragraph: str) -> Iterator[Piece]:
    """Yields the sentences of a paragraph."""
    start = 0
    for match in _SENTENCE_END.finditer(paragraph):
        yield Piece("sentence", paragraph[start : match.end()].strip())
        start = match.end()
    if start < len(paragraph):
        yield Piece("sentence", paragraph[start:].strip())


def _block_at(lines: list[str], index: int) -> tuple[int, str]:
    """Returns how many lines the JSON or table starting here has, and its kind; 0 for neither."""
    first = lines[index].strip()
    if first[:1] in _CLOSING:
        return _json_length(lines, index), "json"
    if first[:1] == "|":
        length = _run_length(lines, index, lambda line: _TABLE_LINE.match(line) is not None)
        return (length if length > 1 else 0), "table"
    for delimiter in (",", "\t", ";"):
        cells = first.count(delimiter) + 1
        if cells > 2 and len(first) < cells * _LONGEST_CELL and first[-1] not in ".{(。":
            length = _run_length(lines, index, _has_cells(delimiter, cells))
            if length > 2:
                return length, "table"
    return 0, ""


def _has_cells(delimiter: str, cells: int) -> Callable[[str], bool]:
    """Returns a test for lines with that many cells."""
    return lambda line: line.count(delimiter) == cells - 1


def _json_length(lines: list[str], index: int) -> int:
    """Returns how many lines the JSON value or the JSON lines starting here have, 0 for none."""
    length = _run_length(lines, index, _is_json_line)
    first = lines[index].rstrip()
    if length or first[-1] not in "{[,":
        return length
    # Pretty-printed JSON closes in the column where it opened.
    closing = first[: len(first) - len(first.lstrip())] + _CLOSING[first.lstrip()[0]]
    for end in range(index + 1, min(index + _MOST_JSON_LINES, len(lines))):
        if lines[end].startswith(closing):
            candidate = "\n".join(lines[index : end + 1])
            return end + 1 - index if is_json(candidate.rstrip(", ")) else 0
    return 0


def _is_json_line(line: str) -> bool:
    """Says whether a line is a JSON value; the cheap test spares most lines the parser."""
    line = line.strip()
    return line[:1] in _CLOSING and line[-1] == _CLOSING[line[0]] and is_json(line)


def _run_length(lines: list[str], index: int, belongs: Callable[[str], bool]) -> int:
    """Returns how many lines from `index` on satisfy `belongs`, without a gap."""
    end = index
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return end - index


def _with_turns(pieces: list[Piece]) -> Iterator[Piece]:
    """Tells dialogue turns from fields: a speaker comes back, and says more than a value."""
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    for piece in pieces:
        if piece.kind == "field":
            label, value = _label_and_value(piece.text)
            lengths[label].append(len(value))
    for piece in pieces:
        if piece.kind != "field":
            yield piece
            continue
        said = lengths[_label_and_value(piece.text)[0]]
        if len(said) > 1 and sum(said) >= _SHORTEST_TURN * len(said):
            yield Piece("turn", piece.text)
        elif len(piece.text) > _LONGEST_FIELD:
            yield from _sentences(piece.text)
        else:
            yield piece


def _label_and_value(field: str) -> tuple[str, str]:
    """Returns the two sides of a field."""
    label, value = _LABEL_END.split(field, maxsplit=1)
    return label, value


def _shortened(piece: Piece) -> Iterable[Piece]:
    """Returns the piece, or its parts where it is a line that is too long."""
    if len(piece.text) <= LONGEST_PIECE or piece.kind in ("json", "table"):
        return (piece,)
    return tuple(Piece(piece.kind, part.rstrip()) for part in _CUT.findall(piece.text))
