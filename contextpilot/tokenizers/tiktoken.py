"""Counting with a tiktoken encoding, from vocabularies that are on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tiktoken

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.prefix import fit_prefix

_WINDOW = 100_000
"""Longer texts are encoded in windows: the encoder overflows its stack on a very long run of
spaces. A boundary adds at most one token."""

_CL100K = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"
_P50K = "ec7223a39ce59f226a68acc30dc1af2788490e15"
_CACHE_FILES = {
    "cl100k_base": (_CL100K,),
    "o200k_base": (_O200K,),
    "o200k_harmony": (_O200K,),
    "p50k_base": (_P50K,),
    "p50k_edit": (_P50K,),
    "r50k_base": ("0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4",),
    "gpt2": (
        "6d1cbeee0f20b3d9449abfede4726ed8212e3aee",
        "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6",
    ),
}
"""The names that tiktoken's cache gives to its vocabularies (hashes of where they come from).
They are looked for first, because tiktoken would download what it lacks, without a timeout."""


class TiktokenTokenizer(Tokenizer):
    """Counts with a `tiktoken.Encoding`. Special tokens in a text are counted as plain text."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        """Wraps an encoding, whose name becomes the tokenizer's."""
        self.name = encoding.name
        self._encoding = encoding

    @classmethod
    def from_name(cls, encoding_name: str) -> TiktokenTokenizer:
        """Returns the tokenizer of a named encoding, such as "o200k_base".

        Raises:
            ConfigurationError: when the name is unknown, or its vocabulary is not on this machine.
        """
        known = tiktoken.list_encoding_names()
        if encoding_name not in known:
            raise ConfigurationError(
                f"Unknown tiktoken encoding. Received {encoding_name!r}."
                + did_you_mean(encoding_name, known)
            )
        folder = _cache_folder()
        missing = [n for n in _CACHE_FILES.get(encoding_name, ()) if not (folder / n).is_file()]
        if missing:
            raise ConfigurationError(_missing_message(encoding_name, folder, missing))
        try:
            return cls(tiktoken.get_encoding(encoding_name))
        except (OSError, ValueError, ImportError) as error:
            # A vocabulary of a plug-in, or a corrupt one: tiktoken tried to download it.
            raise ConfigurationError(_missing_message(encoding_name, folder, [])) from error

    def count(self, text: str) -> int:
        """Returns the number of tokens."""
        return sum(len(self._encoding.encode_ordinary(window)) for window in _windows(text))

    def truncate(self, text: str, max_tokens: int) -> str:
        """Returns the longest prefix of at most `max_tokens` tokens."""
        if max_tokens <= 0:
            return ""
        guess, left = 0, max_tokens
        for window in _windows(text):
            tokens = self._encoding.encode_ordinary(window)
            if len(tokens) > left:
                kept = self._encoding.decode_bytes(tokens[:left])
                guess += len(kept.decode("utf-8", errors="ignore"))
                break
            guess, left = guess + len(window), left - len(tokens)
        return fit_prefix(self.count, text, guess, max_tokens)


def _windows(text: str) -> Iterator[str]:
    """Yields the text in pieces that the encoder can take."""
    return (text[start : start + _WINDOW] for start in range(0, len(text), _WINDOW))


def _cache_folder() -> Path:
    """Returns the folder in which tiktoken looks for vocabularies; an empty setting has none."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable] or os.devnull)
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _missing_message(encoding_name: str, folder: Path, missing: list[str]) -> str:
    """Says which vocabulary is missing, where it was looked for, and what to do."""
    files = f" (file {', '.join(missing)})" if missing else ""
    return (
        f"The vocabulary of tiktoken encoding {encoding_name!r} is not on this machine: "
        f"looked in {folder}{files}. Set TIKTOKEN_CACHE_DIR to a folder that holds it, fill that "
        f"folder once with tiktoken.get_encoding({encoding_name!r}) while online, or use "
        "HuggingFaceTokenizer.from_file(path) or EstimateTokenizer() instead."
    )
