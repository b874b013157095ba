"""Conversations of an agent in every format, and managers that meet them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import ContextManager
from contextpilot.messages.responses_items import is_turn_item
from contextpilot.policies.base import Policy
from contextpilot.policies.simple import RandomPolicy
from contextpilot.tokenizers import EstimateTokenizer

Messages = list[dict[str, Any]]

FORMATS = ("openai", "anthropic", "responses")
ROOMY = TokenBudget(10**6)
ALWAYS = TokenBudget(10**6, compression_threshold=1e-6)
"""Room for everything, and yet every request is over the threshold: policies are always asked."""


def text(rng: np.random.Generator, words: int) -> str:
    return "\n".join(f"w{n:06d}" for n in rng.integers(0, 10**6, words))


class Writer:
    """Writes one conversation in one format."""

    def __init__(self, format: str, reasoning: bool = False) -> None:
        self.format, self.reasoning = format, reasoning
        self.messages: Messages = []
        self._calls = 0

    def system(self, said: str) -> None:
        if self.format != "anthropic":
            self.messages.append({"role": "system", "content": said})

    def user(self, said: str) -> None:
        self.messages.append({"role": "user", "content": said})

    def say(self, said: str) -> None:
        self.messages.append({"role": "assistant", "content": said})

    def exchange(self, results: Sequence[str], argument: str = "a.py") -> None:
        """A turn with calls, and their results."""
        ids = [f"c{self._calls + n}" for n in range(len(results))]
        self._calls += len(results)
        calls = [(i, {"path": f"{i}.py", "text": argument}) for i in ids]
        getattr(self, f"_{self.format}")(calls, dict(zip(ids, results, strict=True)))

    def _openai(self, calls: list[tuple[str, Any]], results: dict[str, str]) -> None:
        made = [
            {
                "id": i,
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps(arguments)},
            }
            for i, arguments in calls
        ]
        turn: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": made}
        if self.reasoning:
            turn["reasoning_content"] = "because"
        self.messages.append(turn)
        self.messages += [
            {"role": "tool", "tool_call_id": i, "content": said} for i, said in results.items()
        ]

    def _anthropic(self, calls: list[tuple[str, Any]], results: dict[str, str]) -> None:
        thinking = {"type": "thinking", "thinking": "because", "signature": "c2ln"}
        blocks: list[dict[str, Any]] = [thinking] if self.reasoning else []
        blocks += [
            {"type": "tool_use", "id": i, "name": "read", "input": arguments}
            for i, arguments in calls
        ]
        answers = [
            {"type": "tool_result", "tool_use_id": i, "content": said}
            for i, said in results.items()
        ]
        self.messages.append({"role": "assistant", "content": blocks})
        self.messages.append({"role": "user", "content": answers})

    def _responses(self, calls: list[tuple[str, Any]], results: dict[str, str]) -> None:
        if self.reasoning:
            about = [{"type": "summary_text", "text": "because"}]
            self.messages.append({"type": "reasoning", "id": f"rs_{self._calls}", "summary": about})
        self.messages += [
            {"type": "function_call", "call_id": i, "name": "read", "arguments": json.dumps(a)}
            for i, a in calls
        ]
        self.messages += [
            {"type": "function_call_output", "call_id": i, "output": said}
            for i, said in results.items()
        ]


def history(format: str, seed: int, requests: int = 12, reasoning: bool = False) -> Messages:
    """A conversation of so many turns: users, single and parallel calls, plain answers."""
    rng = np.random.default_rng(seed)
    writer = Writer(format, reasoning)
    writer.system("You are an agent.")
    writer.user("Find the code. " + text(rng, 5))
    for _ in range(requests):
        if rng.random() < 0.2:
            writer.say("So far: " + text(rng, int(rng.integers(1, 200))))
            writer.user("Go on. " + text(rng, int(rng.integers(1, 100))))
        else:
            sizes = rng.integers(1, 400, int(rng.integers(1, 3)))
            argument = "a" * int(rng.integers(1, 400))
            writer.exchange([text(rng, int(size)) for size in sizes], argument)
    return writer.messages


def requests_of(messages: Messages) -> Iterator[Messages]:
    """Yields the lists that a host passes, request by request."""
    for end in range(1, len(messages) + 1):
        if end == len(messages) or (
            _is_turn(messages[end]) and not (end and _is_turn(messages[end - 1]))
        ):
            yield messages[:end]


def _is_turn(message: dict[str, Any]) -> bool:
    return message.get("role") == "assistant" or ("type" in message and is_turn_item(message))


def manager(
    format: str = "openai",
    policy: Policy | None = None,
    budget: TokenBudget = ROOMY,
    **settings: Any,
) -> ContextManager:
    settings.setdefault("secret", b"tests")  # the same boundaries in every session of a test
    return ContextManager(
        format, policy=policy, budget=budget, tokenizer=EstimateTokenizer(), **settings
    )


class Stubborn(RandomPolicy):
    """Random edits, few keeps: with `ALWAYS` every request has several."""

    name = "stubborn"

    def __init__(self, keep_share: float = 0.3) -> None:
        super().__init__(keep_share)
