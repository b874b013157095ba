"""The manager's speed beside LangChain's context editing, as ratios taken in one run.

    pip install -e '.[bench]'
    CONTEXTPILOT_DATA=... python scripts/benchmark_manager.py [--rounds 9] [--lengths 50 400]

The history is the longest recorded Claude Code session, all of it, compactions included. At each
length it grows request by request as an agent's does, and both sides edit from the middle of it on:
`prepare` by the rule that a manager has by default, `ContextEditingMiddleware` with its defaults
but for the trigger. LangChain is given its own messages, twice: with content as text, and with
content blocks, as its model class for Anthropic returns it; converting them is not timed. Times are
process times, request by request in turn, means over requests; edits and first requests are in.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import ContextManager, Request
from contextpilot_envs.tasks.transcripts import read_transcripts

Messages = list[dict[str, Any]]

FOLDERS = ("claude_code", "agent_sessions/entireio_cli_claude_code")
OUTPUT = Path(__file__).parent.parent / "results" / "benchmark_manager.json"
LATEST = 20
"""So many requests are "at" a length: the last ones that a history makes until it has it."""

PACKAGES = ("langchain", "langchain-core", "contextpilot-rl", "numpy")

WARM_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison; `ratio` is the median over rounds of ours / theirs.

    Attributes:
        name: what is compared.
        messages: how long the history is.
        ours, theirs: milliseconds a request, medians over rounds.
        ratio, low, high: the median, and its 95% bootstrap interval over rounds.
        aim: what the ratio is to be at most; None: it is for information.
    """

    name: str
    messages: int
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    aim: float | None


def longest_session(data: Path) -> Messages:
    """Returns the messages of the longest Claude Code session, its episodes one after another."""
    sessions: dict[str, Messages] = defaultdict(list)
    for folder in FOLDERS:
        for transcript in read_transcripts(data / folder).transcripts:
            sessions[transcript.metadata["file"]] += transcript.messages
    return max(sessions.values(), key=len)


def requests_of(messages: Messages, length: int) -> list[Messages]:
    """Returns the histories of a session's requests, each the one before and what came since."""
    ends = [n for n in range(1, length + 1) if messages[n - 1]["role"] == "user"]
    return [messages[:end] for end in ends]


def reparsed(messages: Messages) -> Messages:
    """Returns the same content in objects of its own."""
    copies: Messages = json.loads(json.dumps(messages))
    return copies


