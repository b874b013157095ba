"""JSON and tables as a schema and rows: one short line for each record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from contextpilot.summarizers.split import Piece, split_structure

_LONGEST_ROW = 240
"""Characters; a larger record is taken apart instead of being shown in one line."""
_LONGEST_SHAPE = 200
_DEEPEST_SHAPE = 3
_RULE_ROW = re.compile(r"[|:\s-]+$")


class _Number(str):
    """A JSON number as it was written: 12.50 must not become 12.5."""

    __slots__ = ()


def outlined_pieces(text: str) -> tuple[Piece, ...]:
    """Returns the pieces of a text, with JSON and tables taken apart.

    Instead of "json" and "table" pieces there is one "shape" for each JSON value, a "schema" with
    the keys or columns that the records after it share, a "row" for each record, and a "field"
    for each other value.
    """
    pieces: list[Piece] = []
    for piece in split_structure(text):
        if piece.kind == "json":
            try:
                pieces += map(_encodable, _json_pieces(_parse(piece.text)))
            except RecursionError:  # nested deeper than any record is
                pieces.append(Piece("code", piece.text))
        elif piece.kind == "table":
            pieces += _table_pieces(piece.text)
        else:
            pieces.append(piece)
    return tuple(pieces)


def _table_pieces(text: str) -> Iterator[Piece]:
    """Yields the first line as the schema and each further line as a row."""
    lines = (line.strip() for line in text.splitlines())
    rows = (line for line in lines if line and not _RULE_ROW.match(line))
    return (Piece("row" if index else "schema", row) for index, row in enumerate(rows))


def _parse(text: str) -> Any:
    """Returns the JSON value; that of several JSON lines is an array."""
    try:
        return _load(text)
    except ValueError:
        return [_load(line) for line in text.splitlines()]


def _load(text: str) -> Any:
    return json.loads(text.rstrip(", "), parse_int=_Number, parse_float=_Number)


def _encodable(piece: Piece) -> Piece:
    r"""Returns a piece that can be sent: half a pair that JSON hid as "\ud83d" becomes U+FFFD."""
    try:
        piece.text.encode()
    except UnicodeEncodeError:
        text = piece.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return Piece(piece.kind, text)
    return piece


def _json_pieces(value: Any) -> Iterator[Piece]:
    """Yields the shape and the records of an object or array."""
    shape = _shape(value, _DEEPEST_SHAPE)
    yield Piece("shape", shape if len(shape) < _LONGEST_SHAPE else shape[:_LONGEST_SHAPE] + "...")
    yield from _records(value, "")


def _records(value: dict[str, Any] | list[Any], path: str) -> Iterator[Piece]:
    """Yields a piece for each entry that fits one line, and takes larger ones apart."""
    items = list(value.values()) if isinstance(value, dict) else value
    keys = _common_keys(items)
    if keys:
        yield Piece("schema", f"{path}[{len(value)}] ({', '.join(keys)})")
    names = list(value) if isinstance(value, dict) else [f"[{i}]" for i in range(len(value))]
    for name, item in zip(names, items, strict=True):
        place = path + name if name[0:1] == "[" or not path else f"{path}.{name}"
        shown = _rendered(list(item.values()) if keys else item)
        if len(shown) > _LONGEST_ROW:
            yield from _large(item, place)
        elif keys:
            yield Piece("row", f"{name}: {shown[1:-1]}" if isinstance(value, dict) else shown[1:-1])
        else:
            kind = "row" if isinstance(item, (dict, list)) else "field"
            yield Piece(kind, f"{place}: {shown}")


def _large(value: Any, path: str) -> Iterator[Piece]:
    """Yields the pieces of a value that is too long for one line."""
    if isinstance(value, dict) or any(isinstance(item, (dict, list)) for item in value):
        yield from _records(value, path)
    elif isinstance(value, list):
        line = ""
        for item in map(_rendered, value):
            if line and len(line) + len(item) > _LONGEST_ROW:
                yield Piece("row", line)
                line = ""
            line = f"{line}, {item}" if line else f"{path}: {item}"
        yield Piece("row", line)
    else:
        yield Piece("schema", f"{path}:")
        yield from outlined_pieces(value)


def _common_keys(items: Sequence[Any]) -> tuple[str, ...]:
    """Returns the keys of several records that all have the same ones in the same order."""
    if len(items) < 2 or not isinstance(items[0], dict):
        return ()
    keys = tuple(items[0])
    same = all(isinstance(item, dict) and tuple(item) == keys for item in items)
    return keys if same else ()


def _rendered(value: Any) -> str:
    """Returns a value in one line; strings and numbers stand in it verbatim."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_rendered(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_rendered, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value)


def _shape(value: Any, depth: int) -> str:
    """Returns the keys of a value, nested, without its data."""
    if isinstance(value, list):
        return f"[{len(value)}]" + (_shape(value[0], depth) if value else "")
    if not isinstance(value, dict):
        return ""
    if depth == 0:
        return "{...}"
    if _common_keys(list(value.values())):
        first, entry = next(iter(value.items()))
        return f"{{{first}{_shape(entry, depth - 1)}, ... {len(value)} alike}}"
    return "{" + ", ".join(key + _shape(item, depth - 1) for key, item in value.items()) + "}"
