"""What a segment costs: its text, its images and its share of the message framing."""

from __future__ import annotations

from contextpilot.core.segment import Segment
from contextpilot.tokenizers.base import Tokenizer

IMAGE_TOKENS = 1000
"""Vision price of one image. Providers charge by pixels, never by the base64 that carries them."""

MESSAGE_TOKENS = 3
"""Framing of one message: role and delimiters."""


def segment_tokens(tokenizer: Tokenizer, segment: Segment) -> int:
    """Returns the tokens of a segment in full form, its framing included."""
    return tokenizer.count(segment.text) + segment.image_count * IMAGE_TOKENS + MESSAGE_TOKENS
