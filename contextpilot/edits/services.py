"""What an edit needs besides the context: tokens, stubs, summaries and the archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from contextpilot.archives.base import Archive
from contextpilot.core.interned import Interned, InternedCopy
from contextpilot.core.segment import Form, Kind, Segment
from contextpilot.edits.made import copy_segment
from contextpilot.edits.references import GoalRelevance, ReferenceIndex, resource_of
from contextpilot.edits.stub import bare_stub, outline_stub, stub_line
from contextpilot.messages.arguments import fold_arguments
from contextpilot.summarizers.base import SourceText, Summarizer, SummaryRequest
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import MESSAGE_TOKENS, segment_tokens

LONG_ARGUMENT_CHARS = 80

_KIND_NAMES = {kind: kind.name.lower() for kind in Kind}

LEAST_STUB_TOKENS = 12
"""No stub is shorter, so a segment of this size is never worth folding."""


@dataclass(slots=True)
class Services:
    """The bundle that `apply_edit` works with, for one conversation.

    Attributes:
        tokenizer, summarizer, archive: implementations of the three protocols.
        goal: what summaries are scored against.
        session: whose archive this is.
        token_scale: the agent's tokens per counted token, where usage calibrates it.
    """

    tokenizer: Tokenizer
    summarizer: Summarizer
    archive: Archive
    goal: str = ""
    session: str = "default"
    token_scale: float = 1.0

    def scaled(self, tokens: int) -> int:
        """Returns counted tokens in the agent's own tokens."""
        return tokens if self.token_scale == 1.0 else round(tokens * self.token_scale)

    def count(self, text: str) -> int:
        """Returns the agent's tokens of a text."""
        return self.scaled(self.tokenizer.count(text))

    def shown_tokens(self, text: str) -> int:
        """Returns what an edited form costs: its text and the framing that its message keeps."""
        return self.scaled(self.tokenizer.count(text) + MESSAGE_TOKENS)

    def intern(
        self, segments: Sequence[Segment]
    ) -> tuple[list[Interned], dict[int, tuple[int, ...]]]:
        """Returns the interned segments and the members of each exchange, by leader."""
        leaders: dict[str, int] = {}
        groups: dict[int, list[int]] = {}
        for i, segment in enumerate(segments):
            if segment.exchange:
                groups.setdefault(leaders.setdefault(segment.exchange, i), []).append(i)
        index, relevance = ReferenceIndex(), GoalRelevance(self.goal)
        entries = []
        for i, segment in enumerate(segments):
            leader = leaders[segment.exchange] if segment.exchange else i
            entries.append(
                self.interned(
                    segment,
                    leader=leader,
                    resource=resource_of(segment, segments[leader]),
                    references=index.add(i, segment),
                    goal_relevance=relevance.add(segment.text),
                )
            )
        return entries, {leader: tuple(g) for leader, g in groups.items() if len(g) > 1}

    def interned(
        self,
        segment: Segment,
        *,
        leader: int,
        resource: str = "",
        references: tuple[int, ...] = (),
        goal_relevance: float = 0.0,
    ) -> Interned:
        """Returns one segment with its token counts."""
        full = self.scaled(segment_tokens(self.tokenizer, segment))
        return Interned(
            segment,
            self,
            leader=leader,
            full_tokens=full,
            stub_tokens=self._stub_tokens(segment, full),
            resource=resource,
            references=references,
            goal_relevance=goal_relevance,
        )

    def interned_copy(self, original: Interned, origin: int, made: int) -> InternedCopy:
        """Returns a copy of an original, whose tokens are known already.

        Args:
            original: what is shown once more.
            origin: its index in the context.
            made: the copy's own.
        """
        segment, full, segment_id = original.segment, original.full_tokens, f"m{made}"
        stub = full
        if full > LEAST_STUB_TOKENS:
            stub = min(
                full, self.shown_tokens(stub_line(segment_id, segment.name, Kind.COPY, full))
            )
        return InternedCopy(
            original, copy_segment, segment_id, origin=origin, leader=made, stub_tokens=stub
        )

    def interned_summary(self, summary: Segment, leader: int, tokens: int) -> Interned:
        """Returns a summary whose text's tokens are known; a fold of it would save nothing."""
        full = self.scaled(tokens + MESSAGE_TOKENS)
        entry = Interned(
            summary, self, leader=leader, full_tokens=full, stub_tokens=full
        )  # fmt: skip
        entry.text_tokens = self.scaled(tokens)
        return entry

    def text_tokens(self, entry: Interned) -> int:
        """Returns the agent's tokens of a segment's text, counted once."""
        if entry.text_tokens < 0:
            entry.text_tokens = self.count(entry.segment.text)
        return entry.text_tokens

    def render(self, segment: Segment, form: Form) -> tuple[str, int]:
        """Returns the text of a stub or an outline, and its tokens."""
        full = self.scaled(segment_tokens(self.tokenizer, segment))
        if segment.kind == Kind.TURN and any(part.type == "call" for part in segment.parts):
            text = _folded_turn(segment)
        elif form == Form.OUTLINE:
            text = outline_stub(segment, full)
        else:
            text = bare_stub(segment, full)
        return text, self.shown_tokens(text)

    def summarize(self, segments: Sequence[Segment], max_tokens: int) -> str:
        """Returns a summary of some originals.

        Raises:
            SummarizerError: when the summarizer fails.
        """
        sources = tuple([SourceText(s.id, s.text, _KIND_NAMES[s.kind]) for s in segments])
        return self.summarizer.summarize(SummaryRequest(sources, self.goal, max_tokens))

    def _stub_tokens(self, segment: Segment, full_tokens: int) -> int:
        """Returns what the bare stub costs; equal to the full size where a fold saves nothing."""
        if full_tokens <= LEAST_STUB_TOKENS:
            return full_tokens
        if segment.kind == Kind.SUMMARY or segment.kind == Kind.NOTE:
            return full_tokens
        if segment.kind == Kind.TURN and any(part.type == "call" for part in segment.parts):
            if all(len(p.text) <= LONG_ARGUMENT_CHARS for p in segment.parts if p.type == "call"):
                return full_tokens
            return min(full_tokens, self.shown_tokens(_folded_turn(segment)))
        return min(full_tokens, self.shown_tokens(bare_stub(segment, full_tokens)))


def _folded_turn(segment: Segment) -> str:
    """Returns a turn's readable text with the long leaves of its call arguments hidden."""
    lines = []
    for part in segment.parts:
        if part.type == "call":
            lines.append(f"{part.name} {_folded_arguments(part.text, segment.id)}")
        elif part.text:
            lines.append(part.text)
    return "\n".join(lines)


def _folded_arguments(text: str, segment_id: str) -> str:
    try:
        return fold_arguments(text, segment_id, LONG_ARGUMENT_CHARS)
    except (json.JSONDecodeError, ValueError):
        return text  # arguments that were never JSON stay as they came
