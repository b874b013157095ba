"""A causal language model on this machine, from a folder in Hugging Face's layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from contextpilot.errors import ReaderError
from contextpilot.readers.base import Message

_PLAIN_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""For tokenizers that come without a chat template."""


@dataclass(frozen=True)
class LocalReader:
    """Generates greedily; survives pickling, since each process loads the model once.

    Attributes:
        path: folder with config, weights and tokenizer. No code of it is run.
        max_tokens: longest answer.
        device: where it runs.
        name: what tables call it.
    """

    path: str
    max_tokens: int = 60
    device: str = "cpu"
    name: str = "hf"

    def answer(self, messages: Sequence[Message]) -> str:
        """Returns the model's likeliest answer, token by token.

        Raises:
            ReaderError: when the folder holds no such model, or the messages do not fit.
        """
        model, tokenizer = _loaded(self.path, self.device)
        prompt = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            chat_template=None if tokenizer.chat_template else _PLAIN_TEMPLATE,
            add_generation_prompt=True, return_tensors="pt", return_dict=True,
        )  # fmt: skip
        length = prompt["input_ids"].shape[1]
        limit = int(getattr(model.config, "max_position_embeddings", 1 << 30))
        if length + self.max_tokens > limit:
            raise ReaderError(
                f"the context is longer than the model reads. Received {length} tokens and "
                f"{self.max_tokens} for the answer; {self.path} takes {limit}. Lower the window."
            )
        with torch.inference_mode():
            out = model.generate(
                **prompt.to(self.device), max_new_tokens=self.max_tokens, do_sample=False,
                pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id or 0,
            )  # fmt: skip
        return str(tokenizer.decode(out[0, length:], skip_special_tokens=True)).strip()


@lru_cache(maxsize=2)
def _loaded(path: str, device: str) -> tuple[Any, Any]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model: Any = AutoModelForCausalLM.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise ReaderError(
            f"no causal language model could be loaded. Received {path!r}: "
            f"{type(error).__name__}: {str(error)[:200]}. Name a folder with config.json, "
            "safetensors and a tokenizer."
        ) from error
    return model.to(device).eval(), tokenizer
