"""What every summarizer guarantees."""

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.errors import SummarizerError
from contextpilot.summarizers import (
    CachedSummarizer,
    SourceText,
    StructureSummarizer,
    Summarizer,
    SummaryRequest,
)
from contextpilot.tokenizers import EstimateTokenizer, TiktokenTokenizer, Tokenizer


def _merging() -> Tokenizer:
    """A vocabulary that merges across lines, so that counts of lines do not add up."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {merge: 256 + rank for rank, merge in enumerate([b"th", b"e\n", b".\n", b"]\n"])}
    return TiktokenTokenizer(
        tiktoken.Encoding(
            "merging", pat_str=r"[\s\S]{1,7}", mergeable_ranks=ranks, special_tokens={}
        )
    )


ESTIMATE, MERGING = EstimateTokenizer(), _merging()
SUMMARIZERS: list[tuple[Summarizer, Tokenizer]] = [
    (StructureSummarizer(ESTIMATE), ESTIMATE),
    (StructureSummarizer(MERGING), MERGING),
    (CachedSummarizer(StructureSummarizer(ESTIMATE), max_entries=4), ESTIMATE),
]
every_summarizer = pytest.mark.parametrize(
    ("summarizer", "tokenizer"), SUMMARIZERS, ids=["structure", "structure-merging", "cached"]
)
LINES = st.sampled_from(
    [
        "# Delivery",
        "The contract ends on 3 May, unless it is renewed in writing.",
        "合同于五月三日到期。除非书面续签，不得延长。",
        "Status: open",
        "2031-04-17 08:12:44 ERROR disk full on db-7",
        '{"order": {"id": "A-1", "items": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2}]}}',
        "id,name,price\n1,chair,20\n2,table,99",
        "x" * 900,
        "",
    ]
)
TEXTS = st.lists(LINES | st.text(max_size=40), max_size=10).map("\n".join)
KINDS = st.sampled_from(["result", "turn", "document", "summary"])


@st.composite
def requests(draw: st.DrawFn) -> SummaryRequest:
    texts = draw(st.lists(st.tuples(TEXTS, KINDS), max_size=4))
    sources = tuple(SourceText(f"s{i}", text, kind) for i, (text, kind) in enumerate(texts))
    goal = draw(st.sampled_from(["", "when does the contract end", "合同何时到期"]))
    return SummaryRequest(sources, goal, draw(st.integers(0, 200)))


@every_summarizer
@given(request=requests())
def test_fits_names_its_sources_and_is_stable_or_fails_as_a_whole(
    summarizer: Summarizer, tokenizer: Tokenizer, request: SummaryRequest
) -> None:
    try:
        summary = summarizer.summarize(request)
    except SummarizerError:
        return
    assert tokenizer.count(summary) <= request.max_tokens
    header, _, body = summary.partition("\n")
    assert body.strip()
    named = header.removeprefix("[summary of ").removesuffix("]").split(", ")
    assert named == [source.id for source in request.sources]
    assert summary == summarizer.summarize(request)


@every_summarizer
@pytest.mark.parametrize("texts", [[], [""], ["  \n", "\t"]])
def test_nothing_to_summarize_is_a_failure(
    summarizer: Summarizer, tokenizer: Tokenizer, texts: list[str]
) -> None:
    sources = tuple(SourceText(f"s{i}", text, "result") for i, text in enumerate(texts))
    with pytest.raises(SummarizerError):
        summarizer.summarize(SummaryRequest(sources, "", 100))


@every_summarizer
def test_a_budget_below_the_header_is_a_failure(
    summarizer: Summarizer, tokenizer: Tokenizer
) -> None:
    sources = tuple(SourceText(f"s{i}", "Some text.", "result") for i in range(50))
    with pytest.raises(SummarizerError, match="max_tokens"):
        summarizer.summarize(SummaryRequest(sources, "", 40))


@every_summarizer
def test_it_has_a_name(summarizer: Summarizer, tokenizer: Tokenizer) -> None:
    assert summarizer.name == "structure"
