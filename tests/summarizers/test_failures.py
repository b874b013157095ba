"""Summaries that are none, and sources that are too long."""

from __future__ import annotations

import pytest

from contextpilot.edits.error_text import is_error_text
from contextpilot.errors import ConfigurationError, SummarizerError
from contextpilot.summarizers import ChunkedSummarizer, SourceText, SummaryRequest
from contextpilot.tokenizers import EstimateTokenizer


@pytest.mark.parametrize(
    "text",
    [
        "RateLimitError: 429 slow down",
        "openai.APIError: gone",
        "Error code: 500 - overloaded",
        "Error: connection reset",
        "Traceback (most recent call last):\n  File",
        "503 Service Unavailable",
        '{"error": {"message": "no"}}',
        "Failed to generate summary",
        "An error occurred while summarizing",
    ],
)
def test_error_reports_are_no_summaries(text: str) -> None:
    assert is_error_text(text)
    assert not is_error_text(text, [f"the log says\n{text}"])


@pytest.mark.parametrize(
    "text", ["The user asked about errors.", "Errors were found in a.py.", "500 lines read.", ""]
)
def test_summaries_are(text: str) -> None:
    assert not is_error_text(text)


class Recording:
    name = "recording"

    def __init__(self, answer: str = "short") -> None:
        self.read: list[SummaryRequest] = []
        self.answer = answer

    def summarize(self, request: SummaryRequest) -> str:
        self.read.append(request)
        return self.answer


def request_of(*texts: str) -> SummaryRequest:
    return SummaryRequest(
        tuple(SourceText(f"s{n}", text, "result") for n, text in enumerate(texts)), "goal", 60
    )


def test_no_request_is_longer_than_the_limit_and_nothing_is_left_out() -> None:
    inner, tokenizer = Recording(), EstimateTokenizer()
    texts = ["alpha " * 10, "beta " * 400, "gamma " * 10]
    chunked = ChunkedSummarizer(inner, tokenizer, 100)
    assert chunked.summarize(request_of(*texts)) == "short"
    for request in inner.read:
        assert sum(tokenizer.count(source.text) for source in request.sources) <= 100
    read = "".join(s.text for r in inner.read for s in r.sources if s.kind == "result")
    assert read == "".join(texts)
    assert {s.text for s in inner.read[-1].sources} == {"short"}


def test_what_fits_goes_through_as_it_is() -> None:
    inner, request = Recording(), request_of("a", "", "b")
    ChunkedSummarizer(inner, EstimateTokenizer(), 100).summarize(request)
    assert inner.read == [request]


def test_summaries_that_do_not_get_shorter_fail() -> None:
    chunked = ChunkedSummarizer(Recording("long " * 300), EstimateTokenizer(), 100)
    with pytest.raises(SummarizerError, match="too long"):
        chunked.summarize(request_of("beta " * 400))
    with pytest.raises(ConfigurationError, match="Received 3"):
        ChunkedSummarizer(Recording(), EstimateTokenizer(), 3)
