"""What must hold of every request, judged from outside: host's list, request, archive."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from soak_wire import Message

from contextpilot.archives.base import Archive
from contextpilot.core.segment import Kind, Role, Segment
from contextpilot.errors import ArchiveError
from contextpilot.manager import Request, Status
from contextpilot.manager.formats import format_of
from contextpilot.messages.envelope import content_parts
from contextpilot.messages.validate import problems
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import segment_tokens

Validator: TypeAlias = Callable[[Sequence[Any]], list[str]]

CASES = "CONTEXTPILOT_CASES"
"""Names the file of cases; the validators of `check_cases.py` beside it are used where it is."""


@cache
def portable_validators() -> Mapping[str, Validator]:
    """Returns the validators that know nothing of this library, by format; none where unset."""
    cases = os.environ.get(CASES)
    path = Path(cases).parent / "check_cases.py" if cases else None
    if path is None or not path.exists():
        return {}
    spec = importlib.util.spec_from_file_location("check_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"openai": module.openai_problems, "anthropic": module.anthropic_problems}


def invalid(format: str, messages: Sequence[Message]) -> Iterator[str]:
    """Yields why a provider would refuse a request."""
    for problem in problems(format, messages):
        yield f"invalid: {problem}"
    check = portable_validators().get(format)
    if check is not None:
        for found in check([_known(message) for message in messages]):
            yield f"invalid by check_cases.py: {found}"


def _known(message: Message) -> Message:
    """Returns a message without custom calls, which that validator does not know."""
    if not any(call.get("type") == "custom" for call in message.get("tool_calls") or ()):
        return message
    empty = {"name": "patch", "arguments": "{}"}
    calls = [{"id": call["id"], "function": empty} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def is_encodable(messages: Sequence[Message]) -> bool:
    """True where the messages can be sent as JSON in UTF-8."""
    try:
        json.dumps(messages, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def over_budget(
    parsed: Sequence[Segment], request: Request, tokenizer: Tokenizer, prefix: int
) -> Iterator[str]:
    """Yields a request that is over its limit without saying so, counted anew from its messages."""
    tokens = prefix + sum(segment_tokens(tokenizer, segment) for segment in parsed)
    limit = request.report.input_limit
    if tokens > limit and request.status != Status.BUDGET_UNREACHABLE:
        told = request.report.after_tokens
        yield f"over budget: {tokens} tokens, limit {limit}, reported {told}"


def not_verbatim(parsed: Sequence[Segment], host: Sequence[Segment]) -> Iterator[str]:
    """Yields a system prompt or a latest user text that the request does not show as it was."""
    for role, what in ((Role.SYSTEM, "system prompt"), (Role.USER, "latest user text")):
        own = [s for s in host if s.role == role and s.kind == Kind.TEXT and _said(s).strip()]
        shown = {_said(s) for s in parsed if s.role == role}
        asked = own[-1:] if role == Role.USER else own
        for segment in asked:
            if _said(segment) not in shown:
                yield f"{what} not verbatim: {_said(segment)[:60]!r}"


def _said(segment: Segment) -> str:
    return "\n".join(part.text for part in content_parts(segment))


class Losses:
    """Finds originals that a request hides although the archive does not have them.

    Args:
        archive: of the session.
        session: its id.
    """

    def __init__(self, archive: Archive, session: str) -> None:
        self._archive, self._session = archive, session
        self._kept: set[str] = set()

    def of(
        self, segments: Sequence[Segment], host: Sequence[Message], sent: Sequence[Message],
        anew: bool,
    ) -> Iterator[str]:  # fmt: skip
        """Yields what is lost.

        Args:
            segments: of the host's list, numbered as a session that saw it grow numbers them.
            host: the list.
            sent: the request's messages; what of the host's is not among them is hidden.
            anew: whether to look again for what was found at an earlier request.
        """
        whole = {id(message) for message in sent}
        starts = sorted({segment.position[0] for segment in segments})
        ends = dict(zip(starts, [*starts[1:], len(host)], strict=True))
        hidden = {
            start
            for start in starts
            if any(id(m) not in whole and m not in sent for m in host[start : ends[start]])
        }
        for segment in segments:
            if segment.position[0] in hidden and (anew or segment.id not in self._kept):
                yield from self._missing(segment)
                self._kept.add(segment.id)

    def _missing(self, segment: Segment) -> Iterator[str]:
        try:
            kept = self._archive.get(self._session, segment.id)
        except ArchiveError:
            yield f"lost: {segment.id} is hidden and not archived"
            return
        # what is pinned or pending depends on how the history went on
        if replace(kept, pinned=segment.pinned, pending=segment.pending) != segment:
            yield f"lost: the archive's {segment.id} is not the original"


def segments_of(format: str, messages: Sequence[Message]) -> tuple[Segment, ...]:
    """Returns a list's segments."""
    return format_of(format).parse(messages)
