"""The plain loop of an agent with a managed context; runs as it is, without a network.

    python examples/agent_loop.py

A stand-in plays the model, so that the loop can be watched: it reads eight files, then asks for the
first one again, which has been folded meanwhile, by the reload tool. For a real model pass a client
of the `openai` package to `run`: nothing in the loop changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import RELOAD_TOOL, ContextManager, Request, Session

Message = dict[str, Any]


def run(
    session: Session,
    client: Any,
    messages: list[Message],
    tools: Sequence[Mapping[str, Any]],
    functions: Mapping[str, Callable[..., str]],
    model: str = "gpt-5.4-mini",
) -> str:
    """Returns what the model says in the end.

    Args:
        session: of this conversation.
        client: as `openai.OpenAI()`.
        messages: the history; it grows, and is never edited.
        tools: their schemas.
        functions: what they do, by name.
        model: its name.
    """

    def ask(request: Request) -> Any:
        return client.chat.completions.create(
            model=model, messages=request.messages, tools=request.tools
        )

    while True:
        request = session.prepare(messages, tools)
        try:
            reply = ask(request)
        except Exception as error:  # raises it again unless the request was too long
            reply = ask(session.retry_after(error))
        session.record_usage(reply.usage)
        turn = reply.choices[0].message.model_dump(exclude_none=True)
        messages.append(turn)
        if not turn.get("tool_calls"):
            return str(turn.get("content", ""))
        for call in turn["tool_calls"]:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            if name == RELOAD_TOOL:
                messages.append(session.dispatch_reload(call))
                continue
            result = functions[name](**json.loads(arguments))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


READ_FILE: Message = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Returns a file's text.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}


def read_file(path: str) -> str:
    """Returns the text of a file of two hundred lines that is made up."""
    return "\n".join(f"{path}:{line} value = {line * 37 % 101}" for line in range(200))


class StandIn:
    """Looks like a client of the `openai` package, and plays a scripted model.

    Attributes:
        sizes: how many messages and characters each request had.
    """

    def __init__(self, files: int) -> None:
        self.sizes: list[tuple[int, int]] = []
        self._files = files
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(
        self, model: str, messages: Sequence[Message], tools: Sequence[Message] | None
    ) -> Any:
        length = len(json.dumps([messages, tools]))
        self.sizes.append((len(messages), length))
        step = len(self.sizes) - 1
        if step < self._files:
            message = _calling("read_file", {"path": f"part_{step}.py"}, step)
        elif step == self._files:
            folded = next(m for m in messages if str(m.get("content")).startswith("[folded"))
            message = _calling(RELOAD_TOOL, {"id": folded["content"].split()[1].rstrip(":")}, step)
        else:
            lines = messages[-1]["content"].splitlines()
            message = {"role": "assistant", "content": f"The first file ends with: {lines[-1]}"}
        return SimpleNamespace(
            model=model,
            choices=[SimpleNamespace(message=_Dumped(message))],
            usage={"prompt_tokens": length // 4, "completion_tokens": 20},
        )


class _Dumped:
    """A reply's message, as far as the loop looks at it."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def model_dump(self, *, exclude_none: bool) -> Message:
        return {k: v for k, v in self._message.items() if not (exclude_none and v is None)}


def _calling(name: str, arguments: Message, step: int) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{step}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def main() -> None:
    """Runs the loop with the stand-in, and prints what each request was."""
    manager = ContextManager("openai", budget=TokenBudget(12_000, 500, 0.8), reload_tool=True)
    session, client = manager.session("conversation-7"), StandIn(files=8)
    messages: list[Message] = [
        {"role": "system", "content": "You review code."},
        {"role": "user", "content": "Read all parts, then quote the last line of the first."},
    ]
    answer = run(session, client, messages, [READ_FILE], {"read_file": read_file})
    print("request  messages  characters")
    for number, (count, characters) in enumerate(client.sizes):
        print(f"{number:7}  {count:8}  {characters:10,}")
    print(f"the history itself: {len(messages)} messages, {len(json.dumps(messages)):,} characters")
    for record in session.log:
        print(f"request {record.request}: {record.op.name.lower()} {', '.join(record.targets)}")
    print(answer)


if __name__ == "__main__":
    main()
