"""A summary without a model: the pieces that matter most, verbatim and in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from contextpilot.errors import SummarizerError
from contextpilot.summarizers.base import SourceText, Summarizer, SummaryRequest
from contextpilot.summarizers.outline import outlined_pieces
from contextpilot.summarizers.scoring import score_pieces
from contextpilot.tokenizers.base import Tokenizer

_HEADER = re.compile(r"\[summary of ([^\]\n]+)\]\n?")
_LENGTH_EXPONENT = 0.4
"""0 would fill the summary with its best long pieces, 1 with whatever is short."""
_SMALLEST_REST = 6
"""Tokens; what is left of the budget below this is not worth a further search."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A candidate line of the summary."""

    source: int
    kind: str
    text: str
    score: float


class StructureSummarizer(Summarizer):
    """Selects pieces by structure: sentences, items, fields, rows, log lines, dialogue turns.

    JSON and tables become a schema and rows. Deterministic; one to two milliseconds for 8 KB.
    """

    name = "structure"

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Takes what counts `max_tokens`."""
        self._tokenizer = tokenizer

    def summarize(self, request: SummaryRequest) -> str:
        """Returns a header that names every source, then the chosen pieces.

        Raises:
            SummarizerError: when the sources say nothing, or `max_tokens` is too small for the
                header and anything after it.
        """
        header = self._header(request)
        lines = _scored_lines(request)
        ranking = _ranking(lines)
        if not ranking:
            raise SummarizerError(
                f"There is nothing to summarize. Received {len(request.sources)} sources without "
                "words. Leave empty segments out, or fold them."
            )
        several = len(request.sources) > 1
        labels = [f"{source.id}: " if several else "" for source in request.sources]
        chosen = self._fitting(header, lines, labels, ranking, request.max_tokens)
        summary = _joined(header, lines, labels, chosen)
        # Counts do not add up exactly across lines.
        while len(chosen) > 1 and self._tokenizer.count(summary) > request.max_tokens:
            chosen.pop()
            summary = _joined(header, lines, labels, chosen)
        summary = self._tokenizer.truncate(summary, request.max_tokens)
        if not summary[len(header) :].strip():
            raise _too_small(request, self._tokenizer.count(header))
        return summary

    def _header(self, request: SummaryRequest) -> str:
        """Returns the line that names the sources, and those of summaries among them."""
        own = [source.id for source in request.sources]
        consumed = [name for source in request.sources for name in _named_ids(source)]
        for names in (own + consumed, own):
            header = f"[summary of {', '.join(dict.fromkeys(names))}]\n"
            needed = self._tokenizer.count(header)
            if 2 * needed <= request.max_tokens:
                return header
        if needed >= request.max_tokens:
            raise _too_small(request, needed)
        return header
        if needed >= request.max_tokens:
            raise SummarizerError(
                f"max_tokens is too small to name the sources. Received {request.max_tokens} for "
                f"{len(own)} sources, whose ids take {needed}. Raise summarize_max_tokens, or "
                "summarize fewer segments at once."
            )
        return header

    def _fitting(
        self,
        header: str,
        lines: Sequence[_Line],
        labels: Sequence[str],
        ranking: Sequence[int],
        max_tokens: int,
    ) -> list[int]:
        """Returns the indices of the lines that fit, best first; always at least one."""
        left = max_tokens - self._tokenizer.count(header)
        chosen: list[int] = []
        labelled: set[int] = set()
        for index in ranking:
            line = lines[index]
            label = "" if line.source in labelled else labels[line.source]
            cost = self._tokenizer.count(f"{label}{line.text}\n")
            if cost <= left:
                left -= cost
                labelled.add(line.source)
                chosen.append(index)
            if left < _SMALLEST_REST:
                break
        return chosen or [ranking[0]]


def _too_small(request: SummaryRequest, needed: int) -> SummarizerError:
    """Returns the error for a budget that the header leaves nothing of."""
    return SummarizerError(
        f"max_tokens is too small to name the sources. Received {request.max_tokens} for "
        f"{len(request.sources)} sources, whose ids take {needed}. Raise summarize_max_tokens, or "
        "summarize fewer segments at once."
    )


def _scored_lines(request: SummaryRequest) -> list[_Line]:
    """Returns the pieces of all sources, scored together."""
    groups = [outlined_pieces(_without_header(source)) for source in request.sources]
    pieces = [(index, piece) for index, group in enumerate(groups) for piece in group]
    scores = score_pieces([piece for _, piece in pieces], request.goal)
    return [
        _Line(index, piece.kind, piece.text, score)
        for (index, piece), score in zip(pieces, scores, strict=True)
    ]


def _ranking(lines: Sequence[_Line]) -> list[int]:
    """Returns the indices of lines with a score, by score for length, a schema before its rows."""
    worth = [line.score / (len(line.text) + 16) ** _LENGTH_EXPONENT for line in lines]
    best_row = 0.0
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].kind == "row":
            best_row = max(best_row, worth[index])
        elif lines[index].kind == "schema":
            worth[index] = max(best_row, worth[index])
            best_row = 0.0
        else:
            best_row = 0.0
    kept = [index for index, line in enumerate(lines) if line.score > 0]
    return sorted(kept, key=lambda index: -worth[index])


def _joined(
    header: str, lines: Sequence[_Line], labels: Sequence[str], chosen: Sequence[int]
) -> str:
    """Returns the summary: chosen lines in original order, each source labelled once."""
    shown: list[str] = []
    last = -1
    for index in sorted(chosen):
        line = lines[index]
        shown.append(line.text if line.source == last else labels[line.source] + line.text)
        last = line.source
    return header + "\n".join(shown)


def _named_ids(source: SourceText) -> list[str]:
    """Returns the ids in the header of an earlier summary."""
    match = _HEADER.match(source.text) if source.kind == "summary" else None
    return match[1].split(", ") if match else []


def _without_header(source: SourceText) -> str:
    """Returns the text of a source; an earlier summary without its header."""
    return _HEADER.sub("", source.text, count=1) if source.kind == "summary" else source.text
