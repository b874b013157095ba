"""What every retriever guarantees."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.errors import ConfigurationError
from contextpilot.retrieval import Bm25Retriever, Retriever

MAKERS: list[Callable[[Sequence[str]], Retriever]] = [Bm25Retriever]
every_retriever = pytest.mark.parametrize("make", MAKERS)
CORPUS = (
    "The invoice of Acme is overdue by 30 days.",
    "Restart the database host db-7 after the backup.",
    "库存不足，请尽快补货。",
    "The invoice of Borealis was paid in March.",
    "",
    "The invoice of Borealis was paid in March.",
)


@every_retriever
def test_the_best_match_comes_first(make: Callable[[Sequence[str]], Retriever]) -> None:
    assert make(CORPUS).search("which invoice is overdue", 3)[0][0] == 0
    assert make(CORPUS).search("库存", 3)[0][0] == 2


@every_retriever
def test_scores_fall_and_are_above_zero(make: Callable[[Sequence[str]], Retriever]) -> None:
    found = make(CORPUS).search("the invoice of Acme", 10)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert {index for index, _ in found} == {0, 1, 3, 5}


@every_retriever
def test_equal_texts_are_ranked_by_index(make: Callable[[Sequence[str]], Retriever]) -> None:
    found = make(CORPUS).search("Borealis", 10)
    assert [index for index, _ in found] == [3, 5]
    assert found[0][1] == found[1][1]


@every_retriever
def test_the_limit_cuts_the_end_of_the_ranking(make: Callable[[Sequence[str]], Retriever]) -> None:
    retriever = make(CORPUS)
    whole = retriever.search("the invoice", 10)
    assert len(whole) > 2
    for limit in range(len(whole) + 1):
        assert retriever.search("the invoice", limit) == whole[:limit]


@every_retriever
def test_a_negative_limit_is_refused(make: Callable[[Sequence[str]], Retriever]) -> None:
    with pytest.raises(ConfigurationError, match="Received -1"):
        make(CORPUS).search("invoice", -1)


@every_retriever
@given(allowed=st.none() | st.sets(st.integers(-2, 8)) | st.lists(st.integers(0, 5)))
def test_allowed_restricts_and_changes_no_score(
    make: Callable[[Sequence[str]], Retriever], allowed: set[int] | list[int] | None
) -> None:
    retriever = make(CORPUS)
    whole = retriever.search("invoice db-7", 10)
    kept = [hit for hit in whole if allowed is None or hit[0] in allowed]
    assert list(retriever.search("invoice db-7", 10, allowed)) == kept


@every_retriever
@pytest.mark.parametrize("corpus", [(), ("",), ("", "!?"), CORPUS])
@pytest.mark.parametrize("query", ["", "  ", "?!", "zzz", "\ud800"])
def test_nothing_to_find_is_not_an_error(
    make: Callable[[Sequence[str]], Retriever], corpus: Sequence[str], query: str
) -> None:
    assert list(make(corpus).search(query, 5)) == []
