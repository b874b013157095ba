"""The file that keeps an evaluation: `evaluation.json`.

It is `{"version": 1, "created": ISO 8601, "command": [...], "config": {...}, "rows": [...]}`, one
row a line; `evaluation.schema.json`, beside this module, describes it for other tools. Writing is
atomic: a reader sees the old file or the new one, never a part.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.rows import EvaluationRow, RemovedFact

VERSION = 1
SCHEMA = Path(__file__).with_name("evaluation.schema.json")
_KEYS = ("version", "created", "command", "config", "rows")
_ROW_FIELDS = tuple(f.name for f in fields(EvaluationRow))
_FACT_FIELDS = tuple(f.name for f in fields(RemovedFact))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation as it is stored.

    Attributes:
        created: when, in ISO 8601 with a time zone.
        command: the command line that made it, one argument an item.
        config: its resolved settings; JSON values only.
        rows: one per episode; two rows about the same episode are an error.
    """

    created: str
    command: tuple[str, ...]
    config: Mapping[str, Any] = field(hash=False)
    rows: tuple[EvaluationRow, ...]

    def __post_init__(self) -> None:
        try:
            zone = datetime.fromisoformat(self.created).tzinfo
        except ValueError:
            zone = None
        if zone is None:
            raise ConfigurationError(
                "`created` is not a time in ISO 8601 with a time zone. "
                f"Received {self.created!r}. Use datetime.now(UTC).isoformat()."
            )
        check_unique(self.rows)


def check_unique(rows: Sequence[EvaluationRow]) -> None:
    """Raises ConfigurationError where two rows are about the same episode."""
    first: dict[tuple[object, ...], int] = {}
    for index, row in enumerate(rows):
        key = (row.policy, row.source, row.split, row.notice, row.horizon, row.task_id, row.seed)
        if key in first:
            raise ConfigurationError(
                f"rows {first[key]} and {index} are about the same policy, source, split, notice "
                f"preset, horizon, task and seed. Received {key} twice. Keep one of them."
            )
        first[key] = index


def save_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Writes `path`, replacing what was there in one step.

    Raises:
        ConfigurationError: when `config` holds something that JSON cannot express.
    """
    head = {
        "version": VERSION,
        "created": evaluation.created,
        "command": list(evaluation.command),
        "config": dict(evaluation.config),
    }
    try:
        text = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"`config` cannot be written as JSON: {error}. Received {evaluation.config!r}. "
            "Use strings, finite numbers, booleans, None, lists and string-keyed dicts."
        ) from error
    lines = ",\n".join(
        json.dumps(_row_json(row), ensure_ascii=False, allow_nan=False) for row in evaluation.rows
    )
    replace_text(path, f'{text[:-2]},\n "rows": [\n{lines}\n]}}\n')


def _row_json(row: EvaluationRow) -> dict[str, Any]:
    """Returns a row as JSON values. `dataclasses.asdict` copies deeply, ten times as slow."""
    values = {name: getattr(row, name) for name in _ROW_FIELDS}
    values["removed_facts"] = [asdict(fact) for fact in row.removed_facts]
    return values


def replace_text(path: Path, text: str) -> None:
    """Writes a text file atomically: beside its place first, then renamed over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for their owner only; a report is meant to be read by others.
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_evaluation(path: Path) -> Evaluation:
    """Reads an `evaluation.json` and checks every field of every row.

    Raises:
        ConfigurationError: when it is not such a file; the message names the row and the field.
        OSError: when it cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
        _check_keys(data, _KEYS, "the file")
        if data["version"] != VERSION:
            raise ConfigurationError(
                f"`version` is not one that this release reads. Received {data['version']!r}. "
                f"Evaluate again to write version {VERSION}."
            )
        _check_head(data)
        rows = tuple(_rows(data["rows"]))
        return Evaluation(data["created"], tuple(data["command"]), data["config"], rows)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} is not JSON in UTF-8. Received: {error}. Evaluate again to write it anew."
        ) from error


def _check_head(data: Mapping[str, Any]) -> None:
    command = data["command"]
    shapes = {
        "created": isinstance(data["created"], str),
        "command": isinstance(command, list) and all(isinstance(x, str) for x in command),
        "config": isinstance(data["config"], dict),
        "rows": isinstance(data["rows"], list),
    }
    wanted = {"created": "a string", "command": "a list of strings", "config": "an object"}
    for name, valid in shapes.items():
        if not valid:
            raise ConfigurationError(
                f"`{name}` is not valid. Received {str(data[name])[:80]!r}. "
                f"Give {wanted.get(name, 'a list of rows')}."
            )


def _rows(items: Sequence[object]) -> Iterator[EvaluationRow]:
    for index, item in enumerate(items):
        where = f"row {index}"
        try:
            values = _check_keys(item, _ROW_FIELDS, "the row")
            facts = values["removed_facts"]
            if not isinstance(facts, list):
                raise ConfigurationError(
                    f"`removed_facts` is not valid. Received {facts!r}. Give a list."
                )
            checked = [_check_keys(fact, _FACT_FIELDS, "a removed fact") for fact in facts]
            removed = tuple(RemovedFact(**fact) for fact in checked)
            yield EvaluationRow(**{**values, "removed_facts": removed})
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error


def _check_keys(item: object, names: Sequence[str], what: str) -> dict[str, Any]:
    """Returns `item` as a dict that has exactly these keys."""
    if not isinstance(item, dict):
        raise ConfigurationError(
            f"{what} is not a JSON object. Received {item!r:.80}. It has: {', '.join(names)}."
        )
    for name in item:
        if name not in names:
            raise ConfigurationError(
                f"{what} has an unknown field. Received {name!r}.{did_you_mean(name, names)}"
            )
    for name in names:
        if name not in item:
            raise ConfigurationError(
                f"`{name}` is missing in {what}. Received {len(item)} of {len(names)} fields. "
                "Add it, or evaluate again with this release."
            )
    return item


def _no_constant(name: str) -> float:
    raise ConfigurationError(f"Received {name}, which is not JSON. Give a finite number.")
