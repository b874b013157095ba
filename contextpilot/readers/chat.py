"""A model behind an OpenAI-compatible endpoint; needs the extra `readers`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from contextpilot.errors import ReaderError
from contextpilot.readers.base import Message

KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True)
class ChatReader:
    """Asks an endpoint; survives pickling, since each process opens its own client.

    Attributes:
        model: the name that requests are made with.
        url: of the endpoint, up to and with "/v1"; "": the provider's own. The key is read from
            the environment variable OPENAI_API_KEY and kept nowhere else.
        max_tokens: longest answer.
        timeout_seconds: of one attempt.
        retries: further attempts after errors that may pass.
        name: what tables call it.
    """

    model: str
    url: str = ""
    max_tokens: int = 200
    timeout_seconds: float = 60.0
    retries: int = 2
    name: str = "chat"

    def answer(self, messages: Sequence[Message]) -> str:
        """Returns the model's answer at temperature 0.

        Raises:
            ReaderError: when the package is missing, or the endpoint refuses or is not there.
        """
        client = _client(self.url, self.timeout_seconds, self.retries)
        try:
            reply = client.chat.completions.create(
                model=self.model,
                messages=[dict(message) for message in messages],
                max_tokens=self.max_tokens,
                temperature=0.0,
            )
        except Exception as error:  # every client error has the same remedy
            raise ReaderError(
                f"the endpoint {self.url or 'of the provider'} did not answer as {self.model!r}. "
                f"Received {type(error).__name__}: {str(error)[:200]}. Check address, model name "
                f"and {KEY_VARIABLE}."
            ) from error
        return str(reply.choices[0].message.content or "")


@lru_cache(maxsize=4)
def _client(url: str, timeout: float, retries: int) -> Any:
    try:
        import openai
    except ImportError as error:
        raise ReaderError(
            "reading through an endpoint needs the package `openai`, which is not installed. "
            "Install it: pip install 'contextpilot-rl[readers]'."
        ) from error
    return openai.OpenAI(
        base_url=url or None,
        api_key=os.environ.get(KEY_VARIABLE) or ("none" if url else None),
        timeout=timeout,
        max_retries=retries,
    )
