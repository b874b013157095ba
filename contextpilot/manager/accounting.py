"""Where the tokens of an outgoing request go, by category."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from contextpilot.core.context import Context
from contextpilot.core.segment import Form, Kind, Role, Segment, Source
from contextpilot.errors import ConfigurationError, MessageFormatError
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.tokenizers.base import Tokenizer
from contextpilot.tokenizers.count import MESSAGE_TOKENS, segment_tokens


class Category(StrEnum):
    """What a segment counts as; each counts once, as the first of these that fits it.

    A reloaded original counts as what it shows, and so does a stub.
    """

    SYSTEM = "system"
    """System and developer messages."""
    PINNED = "pinned"
    """What no edit may touch."""
    SUMMARIES = "summaries"
    TOOL_RESULTS = "tool_results"
    RETRIEVED = "retrieved"
    """Documents."""
    HISTORY = "history"
    """Everything else: user texts, assistant turns, images, notes."""


@dataclass(frozen=True, slots=True)
class TokenAccount:
    """The tokens of one request by category; all are counts of the agent's tokens.

    Attributes:
        system: the system prompt, and system messages.
        tools: the tools' schemas.
        pinned, history, tool_results, summaries, retrieved: as `Category`.
        reserved_output: kept free for the answer.
    """

    system: int = 0
    tools: int = 0
    pinned: int = 0
    history: int = 0
    tool_results: int = 0
    summaries: int = 0
    retrieved: int = 0
    reserved_output: int = 0

    @property
    def input_tokens(self) -> int:
        """What is sent: everything but the reserve."""
        return self.total_tokens - self.reserved_output

    @property
    def total_tokens(self) -> int:
        """What the request takes of the window."""
        return sum(self.by_category().values())

    def by_category(self) -> dict[str, int]:
        """Returns category -> tokens, as plain JSON."""
        return asdict(self)


def category_of(segment: Segment) -> Category:
    """Returns what a segment counts as."""
    if segment.role == Role.SYSTEM:
        return Category.SYSTEM
    if segment.pinned:
        return Category.PINNED
    if segment.kind == Kind.SUMMARY:
        return Category.SUMMARIES
    if segment.kind == Kind.RESULT or segment.source == Source.TOOL:
        return Category.TOOL_RESULTS
    if segment.kind == Kind.DOCUMENT or segment.source == Source.RETRIEVED:
        return Category.RETRIEVED
    return Category.HISTORY


def shown_tokens(tokenizer: Tokenizer, shown: RenderedSegment) -> int:
    """Returns the tokens of a segment in the form that it is shown in, its framing included.

    Raises:
        MessageFormatError: when an edited form comes without its text.
    """
    if shown.form == Form.FULL:
        return segment_tokens(tokenizer, shown.segment)
    return tokenizer.count(shown.shown_text) + MESSAGE_TOKENS


def account(
    segments: Sequence[RenderedSegment],
    tokenizer: Tokenizer,
    *,
    system: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
    reserved_output_tokens: int = 0,
    token_scale: float = 1.0,
) -> TokenAccount:
    """Returns the account of one request.

    Args:
        segments: what the request shows, in any order.
        tokenizer: what counts.
        system: the text of a system prompt that is not among the messages.
        tools: their schemas as they are sent, counted one by one as compact JSON.
        reserved_output_tokens: the budget's reserve, in the agent's tokens.
        token_scale: the agent's tokens per counted token; each entry is scaled and rounded by
            itself, as in a context, so that the account adds up to the context's total.

    Raises:
        ConfigurationError: for a negative reserve or a scale that is not positive.
        MessageFormatError: when a tool is not plain JSON, or an edited form comes without its text.
    """
    if reserved_output_tokens < 0 or not token_scale > 0:
        raise ConfigurationError(
            "`reserved_output_tokens` must be at least 0 and `token_scale` positive. "
            f"Received {reserved_output_tokens} and {token_scale}."
        )
    tokens = {category.value: 0 for category in Category}
    for shown in segments:
        count = round(shown_tokens(tokenizer, shown) * token_scale)
        tokens[category_of(shown.segment).value] += count
    if system:
        tokens["system"] += round((tokenizer.count(system) + MESSAGE_TOKENS) * token_scale)
    schemas = sum(
        round(tokenizer.count(_schema_text(tool, i)) * token_scale) for i, tool in enumerate(tools)
    )
    return TokenAccount(**tokens, tools=schemas, reserved_output=reserved_output_tokens)


def account_of(context: Context, prefix: TokenAccount) -> TokenAccount:
    """Returns the account of the request that a context is: its own counts, so that they add up.

    Args:
        context: what is visible in it is sent.
        prefix: system prompt, tools and reserve, as `account` returns them of no segments.
    """
    tokens = {category.value: 0 for category in Category}
    for index in context.visible():
        category = category_of(context.entries[index].segment)
        tokens[category.value] += context.columns.size[index]
    tokens["system"] += prefix.system
    return TokenAccount(**tokens, tools=prefix.tools, reserved_output=prefix.reserved_output)


def _schema_text(tool: Mapping[str, Any], index: int) -> str:
    """Returns a tool's schema as compact JSON."""
    try:
        return json.dumps(tool, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageFormatError(
            f"tools[{index}] is not plain JSON ({error}). Received {reprlib.repr(tool)}. "
            "Pass the schemas as dicts, as they are sent."
        ) from error
