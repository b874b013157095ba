"""Encodings by name, from vocabularies on this machine, and never from a network."""

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken.registry

from contextpilot.errors import ConfigurationError
from contextpilot.tokenizers import TiktokenTokenizer
from contextpilot.tokenizers.tiktoken import _CACHE_FILES, _WINDOW


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a tokenizer went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})


def _constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    tiktoken.list_encoding_names()  # fills the table
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS
    assert constructors is not None
    return constructors


def _bytes_encoding() -> tiktoken.Encoding:
    ranks = {bytes([byte]): byte for byte in range(256)}
    return tiktoken.Encoding(
        "bytes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 256}
    )


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
@pytest.mark.parametrize("name", ["o200k_base", "gpt2"])
def test_a_missing_vocabulary_names_the_remedy(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(ConfigurationError, match="TIKTOKEN_CACHE_DIR") as error:
        TiktokenTokenizer.from_name(name)
    assert name in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_an_empty_cache_setting_means_no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(ConfigurationError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenTokenizer.from_name("o200k_base")


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"Received 'o200k_bas'.*'o200k_base'"):
        TiktokenTokenizer.from_name("o200k_bas")


def test_a_plug_in_without_its_vocabulary_fails_the_same_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable() -> dict[str, Any]:
        raise ConnectionError("no route to host")

    monkeypatch.setitem(_constructors(), "house", unreachable)
    with pytest.raises(ConfigurationError, match="'house' is not on this machine"):
        TiktokenTokenizer.from_name("house")


def test_a_present_vocabulary_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def here() -> dict[str, Any]:
        ranks = {bytes([byte]): byte for byte in range(256)}
        return {
            "name": "house",
            "pat_str": r"\S+|\s+",
            "mergeable_ranks": ranks,
            "special_tokens": {},
        }

    monkeypatch.setitem(_constructors(), "house", here)
    tokenizer = TiktokenTokenizer.from_name("house")
    assert (tokenizer.name, tokenizer.count("abc")) == ("house", 3)


def test_the_cache_file_names_are_those_that_tiktoken_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    looked_for: list[str] = []

    def read(location: str, expected_hash: str | None = None) -> bytes:

        looked_for.append(hashlib.sha1(location.encode()).hexdigest())
        raise FileNotFoundError(location)

    monkeypatch.setattr("tiktoken.load.read_file_cached", read)
    for name, files in _CACHE_FILES.items():
        looked_for.clear()
        with pytest.raises(FileNotFoundError):
            _constructors()[name]()
        assert looked_for == list(files[:1]), name


def test_special_tokens_in_a_text_are_plain_text() -> None:
    assert TiktokenTokenizer(_bytes_encoding()).count("<|end|>") == 7


def test_long_runs_are_counted_in_windows() -> None:
    tokenizer = TiktokenTokenizer(_bytes_encoding())
    text = " " * (2 * _WINDOW + 5)
    assert tokenizer.count(text) == len(text)
    assert tokenizer.truncate(text, _WINDOW + 3) == text[: _WINDOW + 3]