def manager(trigger: int) -> ContextManager:
    """Returns a manager that edits above so many tokens, and has room for everything."""
    budget = TokenBudget(4 * trigger, compression_threshold=0.25)
    return ContextManager("anthropic", budget=budget)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Returns what a call returns, and its process time in milliseconds."""
    started = time.process_time_ns()
    result = call()
    return result, (time.process_time_ns() - started) / 1e6


class Opponent:
    """LangChain with content in one of its two shapes.

    Attributes:
        trigger: the tokens that it counts in the middle of the requests.
        middleware: of the present play.
    """

    def __init__(self, requests: Sequence[Messages], with_blocks: bool) -> None:
        import benchmark_langchain as langchain

        self._make = langchain.Middleware
        self._requests = [langchain.converted(each, with_blocks) for each in requests]
        self.trigger = langchain.count(self._requests[len(requests) // 2])
        self.middleware = self._make(self.trigger)

    def begin(self) -> None:
        """Begins a play."""
        self.middleware = self._make(self.trigger)

    def request(self, at: int) -> Callable[[], object]:
        """Returns the call that makes a request."""
        return self.middleware.request(self._requests[at])


class Growth:
    """Sessions that grow request by request, beside LangChain's.

    Attributes:
        trigger: the tokens that we count in the middle of the requests.
        opponents: by shape of content.
        edited: by side, per request whether what was sent was edited.
        decided: how many of our requests made new edits.
    """

    def __init__(self, requests: Sequence[Messages]) -> None:
        self._requests = requests
        self.opponents = {
            "text": Opponent(requests, with_blocks=False),
            "blocks": Opponent(requests, with_blocks=True),
        }
        middle = requests[len(requests) // 2]
        plain = ContextManager("anthropic", budget=TokenBudget()).session().prepare(middle)
        self.trigger = plain.report.after_tokens
        self.edited: dict[str, list[bool]] = {}
        self.decided = 0

    def play(self, turn: int) -> dict[str, list[float]]:
        """Returns by side the milliseconds of each request; who begins changes with the turn.

        Raises:
            AssertionError: when a host that parses its history anew gets another request.
        """
        kept, anew = (manager(self.trigger).session() for _ in range(2))
        times: dict[str, list[float]] = defaultdict(list)
        self.edited, self.decided = defaultdict(list), 0
        for opponent in self.opponents.values():
            opponent.begin()
        for at, messages in enumerate(self._requests):
            sides: dict[str, Callable[[], Any]] = {
                "kept": partial(kept.prepare, messages),
                "anew": partial(anew.prepare, reparsed(messages)),
                **{name: each.request(at) for name, each in self.opponents.items()},
            }
            sent: dict[str, Any] = {}
            for name in list(sides) if (turn + at) % 2 else list(reversed(sides)):
                sent[name], spent = timed(sides[name])
                times[name].append(spent)
            if sent["kept"].messages != sent["anew"].messages:
                raise AssertionError("fresh objects of the same content gave another request")
            self.edited["ours"].append(sent["kept"].status == "edited")
            for name, opponent in self.opponents.items():
                self.edited[name].append(opponent.middleware.cleared > 0)
            self.decided += bool(sent["kept"].report.edits)
        return times


def warm_and_cold(messages: Messages, trigger: int) -> dict[str, float]:
    """Returns milliseconds of a session's first request and of its repetitions.

    Raises:
        AssertionError: when they do not give the same.
    """
    session = manager(trigger).session()
    first, cold = timed(partial(session.prepare, messages))
    spent: dict[str, list[float]] = {"warm": [], "warm anew": []}
    for _ in range(WARM_REPEATS):
        for name, again in (("warm", messages), ("warm anew", reparsed(messages))):
            request, milliseconds = timed(partial(session.prepare, again))
            spent[name].append(milliseconds)
            if not _same(first, request):
                raise AssertionError(f"the {name} request is not the cold one")
    return {"cold": cold, **{name: float(np.median(each)) for name, each in spent.items()}}


def _same(first: Request, again: Request) -> bool:
    return (first.messages, first.status) == (again.messages, again.status)


def ratio(
    name: str, length: int, ours: Sequence[float], theirs: Sequence[float], aim: float | None
) -> Ratio:
    """Returns the ratio of two sides whose i-th values were taken in one round."""
    mine, other = np.array(ours), np.array(theirs)
    ratios = mine / other
    picks = np.random.default_rng(0).integers(0, len(ratios), (4000, len(ratios)))
    low, high = np.quantile(np.median(ratios[picks], axis=1), [0.025, 0.975])
    return Ratio(
        name, length, float(np.median(mine)), float(np.median(other)),
        float(np.median(ratios)), float(low), float(high), aim,
    )  # fmt: skip


def measure(messages: Messages, length: int, rounds: int) -> tuple[list[Ratio], dict[str, Any]]:
    """Returns the ratios at one length, and what share of requests was edited."""
    requests = requests_of(messages, length)
    growth = Growth(requests)
    growth.play(0)  # to warm up
    found: dict[str, list[float]] = defaultdict(list)
    for turn in tqdm(range(rounds), desc=f"{length} messages", unit="round", file=sys.stderr):
        for name, each in growth.play(turn).items():
            found[f"{name} all"].append(float(np.mean(each)))
            found[f"{name} latest"].append(float(np.mean(each[-LATEST:])))
        for name, one in warm_and_cold(requests[-1], growth.trigger).items():
            found[name].append(one)
    ratios = [
        ratio(
            f"{which} requests, {ours} / LangChain, {theirs}", length,
            found[f"{ours} {which}"], found[f"{theirs} {which}"], 1.0,
        )
        for which in ("all", "latest")
        for theirs in growth.opponents
        for ours in ("kept", "anew")
    ]  # fmt: skip
    for name in ("warm", "warm anew"):
        ratios.append(ratio(f"{name} / cold", length, found[name], found["cold"], 0.1))
    return ratios, shares(growth, length)


def shares(growth: Growth, length: int) -> dict[str, Any]:
    """Returns how much was edited, of all requests and of the latest."""
    edited = growth.edited
    return {
        "messages": length,
        "requests": len(edited["ours"]),
        "triggers": {
            "ours": growth.trigger,
            **{name: each.trigger for name, each in growth.opponents.items()},
        },
        "edited": {side: float(np.mean(each)) for side, each in edited.items()},
        "edited_latest": {side: float(np.mean(each[-LATEST:])) for side, each in edited.items()},
        "our_requests_with_new_edits": growth.decided,
    }


def table(ratios: Sequence[Ratio]) -> str:
    """Returns the ratios as lines of a table."""
    lines = [f"{'':42}{'messages':>9}{'ours ms':>9}{'theirs ms':>10}  ratio (95%)"]
    for each in ratios:
        aim = "" if each.aim is None else f"  aim {each.aim:g}"
        lines.append(
            f"{each.name:42}{each.messages:9d}{each.ours:9.3f}{each.theirs:10.3f}"
            f"  {each.ratio:.3f} [{each.low:.3f}, {each.high:.3f}]{aim}"
        )
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Returns what was measured.

    Raises:
        SystemExit: when LangChain is not installed, with what to do.
    """
    try:
        return {name: metadata.version(name) for name in PACKAGES}
    except metadata.PackageNotFoundError as missing:
        sys.exit(
            f"this benchmark needs a package that is not installed: {missing}. "
            "Install it with: pip install -e '.[bench]'"
        )


def main() -> None:
    """Takes all ratios, prints them, and saves them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often all is measured")
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 400], help="in messages")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the figures go")
    arguments = parser.parse_args()
    measured = versions()
    if "CONTEXTPILOT_DATA" not in os.environ:
        sys.exit("set CONTEXTPILOT_DATA to the folder with recorded sessions.")
    messages = longest_session(Path(os.environ["CONTEXTPILOT_DATA"]))
    found = [measure(messages, length, arguments.rounds) for length in arguments.lengths]
    ratios = [each for some, _ in found for each in some]
    print(table(ratios))
    for _, edited in found:
        print(json.dumps(edited))
    document = {
        "command": ["benchmark_manager.py", *sys.argv[1:]],
        "versions": measured,
        "session_messages": len(messages),
        "rounds": arguments.rounds,
        "ratios": [asdict(each) for each in ratios],
        "edited": [edited for _, edited in found],
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
