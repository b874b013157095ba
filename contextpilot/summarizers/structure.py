"""A summary without a model: the pieces that matter most, verbatim and in order."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from contextpilot.errors import SummarizerError
from contextpilot.summarizers.base import SourceText, Summarizer, SummaryRequest
from contextpilot.summarizers.outline import outlined_pieces
from contextpilot.summarizers.scoring import score_line, score_pieces
from contextpilot.summarizers.split import Piece
from contextpilot.tokenizers.base import Tokenizer

_HEADER = re.compile(r"\[summary of ([^\]\n]+)\]\n?")
_LENGTH_EXPONENT = 0.4
"""0 would fill the summary with its best long pieces, 1 with whatever is short."""
_SMALLEST_REST = 6
"""Tokens; what is left of the budget below this is not worth a further search."""
_MOST_MISFITS = 8
"""After so many lines that are too long for what is left, one that fits is hardly worth it."""
_CACHED_TOKENS = 800
"""Only the best lines of a source are kept for later summaries, which are rarely longer."""
_CACHED_SOURCES = 1 << 16
_CACHED_LINES = 1 << 17
_CACHED_LABELS = 1 << 12
_PLACE = itemgetter(1, 2)


_Line: TypeAlias = tuple[float, int, int, str, int]
"""A candidate line: rank (the smaller, the better), source, place in it, text, tokens.

Plain tuples, since the garbage collector leaves those of numbers and strings alone.
"""


class StructureSummarizer(Summarizer):
    """Selects pieces by structure: sentences, items, fields, rows, log lines, dialogue turns.

    JSON and tables become a schema and rows. Deterministic; one to two milliseconds for 8 KB.
    """

    name = "structure"

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Takes what counts `max_tokens`."""
        self._tokenizer = tokenizer
        # Every summary is a selection from lines that are scored source by source, so that a
        # source is taken apart once, in whatever runs it is summarized.
        self._lines_of = lru_cache(maxsize=_CACHED_SOURCES)(self._scored)
        self._summary_line = lru_cache(maxsize=_CACHED_LINES)(self._scored_alone)
        self._label_tokens = lru_cache(maxsize=_CACHED_LABELS)(tokenizer.count)

    def summarize(self, request: SummaryRequest) -> str:
        """Returns a header that names every source, then the chosen pieces.

        Raises:
            SummarizerError: when the sources say nothing, or `max_tokens` is too small for the
                header and anything after it.
        """
        header, left = self._header(request)
        ranking = self._ranking(request, left)
        if not ranking:
            raise SummarizerError(
                f"There is nothing to summarize. Received {len(request.sources)} sources without "
                "words. Leave empty segments out, or fold them."
            )
        several = len(request.sources) > 1
        labels = [f"{source.id}: " if several else "" for source in request.sources]
        chosen = self._fitting(ranking, labels, left)
        summary = _joined(header, labels, chosen)
        # Counts do not add up exactly across lines.
        while self._tokenizer.count(summary) > request.max_tokens:
            if len(chosen) == 1:
                summary = self._tokenizer.truncate(summary, request.max_tokens)
                break
            chosen.pop()
            summary = _joined(header, labels, chosen)
        if not summary[len(header) :].strip():
            raise _too_small(request, request.max_tokens - left)
        return summary

    def _header(self, request: SummaryRequest) -> tuple[str, int]:
        """Returns the line that names the sources, and the tokens that it leaves."""
        own = [source.id for source in request.sources]
        consumed = [name for source in request.sources for name in _named_ids(source)]
        for names in (own + consumed, own):
            header = f"[summary of {', '.join(dict.fromkeys(names))}]\n"
            needed = self._tokenizer.count(header)
            if 2 * needed <= request.max_tokens:
                break
        if needed >= request.max_tokens:
            raise _too_small(request, needed)
        return header, request.max_tokens - needed

    def _ranking(self, request: SummaryRequest, left: int) -> list[_Line]:
        """Returns the candidate lines of all sources, best first, for so many tokens."""
        lines: list[_Line] = []
        most = max(request.max_tokens, _CACHED_TOKENS)
        for number, source in enumerate(request.sources):
            if source.kind == "summary":
                lines += self._lines_of_summary(number, source.text, request.goal)
                continue
            found, totals = self._lines_of(source.text, request.goal, most)
            # What is behind these would find no room even if the other sources said nothing.
            found = found[: bisect_right(totals, left) + _MOST_MISFITS]
            if number:
                lines += [(rank, number, place, text, n) for rank, _, place, text, n in found]
            else:
                lines += found
        lines.sort()
        return lines

    def _fitting(self, ranking: Sequence[_Line], labels: Sequence[str], left: int) -> list[_Line]:
        """Returns the lines that fit, best first; always at least one."""
        chosen: list[_Line] = []
        labelled: set[int] = set()
        shown: set[str] = set()
        misfits = 0
        for line in ranking:
            _, source, _, text, cost = line
            if source not in labelled:
                cost += self._label_tokens(labels[source])
            if cost > left:
                misfits += 1
                if misfits > _MOST_MISFITS:
                    break
            elif text not in shown:
                left -= cost
                labelled.add(source)
                shown.add(text)
                chosen.append(line)
                if left < _SMALLEST_REST:
                    break
        return chosen or [ranking[0]]

    def _scored(
        self, text: str, goal: str, most_tokens: int
    ) -> tuple[tuple[_Line, ...], tuple[int, ...]]:
        """Returns the best lines of a text, up to a number of tokens, and their running totals."""
        pieces = outlined_pieces(text)
        worth = _worth(pieces, score_pieces(pieces, goal))
        kept = [place for place, value in enumerate(worth) if value > 0]
        lines, totals, total = [], [], 0
        for place in sorted(kept, key=lambda place: -worth[place]):
            tokens = self._tokenizer.count(pieces[place].text + "\n")
            total += tokens
            lines.append((-worth[place], 0, place, pieces[place].text, tokens))
            totals.append(total)
            if total > most_tokens:
                break
        return tuple(lines), tuple(totals)

    def _lines_of_summary(self, number: int, text: str, goal: str) -> list[_Line]:
        """Returns the lines of an earlier summary, each scored by itself."""
        header = _HEADER.match(text)
        names = set(header[1].split(", ")) if header else set()
        lines = []
        for place, line in enumerate(text[header.end() if header else 0 :].split("\n")):
            said, tokens = line, 0
            while True:
                name, labelled, rest = said.partition(": ")
                if not labelled or name not in names:
                    break
                said, tokens = rest, tokens + self._label_tokens(f"{name}: ")
            rank, cost = self._summary_line(said, goal)
            if rank:
                lines.append((rank, number, place, line, tokens + cost))
        return lines

    def _scored_alone(self, text: str, goal: str) -> tuple[float, int]:
        """Returns the rank and the tokens of a line without its neighbours."""
        rank = -score_line(text, goal) / _cost(text)
        return rank, self._tokenizer.count(text + "\n")


