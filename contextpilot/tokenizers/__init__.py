"""Counting tokens: exact with a vocabulary, or estimated from scripts without one."""

from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import IMAGE_TOKENS, MESSAGE_TOKENS, segment_tokens
from contextpilot.tokenizers.estimate import EstimateTokenizer
from contextpilot.tokenizers.huggingface import HuggingFaceTokenizer
from contextpilot.tokenizers.tiktoken import TiktokenTokenizer

__all__ = [
    "IMAGE_TOKENS",
    "MESSAGE_TOKENS",
    "EstimateTokenizer",
    "HuggingFaceTokenizer",
    "TiktokenTokenizer",
    "Tokenizer",
    "segment_tokens",
]
