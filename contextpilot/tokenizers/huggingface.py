"""Counting with a Hugging Face `tokenizers` tokenizer, from its `tokenizer.json`."""

from __future__ import annotations

import re
from pathlib import Path

import tokenizers

from contextpilot.errors import ConfigurationError
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.prefix import fit_prefix

_SURROGATE = re.compile("[\ud800-\udfff]")


class HuggingFaceTokenizer(Tokenizer):
    """Counts with a `tokenizers.Tokenizer`, without the special tokens of a template."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, name: str = "huggingface") -> None:
        """Wraps a tokenizer.

        Args:
            tokenizer: left as it is; where it truncates or pads, a copy that does not is used.
            name: what logs and reports call it.
        """
        if tokenizer.truncation or tokenizer.padding:
            tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self.name = name
        self._tokenizer = tokenizer

    @classmethod
    def from_file(cls, path: str | Path) -> HuggingFaceTokenizer:
        """Returns the tokenizer in a `tokenizer.json`, named after its folder.

        Raises:
            ConfigurationError: when there is no such file, or it holds no tokenizer.
        """
        path = Path(path)
        if not path.is_file():
            raise ConfigurationError(
                f"There is no tokenizer file. Received {str(path)!r}. Give the path of a "
                "tokenizer.json, which is in the folder of a downloaded model."
            )
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigurationError(
                f"The file holds no tokenizer. Received {str(path)!r}: {error}. Give the path of "
                "a tokenizer.json as written by Tokenizer.save()."
            ) from error
        return cls(tokenizer, path.resolve().parent.name or path.stem)

    def count(self, text: str) -> int:
        """Returns the number of tokens."""
        return len(self._encode(text).ids)

    def truncate(self, text: str, max_tokens: int) -> str:
        """Returns the longest prefix of at most `max_tokens` tokens."""
        if max_tokens <= 0:
            return ""
        ends = [end for _, end in self._encode(text).offsets]
        guess = ends[max_tokens - 1] if len(ends) > max_tokens else len(text)
        return fit_prefix(self.count, text, guess, max_tokens)

    def _encode(self, text: str) -> tokenizers.Encoding:
        """Returns the encoding; lone surrogates, which the library refuses, are replaced."""
        return self._tokenizer.encode(_SURROGATE.sub("�", text), add_special_tokens=False)