def _cost(text: str) -> float:
    """Returns what the score of a line is divided by.

    In UTF-8 bytes, of which a token has about four in English and in Chinese alike. By characters
    a line in Chinese looks three times cheaper than a path or a code beside it.
    """
    return math.pow(len(text.encode("utf-8", "surrogatepass")) + 16, _LENGTH_EXPONENT)


def _worth(pieces: Sequence[Piece], scores: Sequence[float]) -> list[float]:
    """Returns scores for length, a schema as good as its best row."""
    worth = [score / _cost(piece.text) for piece, score in zip(pieces, scores, strict=True)]
    best_row = 0.0
    for index in range(len(pieces) - 1, -1, -1):
        if pieces[index].kind == "row":
            best_row = max(best_row, worth[index])
        elif pieces[index].kind == "schema" and worth[index] > 0:
            worth[index] = max(best_row, worth[index])
            best_row = 0.0
        else:
            best_row = 0.0
    return worth


def _joined(header: str, labels: Sequence[str], chosen: Sequence[_Line]) -> str:
    """Returns the summary: chosen lines in original order, each source labelled once."""
    shown: list[str] = []
    last = -1
    for _, source, _, text, _ in sorted(chosen, key=_PLACE):
        shown.append(text if source == last else labels[source] + text)
        last = source
    return header + "\n".join(shown)


def _too_small(request: SummaryRequest, needed: int) -> SummarizerError:
    """Returns the error for a budget that the header leaves nothing of."""
    return SummarizerError(
        f"max_tokens is too small to name the sources. Received {request.max_tokens} for "
        f"{len(request.sources)} sources, whose ids take {needed}. Raise summarize_max_tokens, or "
        "summarize fewer segments at once."
    )


def _named_ids(source: SourceText) -> list[str]:
    """Returns the ids in the header of an earlier summary."""
    match = _HEADER.match(source.text) if source.kind == "summary" else None
    return match[1].split(", ") if match else []
