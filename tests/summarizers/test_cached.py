"""The cache answers what it has seen, and nothing else."""

import pytest

from contextpilot.errors import ConfigurationError, SummarizerError
from contextpilot.summarizers import CachedSummarizer, SourceText, SummaryRequest


class Counting:
    """Numbers its answers; fails on request."""

    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, request: SummaryRequest) -> str:
        self.calls += 1
        if request.goal == "fail":
            raise SummarizerError("no summary")
        return f"summary {self.calls}"


def _request(text: str = "text", goal: str = "", max_tokens: int = 9) -> SummaryRequest:
    return SummaryRequest((SourceText("s1", text, "result"),), goal, max_tokens)


def test_the_same_request_is_answered_from_memory() -> None:
    inner = Counting()
    cached = CachedSummarizer(inner)
    assert [cached.summarize(_request()) for _ in range(3)] == ["summary 1"] * 3
    assert (inner.calls, cached.hits, cached.misses) == (1, 2, 1)
    assert cached.name == "counting"


@pytest.mark.parametrize(
    "other",
    [
        _request("other"),
        _request(goal="goal"),
        _request(max_tokens=10),
        SummaryRequest((SourceText("s2", "text", "result"),), "", 9),
        SummaryRequest((SourceText("s1", "text", "turn"),), "", 9),
        SummaryRequest((SourceText("s1", "text", "result"),) * 2, "", 9),
        SummaryRequest((SourceText("s1t", "ext", "result"),), "", 9),
    ],
)
def test_any_difference_is_another_request(other: SummaryRequest) -> None:
    cached = CachedSummarizer(Counting())
    assert cached.summarize(_request()) != cached.summarize(other)


def test_the_one_unused_for_longest_goes_first() -> None:
    inner = Counting()
    cached = CachedSummarizer(inner, max_entries=2)
    cached.summarize(_request("a"))
    cached.summarize(_request("b"))
    cached.summarize(_request("a"))
    cached.summarize(_request("c"))  # b goes
    assert cached.summarize(_request("a")) == "summary 1"
    assert cached.summarize(_request("b")) == "summary 4"
    assert inner.calls == 4


def test_failures_are_not_kept() -> None:
    inner = Counting()
    cached = CachedSummarizer(inner)
    for _ in range(2):
        with pytest.raises(SummarizerError):
            cached.summarize(_request(goal="fail"))
    assert inner.calls == 2


def test_lone_surrogates_are_text_like_any_other() -> None:
    assert CachedSummarizer(Counting()).summarize(_request("\ud800")) == "summary 1"


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Received 0"):
        CachedSummarizer(Counting(), max_entries=0)
