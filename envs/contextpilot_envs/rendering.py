"""The desk as text: what the agent sees, what it costs, and what was done."""

from __future__ import annotations

from contextpilot.core.segment import Form
from contextpilot_envs.simulator.episode import Episode

_SHOWN_EDITS = 5
_PREVIEW_CHARS = 60


def render_desk(episode: Episode) -> str:
    """Returns a few lines a request: budget, segments in order, the latest edits."""
    context, task = episode.context, episode.prepared.task
    limit = context.budget.input_limit
    share = f"{context.used_tokens / limit:.0%} of {limit}" if limit < 1 << 29 else "no limit"
    lines = [
        f"{task.id}  request {context.request + 1}/{task.requests}  "
        f"{context.used_tokens} tokens ({share})  bill {episode.tally.bill:.0f} "
        f"(raw {episode.prepared.raw.total:.0f})",
        f"goal: {task.goal[:100]!r}",
    ]
    c = context.columns
    for index in context.visible():
        segment = context.entries[index].segment
        flags = "".join(
            letter
            for letter, on in (
                ("P", c.pinned[index]),
                ("u", not c.sent[index]),
                ("m", c.mark[index] >= 0),
            )
            if on
        )
        preview = " ".join(context.text(index)[:_PREVIEW_CHARS].split())
        lines.append(
            f"  {segment.id:>5} {segment.kind.name.lower():8} "
            f"{Form(c.form[index]).name.lower():7} {c.size[index]:6d} {flags:3} {preview}"
        )
    hidden = [
        context.entries[i].segment.id for i in c.order[: context.length] if c.form[i] == Form.ABSENT
    ]
    lines.append(f"archived: {' '.join(hidden) or 'nothing'}")
    for record in list(episode.log)[-_SHOWN_EDITS:]:
        lines.append(
            f"  edit {record.id}: {record.op.name.lower()} {' '.join(record.targets[:4])} "
            f"{record.before_tokens} -> {record.after_tokens} ({record.outcome.value})"
        )
    return "\n".join(lines)
