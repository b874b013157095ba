"""One conversation, written in each of the three formats; everything in it is valid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, TypeAlias

Message: TypeAlias = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


class Call(NamedTuple):
    """A tool call, and what the tool answers; `images` are part of the answer where it can be."""

    id: str
    arguments: dict[str, Any]
    answer: str
    images: int = 0
    custom: bool = False


class Writer(Protocol):
    """Appends to `messages` what the parts of a conversation are in one format."""

    messages: list[Message]

    def system(self, said: str) -> None:
        """A system prompt, in the formats that have it among the messages."""
        ...

    def user(self, texts: Sequence[str], images: int = 0, files: Sequence[str] = ()) -> None:
        """A user's message: one text may stay a string, more are parts."""
        ...

    def turn(self, said: str, calls: Sequence[Call], reasoned: str, served: bool) -> None:
        """An assistant turn; `served`: a tool of the provider's own ran in it."""
        ...

    def results(self, calls: Sequence[Call]) -> None:
        """What the tools answered."""
        ...


class OpenAI:
    """Chat completions."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.messages = rng, list[Message]()

    def system(self, said: str) -> None:
        """A system or a developer message."""
        self.messages.append({"role": self.rng.choice(["system", "developer"]), "content": said})

    def user(self, texts: Sequence[str], images: int = 0, files: Sequence[str] = ()) -> None:
        """Text, or parts."""
        parts: list[Message] = [{"type": "text", "text": text} for text in texts]
        url = {"url": f"data:image/png;base64,{PIXEL}"}
        parts += [{"type": "image_url", "image_url": url} for _ in range(images)]
        for name in files:
            file = {"filename": name, "file_data": PIXEL * 3}
            parts.append({"type": "file", "file": file})
        plain = len(parts) == 1 and len(texts) == 1
        self.messages.append({"role": "user", "content": texts[0] if plain else parts})

    def turn(self, said: str, calls: Sequence[Call], reasoned: str, served: bool) -> None:
        """Content may be a string, parts, null, empty or not there at all."""
        message: Message = {"role": "assistant"}
        if said:
            parts = [{"type": "text", "text": said}]
            message["content"] = parts if self.rng.random() < 0.2 else said
        elif self.rng.random() < 0.8:
            message["content"] = self.rng.choice([None, ""])
        if reasoned:
            message[self.rng.choice(["reasoning_content", "reasoning"])] = reasoned
        if served:
            message["annotations"] = [{"type": "url_citation", "url_citation": {"url": "u"}}]
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        self.messages.append(message)

    def _call(self, call: Call) -> Message:
        if call.custom:
            body = {"name": "patch", "input": call.arguments["text"]}
            return {"type": "custom", "id": call.id, "custom": body}
        arguments = json.dumps(call.arguments, ensure_ascii=self.rng.random() < 0.5)
        function = {"name": "read", "arguments": arguments}
        return {"id": call.id, "type": "function", "function": function}

    def results(self, calls: Sequence[Call]) -> None:
        """A tool message each."""
        for call in calls:
            content: Any = call.answer
            if self.rng.random() < 0.15:
                content = [{"type": "text", "text": text} for text in (call.answer, "end")]
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


class Anthropic:
    """The messages endpoint."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.messages = rng, list[Message]()
        self._served = 0

    def system(self, said: str) -> None:
        """Goes beside the messages."""

    def user(self, texts: Sequence[str], images: int = 0, files: Sequence[str] = ()) -> None:
        """Text, or blocks; behind results the blocks join them, as hosts write it."""
        if len(texts) == 1 and not images and not files and self.rng.random() < 0.6:
            self.messages.append({"role": "user", "content": texts[0]})
            return
        blocks: list[Message] = [{"type": "text", "text": text} for text in texts]
        if self.rng.random() < 0.2:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        blocks += [self._image() for _ in range(images)]
        for name in files:
            data = f"{name}\n" + "line of a document 文件\n" * self.rng.randint(3, 60)
            source = {"type": "text", "media_type": "text/plain", "data": data}
            found = {"type": "search_result", "source": "https://a.test", "title": name}
            found["content"] = [{"type": "text", "text": data}]
            document = {"type": "document", "title": name, "source": source}
            blocks.append(self.rng.choice([document, found]))
        self.messages.append({"role": "user", "content": blocks})

    def _image(self) -> Message:
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
        }

    def turn(self, said: str, calls: Sequence[Call], reasoned: str, served: bool) -> None:
        """Signed thinking, text, a server-side pair, calls."""
        blocks: list[Message] = []
        if reasoned:
            signed = {"type": "thinking", "thinking": reasoned, "signature": "c2lnbmF0dXJl"}
            redacted = {"type": "redacted_thinking", "data": PIXEL}
            blocks += self.rng.choice([[signed], [redacted], [signed, redacted]])
        if said:
            blocks.append({"type": "text", "text": said})
        if served:
            self._served += 1
            key = f"srv_{self._served}"
            hit = {
                "type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "c2Vl",
            }  # fmt: skip
            asked = {"type": "server_tool_use", "id": key, "name": "web_search"}
            blocks.append({**asked, "input": {"query": "q"}})
            answer = {"type": "web_search_tool_result", "tool_use_id": key, "content": [hit]}
            blocks.append(answer)
        blocks += [
            {"type": "tool_use", "id": call.id, "name": "read", "input": call.arguments}
            for call in calls
        ]
        plain = len(blocks) == 1 and bool(said) and self.rng.random() < 0.5
        self.messages.append({"role": "assistant", "content": said if plain else blocks})

    def results(self, calls: Sequence[Call]) -> None:
        """One user message; a result may be text, blocks with images, empty, null or not there."""
        blocks: list[Message] = []
        for call in calls:
            block: Message = {"type": "tool_result", "tool_use_id": call.id}
            inner = [{"type": "text", "text": call.answer}] if call.answer.strip() else []
            if call.images:
                block["content"] = [*inner, *(self._image() for _ in range(call.images))]
            elif call.answer:
                block["content"] = inner if self.rng.random() < 0.3 else call.answer
            elif self.rng.random() < 0.7:
                block["content"] = self.rng.choice(["", []])
            if self.rng.random() < 0.1:
                block["is_error"] = self.rng.random() < 0.5
            blocks.append(block)
        if self.rng.random() < 0.1:
            blocks.append({"type": "text", "text": "<reminder>Keep to the plan.</reminder>"})
        self.messages.append({"role": "user", "content": blocks})


