"""BM25: its formula, both languages, and no noise."""

import logging
import math
import subprocess
import sys
from collections import Counter

import pytest

from contextpilot.retrieval import Bm25Retriever, text_terms

CORPUS = [
    "Order A-20931 ships from the Lisbon warehouse on Monday.",
    "The Porto warehouse has no forklift; orders ship on Friday, orders only.",
    "get_user_reservations returned reservation ZFA04Y for mia_li_3668.",
    "服务器在凌晨三点重启，原因是内存不足。",
    "客户要求退款，订单号是 B-118。",
]


def _bm25(query: str, document: str, k1: float = 1.5, b: float = 0.75) -> float:
    """The textbook formula, term by term."""
    counted = [Counter(text_terms(text)) for text in CORPUS]
    mean = sum(sum(counts.values()) for counts in counted) / len(counted)
    here = Counter(text_terms(document))
    length = sum(here.values())
    score = 0.0
    for term in text_terms(query):
        having = sum(term in counts for counts in counted)
        idf = math.log(1 + (len(CORPUS) - having + 0.5) / (having + 0.5))
        score += idf * here[term] / (here[term] + k1 * (1 - b + b * length / mean))
    return score


@pytest.mark.parametrize("query", ["warehouse orders ship", "memory 内存不足 重启", "the"])
def test_scores_are_those_of_the_formula(query: str) -> None:
    expected = {index: _bm25(query, text) for index, text in enumerate(CORPUS)}
    found = dict(Bm25Retriever(CORPUS).search(query, 10))
    assert found == pytest.approx({i: score for i, score in expected.items() if score}, rel=1e-5)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("mia_li_3668", 2),
        ("user reservations", 2),
        ("Lisbon", 0),
        ("退款", 4),
        ("为什么服务器重启", 3),
        ("b-118", 4),
    ],
)
def test_finds_identifiers_by_their_parts_and_chinese(query: str, index: int) -> None:
    assert Bm25Retriever(CORPUS).search(query, 1)[0][0] == index


def test_it_prints_and_logs_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        Bm25Retriever(CORPUS).search("warehouse", 2)
    assert capfd.readouterr() == ("", "")
    assert caplog.messages == []


def test_results_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from contextpilot.retrieval import Bm25Retriever\n"
        "corpus = [f'item {i % 7} of group {i % 3} at shelf {i % 11}' for i in range(60)]\n"
        "print(Bm25Retriever(corpus).search('item 3 group 2 shelf 5', 60))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_the_library_is_loaded_by_the_first_search_only() -> None:
    program = (
        "import sys\n"
        "from contextpilot.retrieval import Bm25Retriever\n"
        "retriever = Bm25Retriever(['some text'])\n"
        "assert 'bm25s' not in sys.modules\n"
        "retriever.search('text', 1)\n"
        "assert 'bm25s' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
