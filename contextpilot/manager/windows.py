"""How many tokens a model takes, by its name.

The figures are published ones, of providers' model pages and of models' own configurations, for
input and output together (for Gemini: input alone). Where sources differ, where the name does not
tell the members of a family apart, and where a longer window must be asked for (a beta header,
YaRN), the smaller is listed: a window that is taken for too large fails requests. Providers change
them and add models; what the caller knows goes before the table.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from contextpilot.errors import ConfigurationError

_4K, _8K, _16K, _32K, _64K, _128K, _256K, _1M = (
    4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576,
)  # fmt: skip

_OPENAI = {
    "gpt-5": 400_000,  # 272,000 of them for input: reserve the other 128,000, here and below
    "gpt-5.1": 400_000,
    "gpt-5.2": 400_000,
    "gpt-5.3-codex": 400_000,
    "gpt-5.4": 1_050_000,
    "gpt-5.4-mini": 400_000,
    "gpt-5.4-nano": 400_000,
    "gpt-5.5": 1_000_000,
    "gpt-5-chat": 128_000,
    "gpt-5.1-chat": 128_000,
    "gpt-5.2-chat": 128_000,
    "gpt-4.5": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4o": 128_000,
    "chatgpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4-0125-preview": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-vision": 128_000,
    "gpt-4-32k": _32K,
    "gpt-4": _8K,
    "gpt-3.5-turbo": 16_385,
    "gpt-3.5-turbo-0613": _4K,
    "gpt-3.5-turbo-instruct": _4K,
    "gpt-oss": _128K,
    "codex-mini": 200_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
}
_ANTHROPIC = {  # versions with "-", however the name writes them
    "claude-fable-5": 1_000_000,
    "claude-opus-5": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "claude-opus-4-8": 1_000_000,
    "claude-opus-4-7": 1_000_000,
    "claude-opus-4-6": 1_000_000,
    "claude-sonnet-4-6": 1_000_000,
    "claude-opus-4": 200_000,
    "claude-sonnet-4": 200_000,
    "claude-haiku-4": 200_000,
    "claude-3": 200_000,
    "claude-2-1": 200_000,
    "claude-2": 100_000,
    "claude-instant": 100_000,
}
_GOOGLE = {
    "gemini-3.5-flash": _1M,
    "gemini-3.1-pro": _1M,
    "gemini-3-pro": _1M,
    "gemini-3-flash": _1M,
    "gemini-2.5-pro": _1M,
    "gemini-2.5-flash": _1M,
    "gemini-2.0-flash": _1M,
    "gemini-1.5-pro": 2 * _1M,
    "gemini-1.5-flash": _1M,
    "gemini-1.0-pro": 30_720,
    "gemma-3": _128K,
    "gemma-3-1b": _32K,
    "gemma-2": _8K,
}
_QWEN = {
    "qwen3": _32K,
    "qwen3-max": _256K,
    "qwen3-next": _256K,
    "qwen3-coder": _256K,
    "qwen3-vl": _256K,
    "qwen3-4b-instruct-2507": _256K,
    "qwen3-4b-thinking-2507": _256K,
    "qwen3-30b-a3b-instruct-2507": _256K,
    "qwen3-30b-a3b-thinking-2507": _256K,
    "qwen3-235b-a22b-instruct-2507": _256K,
    "qwen3-235b-a22b-thinking-2507": _256K,
    "qwen2.5": _32K,
    "qwen2.5-7b-instruct-1m": 1_010_000,
    "qwen2.5-14b-instruct-1m": 1_010_000,
    "qwen2": _32K,
    "qwen1.5": _32K,
    "qwen-max": _32K,
    "qwen-plus": _128K,
    "qwen-turbo": _128K,
    "qwq-32b": _128K,
}
_LLAMA = {
    "llama-4-scout": 10 * _1M,
    "llama-4-maverick": _1M,
    "llama-3.3": _128K,
    "llama-3.2": _128K,
    "llama-3.1": _128K,
    "llama-3": _8K,
    "llama-2": _4K,
    "codellama": _16K,
}
_MISTRAL = {
    "mistral-large": _128K,
    "mistral-large-2402": _32K,
    "mistral-medium": _128K,
    "mistral-medium-2312": _32K,
    "mistral-small": _32K,
    "mistral-small-2503": _128K,
    "mistral-small-2506": _128K,
    "mistral-small-3.1": _128K,
    "mistral-small-3.2": _128K,
    "mistral-nemo": _128K,
    "mistral-7b": _32K,
    "mistral-7b-v0.1": _8K,
    "mistral-7b-instruct-v0.1": _8K,
    "mixtral-8x7b": _32K,
    "mixtral-8x22b": _64K,
    "ministral": _128K,
    "magistral": 40_000,
    "devstral": _128K,
    "pixtral": _128K,
    "codestral": _32K,
    "codestral-2501": _256K,
    "codestral-2508": 128_000,
}
_DEEPSEEK = {
    "deepseek-chat": _128K,
    "deepseek-reasoner": _128K,
    "deepseek-r1": _128K,
    "deepseek-v4": 1_000_000,
    "deepseek-v3": _128K,
    "deepseek-v3.1": _128K,
    "deepseek-v3.2": _128K,
    "deepseek-v2": _128K,
    "deepseek-v2.5": _128K,
    "deepseek-v2-lite": _32K,
    "deepseek-coder": _16K,
    "deepseek-coder-v2": _128K,
}

WINDOWS: Mapping[str, int] = MappingProxyType(
    {**_OPENAI, **_ANTHROPIC, **_GOOGLE, **_QWEN, **_LLAMA, **_MISTRAL, **_DEEPSEEK}
)
"""Tokens by the beginning of a model's name. A dot does not end a word: "gpt-5" says nothing about
a "gpt-5.9"."""

_CLOUD = re.compile(r"^(?:[a-z-]{2,6}\.)?(?:anthropic|meta|mistral|amazon|deepseek|qwen|openai)\.")
"""How Bedrock writes the provider, with a region before it: "us.anthropic.claude-..."."""


def context_window(model: str, overrides: Mapping[str, int] | None = None) -> int:
    """Returns the window of a model, in tokens.

    The longest known beginning of the name decides, cut at "-", ":", "@" or "_": dates, sizes and
    variants that the table does not have fall away ("gpt-4o-2024-08-06", "llama3.1:8b"). A provider
    before the name is not read ("openrouter/openai/gpt-4o"), nor are upper and lower case.

    Args:
        model: the name that requests are made with.
        overrides: tokens by name or beginning of a name, for models that the table lacks or that
            are served with another window; they go before the table.

    Raises:
        ConfigurationError: for a model that neither has, with the nearest names; or an override
            that is not a positive number of tokens.
    """
    own = {key.lower(): tokens for key, tokens in (overrides or {}).items()}
    for key, tokens in own.items():
        if type(tokens) is not int or tokens <= 0:
            raise ConfigurationError(
                f"a window must be a positive number of tokens. Received {tokens!r} for {key!r}."
            )
    name = _bare(model)
    full = model.strip().lower()
    for table, names in ((own, (full, full.rpartition("/")[2], name)), (WINDOWS, (name,))):
        for beginning in (each for whole in names for each in _beginnings(whole)):
            if beginning in table:
                return table[beginning]
    raise ConfigurationError(
        f"the context window of this model is not known. Received {model!r}."
        f"{_suggestion(name, (*own, *WINDOWS))} Pass overrides={{{model!r}: tokens}} with the "
        "window that it is served with."
    )


def _bare(model: str) -> str:
    """Returns a name without provider, in the table's spelling."""
    name = model.strip().lower().removeprefix("ft:").rpartition("/")[2]
    name = _CLOUD.sub("", name)
    for word in ("meta-", "open-"):  # "meta-llama-3", "open-mixtral-8x7b"
        name = name.removeprefix(word)
    if name.startswith("claude-"):
        return name.replace(".", "-")
    name = re.sub(r"^llama(?=\d)", "llama-", name)
    return re.sub(r"^(llama-\d)-(\d)(?=-|$)", r"\1.\2", name)  # "llama3-1-8b", no "llama-3-8b"


def _beginnings(name: str) -> Iterator[str]:
    """Yields a name and what is left of it, cut by cut, longest first."""
    yield name
    for mark in reversed(list(re.finditer(r"[-:@_]", name))):
        yield name[: mark.start()]


def _suggestion(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
