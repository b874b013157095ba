"""Edit records as plain JSON, for a host's own checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextpilot.core.edit import EditRecord, Op, Outcome
from contextpilot.core.edit_log import EditLog
from contextpilot.errors import ConfigurationError

STATE_VERSION = 1

_FIELDS = EditRecord._fields


def log_to_json(log: EditLog) -> list[list[Any]]:
    """Returns a log record by record, each as its fields in order."""
    return [[_plain(value) for value in record] for record in log]


def log_from_json(rows: Sequence[Sequence[Any]]) -> EditLog:
    """Returns the log that `log_to_json` wrote.

    Raises:
        ConfigurationError: when it is damaged.
    """
    try:
        return EditLog(tuple(_record(dict(zip(_FIELDS, row, strict=True))) for row in rows))
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"the log of this state is damaged ({error}). Received {str(rows)[:60]!r}. Pass what "
            "`state_dict` returned."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Outcome):
        return value.value
    if isinstance(value, Op):
        return int(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def _record(fields: dict[str, Any]) -> EditRecord:
    fields["op"] = Op(fields["op"])
    fields["outcome"] = Outcome(fields["outcome"])
    fields["targets"] = tuple(fields["targets"])
    fields["summarizer_tokens"] = tuple(fields["summarizer_tokens"])
    fields["rows"] = tuple(tuple(row) for row in fields["rows"])
    return EditRecord(**fields)
