"""Tokenizers from files, whatever their settings."""

from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from contextpilot.errors import ConfigurationError
from contextpilot.tokenizers import HuggingFaceTokenizer

WORDS = {"[UNK]": 0, "[CLS]": 1, "red": 2, "green": 3, "blue": 4}


def _words() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 1)]
    )
    return tokenizer


def test_from_file_is_named_after_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "some-model" / "tokenizer.json"
    path.parent.mkdir()
    _words().save(str(path))
    tokenizer = HuggingFaceTokenizer.from_file(path)
    assert tokenizer.name == "some-model"
    assert tokenizer.count("red green blue") == 3  # without [CLS]


def test_truncation_and_padding_of_the_file_do_not_apply() -> None:
    limited = _words()
    limited.enable_truncation(2)
    limited.enable_padding(length=8)
    tokenizer = HuggingFaceTokenizer(limited)
    assert tokenizer.count("red green blue red") == 4
    assert limited.truncation is not None  # the caller's is left as it is


def test_a_missing_file_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json"):
        HuggingFaceTokenizer.from_file(tmp_path / "nothing.json")


def test_a_file_that_is_no_tokenizer_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama"}')
    with pytest.raises(ConfigurationError, match=r"holds no tokenizer.*config\.json"):
        HuggingFaceTokenizer.from_file(path)
