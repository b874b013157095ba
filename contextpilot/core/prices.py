"""What tokens cost, relative to one uncached input token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from contextpilot.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Prices:
    """Relative prices of one provider.

    Attributes:
        input: one input token that is neither read from nor written to a cache.
        cached_read: one input token that the provider still has cached.
        cache_write: one input token that the provider caches for the next request.
        output: one output token.
        minimum_prefix_tokens: a shorter request is not cached at all.
        latency_seconds: per request, without generation.
    """

    input: float = 1.0
    cached_read: float = 0.1
    cache_write: float = 1.25
    output: float = 5.0
    minimum_prefix_tokens: int = 1024
    latency_seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuses negative prices."""
        for name in self.__slots__:
            value = getattr(self, name)
            if value < 0:
                raise ConfigurationError(f"price `{name}` must not be negative. Received {value}.")

    def request(self, cached_tokens: int, new_tokens: int) -> float:
        """Returns the price of one request's input, in input-token equivalents."""
        if cached_tokens + new_tokens < self.minimum_prefix_tokens:
            return self.input * (cached_tokens + new_tokens)
        return self.cached_read * cached_tokens + self.cache_write * new_tokens


PRICE_PRESETS: Mapping[str, Prices] = MappingProxyType(
    {
        # Anthropic, prompt caching with a 5-minute life: write 1.25x, read 0.1x, output 5x of
        # input for the Sonnet and Opus classes, 1024 tokens at least. Price page, November 2026.
        "default": Prices(),
        # OpenAI: caching is automatic, nothing is charged for writing, cached input at a tenth,
        # output 8x of input for the GPT-5 class, 1024 tokens at least. Price page, November 2026.
        "openai": Prices(cache_write=1.0, output=8.0),
        # No prompt cache: a self-hosted endpoint without prefix reuse.
        "uncached": Prices(cached_read=1.0, cache_write=1.0, minimum_prefix_tokens=0),
        # Input only, as in published probes of context rules: a tenth for what is cached.
        "input_only": Prices(cache_write=1.0, minimum_prefix_tokens=0),
    }
)
"""Named prices; the comment beside each says where its numbers come from."""