class Responses:
    """Items of the responses endpoint."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.messages = rng, list[Message]()

    def system(self, said: str) -> None:
        """A system or a developer message."""
        self.messages.append({"role": self.rng.choice(["system", "developer"]), "content": said})

    def user(self, texts: Sequence[str], images: int = 0, files: Sequence[str] = ()) -> None:
        """Text, or parts."""
        parts: list[Message] = [{"type": "input_text", "text": text} for text in texts]
        parts += [self._image() for _ in range(images)]
        parts += [{"type": "input_file", "filename": name, "file_id": "f_1"} for name in files]
        plain = len(parts) == 1 and len(texts) == 1
        message: Message = {"type": "message"} if self.rng.random() < 0.5 else {}
        self.messages.append({**message, "role": "user", "content": texts[0] if plain else parts})

    def _image(self) -> Message:
        return {
            "type": "input_image",
            "detail": "auto",
            "image_url": f"data:image/png;base64,{PIXEL}",
        }

    def _id(self) -> str:
        return f"it_{len(self.messages)}"

    def turn(self, said: str, calls: Sequence[Call], reasoned: str, served: bool) -> None:
        """Reasoning and the items that it led to; a search or a shell of the provider's between."""
        if reasoned:
            summary = [{"type": "summary_text", "text": reasoned}]
            item = {"type": "reasoning", "id": self._id(), "summary": summary}
            sealed = {"encrypted_content": PIXEL} if self.rng.random() < 0.5 else {}
            self.messages.append({**item, **sealed})
        if served:
            action = {"type": "search", "query": "q"}
            item = {"type": "web_search_call", "id": self._id(), "status": "completed"}
            self.messages.append({**item, "action": action})
        if said:
            parts = [{"type": "output_text", "text": said, "annotations": []}]
            whole = {"id": self._id(), "type": "message", "role": "assistant", "content": parts,
                     "status": "completed"}  # fmt: skip
            easy = {"role": "assistant", "content": said}
            self.messages.append(self.rng.choice([whole, easy]))
        for call in calls:
            item = {"type": "function_call", "id": self._id(), "call_id": call.id, "name": "read"}
            if call.custom:
                custom = {**item, "type": "custom_tool_call", "input": call.arguments["text"]}
                self.messages.append(custom)
                continue
            arguments = json.dumps(call.arguments, ensure_ascii=self.rng.random() < 0.5)
            self.messages.append({**item, "arguments": arguments})

    def results(self, calls: Sequence[Call]) -> None:
        """An output each: a string, or parts with images."""
        for call in calls:
            output: Any = call.answer
            if call.images:
                text = {"type": "input_text", "text": call.answer}
                output = [text, *(self._image() for _ in range(call.images))]
            kind = "custom_tool_call_output" if call.custom else "function_call_output"
            self.messages.append({"type": kind, "call_id": call.id, "output": output})


WRITERS = {"openai": OpenAI, "anthropic": Anthropic, "responses": Responses}
