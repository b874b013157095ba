"""Summaries that are none, and sources that are too long."""

from __future__ import annotations

import json

import pytest

from contextpilot.core.budget import TokenBudget
from contextpilot.edits.error_text import is_empty_text, is_error_text
from contextpilot.errors import ConfigurationError, SummarizerError
from contextpilot.manager import ContextManager
from contextpilot.policies.rules import SummarizeAtThreshold
from contextpilot.summarizers import ChunkedSummarizer, SourceText, SummaryRequest
from contextpilot.tokenizers import EstimateTokenizer

FAILURES = """\
RateLimitError: 429 slow down
openai.APIError: gone
TimeoutError
Error code: 500 - overloaded
Error: connection reset
[ERROR] timeout
**Error:** no
Error generating summary: Connection error.
Error calling LLM: boom
An error occurred while summarizing
An unexpected error occurred
Traceback (most recent call last):
503 Service Unavailable
Service Unavailable (503)
HTTP 500: Internal Server Error
429 slow down
504 Gateway Time-out
Overloaded
status code 429
API Error: 529 Overloaded
Connection error.
Request timed out.
The request timed out.
Rate limit reached for gpt-4o
Quota exceeded
The model is currently overloaded
prompt is too long: 208310 tokens > 200000 maximum
{"error": {"message": "no"}}
{'error': {'message': 'no'}}
{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
<html><head><title>502 Bad Gateway</title></head></html>
Failed to generate summary
Unable to generate summary
Sorry, something went wrong. Please try again later.
I'm sorry, but I can't summarize this conversation.
I apologize, but I am unable to do that.
I cannot help with that.
错误：请求超时
抱歉，我无法总结这段对话。
服务器繁忙，请稍后再试"""

SUMMARIES = """\
The user asked about errors.
Errors were found in a.py.
500 lines read.
500 requests were made; all ok
400 client records imported
404 Not Found is returned by /api/x; the user wants 200.
The error occurred in line 3; fixed.
The request failed twice until the token was renewed.
The request to the API failed twice, then it worked
An error in line 3 was fixed
Error handling was added to parse().
Exception handling: done
HTTP errors are retried 3 times
Rate limits were discussed: 40 a minute
We could not reproduce the bug; the user says it is on Safari
Not found: the file config.yaml; the user will send it
Timeouts were raised to 30 s
{'name': 'Ada', 'errors_fixed': 3}
用户要求修复错误，已完成。
请求：修复登录"""


@pytest.mark.parametrize("text", FAILURES.splitlines())
def test_reports_of_failure_are_no_summaries(text: str) -> None:
    assert is_error_text(text)
    assert not is_error_text(text, [f"the log says\n{text}"])


@pytest.mark.parametrize("text", SUMMARIES.splitlines())
def test_summaries_are(text: str) -> None:
    assert not is_error_text(text)
    assert not is_empty_text(text)


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "N/A", "\u200b", "```\n```", "{}"])
def test_texts_that_say_nothing_are_empty(text: str) -> None:
    assert is_empty_text(text)


def test_half_a_surrogate_pair_of_a_summarizer_is_replaced() -> None:
    class Cutting:
        name = "cutting"

        def summarize(self, request: SummaryRequest) -> str:
            return "caf\ud83d and \ud83d\ude00"

    manager = ContextManager(
        "openai", policy=SummarizeAtThreshold(0.5, keep_segments=1), summarizer=Cutting(),
        budget=TokenBudget(400, 0, 0.5),
    )  # fmt: skip
    said = [
        {"role": role, "content": f"{word} " * 300}
        for role, word in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
    ]
    request = manager.session().prepare([*said, {"role": "user", "content": "e"}])
    sent = json.dumps(request.messages, ensure_ascii=False).encode()
    assert "caf\ufffd and 😀".encode() in sent


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
