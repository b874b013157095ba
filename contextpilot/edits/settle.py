"""When marked segments leave: together, and where the prefix is lost anyway."""

from __future__ import annotations

from contextpilot.core.context import Context
from contextpilot.core.edit import EditRecord, Fold
from contextpilot.core.edit_log import EditLog
from contextpilot.core.invariants import legal_among
from contextpilot.edits.apply import apply_edit
from contextpilot.edits.services import Services


def settle_marks(context: Context, services: Services, log: EditLog) -> EditRecord | None:
    """Folds the marked segments that are due, if leaving is cheap or needed now.

    Called once, after the last edit of a request and before it is sent. They leave when the
    provider's cache is cold, on pressure (all that are due), or behind a break that another edit
    made (only those behind it: they cost nothing more). Returns the record, or None.
    """
    if context.cold or context.under_pressure:
        start, reason = 0, "expired: cold cache" if context.cold else "expired: pressure"
    elif context.has_pending_break:
        start, reason = context.break_at, "expired: prefix already broken"
    else:
        return None
    mark = context.columns.mark
    behind = context.columns.order[start : context.length].tolist()
    marked = [i for i in behind if mark[i] >= 0]
    targets = tuple(legal_among("flush_fold", context, marked)) if marked else ()
    if not targets:
        return None
    return apply_edit(context, Fold(targets), services, log, reason)
