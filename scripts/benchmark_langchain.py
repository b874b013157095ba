"""LangChain's context editing as `benchmark_manager` meets it; needs the extra `bench`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

Messages = Sequence[Mapping[str, Any]]


def converted(messages: Messages, with_blocks: bool) -> list[AnyMessage]:
    """Returns Anthropic messages as LangChain's: one for each turn, result and user message.

    Args:
        messages: the host's.
        with_blocks: whether a turn's content is blocks, as LangChain's own model class for
            Anthropic returns it, or text alone, as those of other providers do.
    """
    return [one for message in messages for one in _converted(message, with_blocks)]


def _converted(message: Mapping[str, Any], with_blocks: bool) -> Iterator[AnyMessage]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if message["role"] == "assistant":
        calls = [
            {"name": block["name"], "args": block["input"], "id": block["id"]}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        content = [dict(block) for block in blocks]
        yield AIMessage(content if with_blocks else said, tool_calls=calls)
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield ToolMessage(_text_of(block.get("content")), tool_call_id=block["tool_use_id"])
    if said:
        yield HumanMessage(said)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())


def count(messages: list[AnyMessage]) -> int:
    """Returns the tokens of messages as the middleware's default counter counts them."""
    return count_tokens_approximately(messages)


class Middleware:
    """`ContextEditingMiddleware` that clears tool results above a number of tokens.

    Attributes:
        edited: whether the latest request was edited.
    """

    def __init__(self, trigger: int) -> None:
        self.edited = False
        self._sent: list[AnyMessage] = []
        self._model = FakeListChatModel(responses=[""])
        self._middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=trigger)])

    def request(self, messages: list[AnyMessage]) -> Callable[[], object]:
        """Returns the call that edits a request and hands it to a model that does nothing."""
        request = ModelRequest(model=self._model, messages=messages)
        response = ModelResponse(result=[])

        def handler(edited: ModelRequest) -> ModelResponse:
            self._sent = edited.messages
            return response

        return lambda: self._middleware.wrap_model_call(request, handler)

    @property
    def cleared(self) -> int:
        """How many results the latest request shows as cleared."""
        return sum(
            "context_editing" in message.response_metadata
            for message in self._sent
            if isinstance(message, ToolMessage)
        )
