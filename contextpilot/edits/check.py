"""Whether an edit is legal now: its parameters make sense, and no invariant forbids it."""

from __future__ import annotations

from collections.abc import Sequence

from contextpilot.core.context import Context
from contextpilot.core.edit import (
    Drop,
    Edit,
    Expire,
    Fold,
    Keep,
    Placement,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.invariants import violated
from contextpilot.core.segment import Form
from contextpilot.errors import IllegalEditError


def check_edit(context: Context, edit: Edit) -> None:
    """Raises `IllegalEditError`, naming segment and invariant, where an edit is not legal."""
    if not isinstance(edit, Keep):
        require_legal(context, rule_of(edit), edit.targets)
    if isinstance(edit, Reload) and len(edit.targets) > 1:
        _require_room(context, edit)


def rule_of(edit: Edit) -> str:
    """Returns the legality rule that an edit's targets must satisfy.

    Raises:
        IllegalEditError: when a parameter is out of its range.
    """
    match edit:
        case Keep():
            return ""
        case Fold(form=form):
            if form not in (Form.STUB, Form.OUTLINE):
                raise IllegalEditError(
                    f"a fold leaves Form.STUB or Form.OUTLINE. Received {form!r}.", "form"
                )
            return "outline" if form == Form.OUTLINE else "fold"
        case Expire(requests=requests):
            if requests < 0:
                raise IllegalEditError(
                    f"`requests` must be at least 0. Received {requests}.", "requests"
                )
            return "expire"
        case Drop():
            return "drop"
        case Reload(placement=placement):
            return "reload_in_place" if placement == Placement.IN_PLACE else "reload_at_end"
        case Reorder():
            return "reorder"
        case Summarize(max_tokens=max_tokens):
            if max_tokens <= 0:
                raise IllegalEditError(
                    f"`max_tokens` must be positive. Received {max_tokens}.", "max_tokens"
                )
            if not edit.run and len(edit.targets) > 1:
                raise IllegalEditError(
                    "`summarize` in place takes one target; set `run=True` for several. "
                    f"Received {len(edit.targets)}.",
                    "targets",
                )
            return "summarize_run" if edit.run else "summarize"


def _require_room(context: Context, edit: Reload) -> None:
    """Raises `IllegalEditError` where targets that fit one by one do not fit together."""
    c, returning = context.columns, set(edit.targets)
    if edit.placement == Placement.IN_PLACE:
        for index in edit.targets:
            if c.form[index] == Form.ABSENT:
                returning.update(context.group(index))
    tokens = sum(c.full[index] for index in returning)
    room = context.budget.input_limit - context.used_tokens
    if tokens > room:
        raise IllegalEditError(
            f"a reload of {len(edit.targets)} segments must fit the budget as a whole. Received "
            f"{tokens} tokens for {room} that are free. Reload fewer, or hide something first.",
            "fits",
        )


def require_legal(context: Context, rule: str, targets: Sequence[int]) -> None:
    """Raises `IllegalEditError`, naming segment and invariant, where a rule forbids a target."""
    if not targets:
        raise IllegalEditError(f"`{rule}` needs at least one target. Received none.", "targets")
    if len(set(targets)) < len(targets):
        raise IllegalEditError(
            f"`{rule}` targets a segment twice. Received {targets}.", "targets"
        )  # fmt: skip
    for index in targets:
        if not 0 <= index < len(context.entries):
            raise IllegalEditError(
                f"`{rule}` targets segment index {index}, but the context has "
                f"{len(context.entries)} segments.",
                "targets",
            )
        name = violated(rule, context, index)
        if name:
            raise IllegalEditError(
                f"`{rule}` of segment {context.entries[index].segment.id} is not legal now: "
                f"it violates `{name}`. The action mask shows what is legal.",
                name,
            )
