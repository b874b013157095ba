"""What every tokenizer guarantees."""

from collections.abc import Callable

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from contextpilot.tokenizers import (
    EstimateTokenizer,
    HuggingFaceTokenizer,
    TiktokenTokenizer,
    Tokenizer,
)

MERGES = ["th", "he", "in", "er", "the", " t", " the", "ing", "  ", "    ", "\n\n"]


def _tiktoken() -> Tokenizer:
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {merge.encode(): 256 + rank for rank, merge in enumerate(MERGES)}
    encoding = tiktoken.Encoding(
        "tiny", pat_str=r" ?\w+|\s+(?!\S)|\s+|[^\w\s]+", mergeable_ranks=ranks, special_tokens={}
    )
    return TiktokenTokenizer(encoding)


def _hugging_face() -> Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the other thing in there\n\n  价格是多少"] * 9, trainer)
    return HuggingFaceTokenizer(tokenizer)


MAKERS: list[Callable[[], Tokenizer]] = [EstimateTokenizer, _tiktoken, _hugging_face]
TOKENIZERS = [make() for make in MAKERS]
every_tokenizer = pytest.mark.parametrize(
    "tokenizer", TOKENIZERS, ids=lambda tokenizer: tokenizer.name
)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["the ", "other", " thing\n", "    ", "\n\n", "价格", "👩‍💻", "é", "12,345"]
        ),
        st.text(st.characters(exclude_categories=()), max_size=5),
    ),
    max_size=12,
).map("".join)


@every_tokenizer
def test_an_empty_text_has_no_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.count("") == 0


@every_tokenizer
def test_it_has_a_name(tokenizer: Tokenizer) -> None:
    assert tokenizer.name


@every_tokenizer
@given(text=TEXTS)
def test_counts_are_stable_and_positive(tokenizer: Tokenizer, text: str) -> None:
    count = tokenizer.count(text)
    assert count == tokenizer.count(text)
    assert (count > 0) == bool(text)


@every_tokenizer
@given(text=TEXTS, max_tokens=st.integers(-1, 20))
def test_truncate_gives_the_longest_prefix_that_fits(
    tokenizer: Tokenizer, text: str, max_tokens: int
) -> None:
    cut = tokenizer.truncate(text, max_tokens)
    assert text.startswith(cut)
    assert tokenizer.count(cut) <= max(0, max_tokens)
    if cut != text:
        assert tokenizer.count(text[: len(cut) + 1]) > max_tokens


@every_tokenizer
def test_a_text_that_fits_is_returned_whole(tokenizer: Tokenizer) -> None:
    text = "the other thing, 价格 👩‍💻 \ud800"
    assert tokenizer.truncate(text, tokenizer.count(text)) == text
