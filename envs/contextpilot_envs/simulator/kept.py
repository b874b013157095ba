"""What a snapshot needs of an archive, so that it can be restored anywhere."""

from __future__ import annotations

from contextpilot.core.context import Context
from contextpilot.core.edit import Op
from contextpilot.core.edit_log import EditLog
from contextpilot.core.segment import Form, Segment
from contextpilot.edits.services import Services

_FULL, _SUMMARY = int(Form.FULL), int(Form.SUMMARY)


def kept_summaries(log: EditLog, services: Services) -> tuple[Segment, ...]:
    """Returns the summaries that a log's edits made; they cannot be computed again."""
    return tuple(
        services.archive.get(services.session, record.output)
        for record in log
        if record.op == Op.SUMMARIZE and record.output
    )


def refill(context: Context, services: Services, summaries: tuple[Segment, ...]) -> None:
    """Puts into an archive what a restored context has there.

    Branches give their own segments the same ids, so what another branch stored is replaced.
    """
    archive, session, c = services.archive, services.session, context.columns
    texts = {summary.id: summary.text for summary in summaries}
    for summary in summaries:
        archive.put(session, summary)
    for i in c.order[: context.length]:
        form, entry = c.form[i], context.entries[i]
        if form != _FULL:
            archive.put(session, entry.segment)
        if form == _SUMMARY:
            entry.set_summary(texts[f"{entry.segment.id}.summary"], c.size[i])
