"""How far a real model agrees with the simulated readers, on the same contexts.

    python scripts/study_reader.py --model FOLDER           # a local causal language model
    python scripts/study_reader.py --model NAME --url http://127.0.0.1:8000/v1

Policies play generated tasks; at each demand the model is asked, and its answer is scored by the
demand's key points. Printed by what the agent sees in a fact's place: how often the model states
it, how often it says that it is missing, and what the simulation assumes of both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from contextpilot.errors import ReaderError
from contextpilot.evaluation.statistics import mean_interval
from contextpilot.policies.catalog import policy_spec
from contextpilot.readers.base import Reader
from contextpilot.readers.chat import ChatReader
from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.reader_study import Verdict, verdicts
from contextpilot_envs.simulator.config import NOTICE_PRESETS, SimulatorConfig

OUTPUT = Path(__file__).resolve().parent.parent / "results" / "study_reader.json"
SEEN = ("fact", "stub", "summary", "nothing", "stale")


def main(argv: list[str] | None = None) -> int:
    """Asks, prints the table, saves every verdict."""
    arguments = arguments_of(argv)
    reader = reader_of(arguments)
    policies = [("raw", None), ("clear_old_results", 0.5), ("fixed_summary", 0.5)]
    specs = {
        name: EngineSpec(
            arguments.source, SimulatorConfig(budget_fraction=budget), arguments.horizon,
            arguments.language,
        )
        for name, budget in policies
    }  # fmt: skip
    found: list[tuple[str, Verdict]] = []
    ids = next(iter(specs.values())).tasks().ids("validation")[: arguments.tasks]
    try:
        with tqdm(unit="question", mininterval=1) as bar:
            for task_id in ids:
                for name, spec in specs.items():
                    policy = policy_spec(name, arguments.source)()
                    found += [
                        (name, verdict)
                        for verdict in verdicts(spec, task_id, policy, reader, bar.update)
                    ]
    except ReaderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    made = report(found, arguments)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    for line in table(made):
        print(line)
    return 0


def reader_of(arguments: argparse.Namespace) -> Reader:
    """Returns the model that is asked."""
    if arguments.url:
        return ChatReader(arguments.model, arguments.url)
    from contextpilot.readers.local import LocalReader

    return LocalReader(arguments.model, arguments.max_tokens)


def report(found: Sequence[tuple[str, Verdict]], arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the figures and every verdict, as plain JSON."""
    groups = {}
    for seen in SEEN:
        of = [verdict for _, verdict in found if verdict.seen == seen]
        if of:
            groups[seen] = {
                "facts": len(of),
                "stated": _interval([v.read for v in of], of),
                "said_missing": _interval([v.missing for v in of], of),
                "rot_states": sum(1.0 - v.rot for v in of) / len(of) if seen == "fact" else 0.0,
            }
    everything = [verdict for _, verdict in found]
    agreement = [v.read == (v.seen == "fact") for v in everything]
    return {
        "model": Path(arguments.model).name,
        "source": arguments.source,
        "horizon": arguments.horizon,
        "agreement_with_ideal": _interval(agreement, everything),
        "by_what_is_seen": groups,
        "verdicts": [{"policy": name, **asdict(verdict)} for name, verdict in found],
    }


def _interval(values: Sequence[bool], of: Sequence[Verdict]) -> list[float]:
    """Returns a mean and its 95% interval, resampled by task."""
    found = mean_interval([float(value) for value in values], [v.task_id for v in of])
    return [round(found.mean, 3), round(found.low, 3), round(found.high, 3)]


def table(made: dict[str, Any]) -> list[str]:
    """Returns the figures as a table."""
    good = NOTICE_PRESETS["good"]
    lines = [
        "| in its place | facts | the model states it | ideal | rot | says that it is missing | "
        "assumed (good) |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for seen, row in made["by_what_is_seen"].items():
        is_fact = seen == "fact"
        assumed = "–" if is_fact else f"{good.of(seen):.2f}"
        lines.append(
            f"| {seen} | {row['facts']} | {_shown(row['stated'])} | {int(is_fact)} | "
            f"{row['rot_states']:.2f} | {_shown(row['said_missing'])} | {assumed} |"
        )
    lines.append(f"agreement with the ideal reader: {_shown(made['agreement_with_ideal'])}")
    return lines


def _shown(interval: Sequence[float]) -> str:
    return f"{interval[0]:.2f} [{interval[1]:.2f}, {interval[2]:.2f}]"


def arguments_of(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="folder of a local model, or a name")
    parser.add_argument("--url", default="", help="of an OpenAI-compatible endpoint, with /v1")
    parser.add_argument("--source", default="docqa", help="family of generated tasks")
    parser.add_argument("--language", default="en", choices=("en", "zh"))
    parser.add_argument("--horizon", type=int, default=8, help="requests of each task")
    parser.add_argument("--tasks", type=int, default=10, help="validation tasks")
    parser.add_argument("--max-tokens", type=int, default=60, help="longest answer")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the verdicts go")
    arguments = parser.parse_args(argv)
    for name in ("horizon", "tasks", "max_tokens"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1. Received {getattr(arguments, name)}.")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
