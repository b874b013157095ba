"""Random histories of agents: long ones, strange ones, all of them valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from soak_wire import WRITERS, Call, Message, Writer

FORMATS = tuple(WRITERS)

LINES = (
    "the pump at station four stopped at noon",
    "def solve(x: int) -> int:",
    '    return {"value": x, "unit": "mm"}',
    "2026-03-01T12:00:00Z ERROR worker 17: connection reset by peer",
    "| id | name | price |",
    "| 1042 | valve | 17.30 |",
    '{"id": 8841, "path": "src/app/main.py", "ok": true}',
    "水泵在中午停止了工作，请检查阀门。",
    "见附件第三条：合同编号 AB-2291。",
    "naïve café, Gent, Übergröße, Ελλάδα",
    "😀 and 👩‍👩‍👧, \u202e\u0007 and \u0000",
    "</context-data> is not the end",
    "[folded s3: read_file result, 99 tokens; reload s3]",
    "tab\tand \\ backslash and \"quotes\" and 'more'",
    "",
    "https://example.test/a/b?c=d&e=f#g",
    "ok",
)
"""What texts are made of; the strange ones are as frequent as the others."""

SURROGATES = (
    "half \ud83d of a pair",
    "\udc00\ud800 the wrong way round",
    "\ud83d\ude00 as two surrogates, 😀 as one",
)
"""What no request can be encoded with, though hosts have it; in one history of eight."""


@dataclass
class History:
    """One conversation.

    Attributes:
        format: of the messages.
        messages: as the host has them in the end.
        points: lengths of the lists that it passes, one before each turn, and the whole list.
    """

    format: str
    messages: list[Message]
    points: list[int] = field(default_factory=list)


def history(format: str, rng: Random, length: int) -> History:
    """Returns a conversation of at least `length` messages, and few more."""
    writer: Writer = WRITERS[format](rng)
    made = History(format, writer.messages)
    reasons = rng.random() < 0.5
    size = rng.choice([4, 12, 30])
    lines = LINES + SURROGATES if rng.random() < 1 / 8 else LINES
    if rng.random() < 0.8:
        writer.system("You are an agent. " + text(rng, lines, 3))
    files = [f"plan_{n}.pdf" for n in range(rng.choice([0, 1, 2]))]
    writer.user(["Find the code. " + text(rng, lines, 4)], files=files)
    calls = 0
    while len(made.messages) < length:
        made.points.append(len(made.messages))
        reasoned = "because " + text(rng, lines, 2) if reasons and rng.random() < 0.6 else ""
        served = rng.random() < 0.08
        if rng.random() < 0.25:
            writer.turn("So far: " + text(rng, lines, rng.randint(0, size)), (), reasoned, served)
            _user(writer, rng, lines, size)
            continue
        count = rng.choice([1, 1, 1, 2, 2, 3, 4])
        asked = [_call(rng, calls + n, lines, size) for n in range(count)]
        calls += count
        said = text(rng, lines, 1) if rng.random() < 0.3 else ""
        writer.turn(said if said.strip() else "", asked, reasoned, served)
        writer.results(rng.sample(asked, count))
        if format != "anthropic" and rng.random() < 0.05:  # there, it would be part of the results
            _user(writer, rng, lines, size)
    made.points.append(len(made.messages))
    return made


def text(rng: Random, lines: Sequence[str], count: int) -> str:
    """Returns `count` of the lines; one in five is like no other line of the conversation."""
    chosen = rng.choices(lines, k=count)
    return "\n".join(
        f"{line} {rng.randrange(10**6)}" if rng.random() < 0.2 else line for line in chosen
    )


def _user(writer: Writer, rng: Random, lines: Sequence[str], size: int) -> None:
    """A user's message: mostly a text, sometimes several parts, images and files."""
    texts = ["Go on. " + text(rng, lines, rng.randint(0, size))]
    if rng.random() < 0.2:
        texts.append("Also: " + text(rng, lines, 2))
    images = rng.choice([0, 0, 0, 0, 1, 2])
    files = [f"file_{rng.randrange(99)}.pdf" for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    writer.user(texts, images, files)


def _call(rng: Random, number: int, lines: Sequence[str], size: int) -> Call:
    """A call and its answer, which is often long, sometimes "ok", and sometimes nothing."""
    kind = rng.random()
    long = text(rng, lines, rng.randint(1, 3 * size))
    answer = "" if kind < 0.05 else "ok" if kind < 0.15 else long
    arguments = {"path": f"{number}.py", "text": text(rng, lines, rng.choice([1, 1, 1, size]))}
    return Call(
        f"call_{number}", arguments, answer,
        images=rng.random() < 0.05, custom=rng.random() < 0.08,
    )  # fmt: skip
