"""Measures whether the synthetic tasks are honest, and prints one row per family and language.

    python scripts/check_generator.py --output generator.json

What the columns mean is said in `contextpilot.evaluation.generator_check`. Exits with 1 where a
limit is broken. About two minutes with the default 200 tasks a split, on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contextpilot.core.segment import Segment
from contextpilot.evaluation.generator_check import (
    Candidate,
    candidates,
    folded_success,
    separability,
    survival,
    truncated_success,
)
from contextpilot.summarizers.base import SourceText, SummaryRequest
from contextpilot.summarizers.structure import StructureSummarizer
from contextpilot.tokenizers.estimate import EstimateTokenizer
from contextpilot_envs.tasks.base import Task
from contextpilot_envs.tasks.synthetic import (
    FAMILIES,
    LANGUAGES,
    SyntheticConfig,
    SyntheticSource,
)

SHORT, LONG = 10, 100
TRUNCATION_BUDGET = 6000
SURVIVAL_LIMITS = (0.5, 0.9)
LEAST_TRUNCATION_LOSS = 0.15
MOST_FOLDED_SUCCESS = 0.2
HEADS = (
    "family", "passes", "blind", "blind metadata", "aware", "survival", "by kind", "folded",
)  # fmt: skip
_TOKENIZER = EstimateTokenizer()
_SUMMARIZER = StructureSummarizer(_TOKENIZER)


def summarize(segment: Segment, goal: str) -> str:
    """Returns a summary of a quarter of the segment's size."""
    source = SourceText(segment.id, segment.text, segment.kind.name.lower())
    size = _TOKENIZER.count(segment.text) // 4
    return _SUMMARIZER.summarize(SummaryRequest((source,), goal, size))


def load(config: SyntheticConfig, split: str, tasks: int) -> list[Task]:
    """Returns the first tasks of a split."""
    source = SyntheticSource(config, tasks)
    return [source.load(task_id) for task_id in source.ids(split)]


def as_candidates(tasks: Sequence[Task]) -> list[Candidate]:
    """Returns the candidates of all tasks."""
    return [row for task in tasks for row in candidates(task, _TOKENIZER.count)]


def check(family: str, language: str, horizon: int, tasks: int) -> dict[str, Any]:
    """Returns the measurements of one family in one language."""
    config = SyntheticConfig(family, language, horizon)
    train, test = (load(config, split, tasks) for split in ("train", "validation"))
    told_apart = separability(as_candidates(train), as_candidates(test))
    kept = survival(test, summarize)
    truncated = {
        length: truncated_success(
            load(SyntheticConfig(family, language, length), "validation", tasks),
            TRUNCATION_BUDGET,
            _TOKENIZER.count,
        )
        for length in (SHORT, LONG)
    }
    folded = folded_success(test)
    low, high = SURVIVAL_LIMITS
    loss = truncated[SHORT].mean - truncated[LONG].mean
    return {
        "family": family,
        "language": language,
        "horizon": horizon,
        "separability": asdict(told_apart),
        "survival": {kind: asdict(interval) for kind, interval in kept.items()},
        "folded": asdict(folded),
        "truncated": {f"h{length}": asdict(share) for length, share in truncated.items()},
        "passes": told_apart.passes
        and low <= kept["all"].mean <= high
        and folded.mean <= MOST_FOLDED_SUCCESS
        and loss >= LEAST_TRUNCATION_LOSS,
    }


def row(result: dict[str, Any]) -> str:
    """Returns the line of the table for one result."""
    told_apart, kept, cut = (result[key] for key in ("separability", "survival", "truncated"))
    kinds = [f"{kind}={value['mean']:.2f}" for kind, value in kept.items() if kind != "all"]
    cells = [
        f"{result['family']}/{result['language']}",
        "yes" if result["passes"] else "NO",
        *(shown(told_apart[name]) for name in ("blind", "blind_metadata", "aware")),
        shown(kept["all"]),
        " ".join(kinds),
        shown(result["folded"]),
        *(shown(cut[f"h{length}"]) for length in (SHORT, LONG)),
    ]
    return " | ".join(cells)


def shown(interval: dict[str, float]) -> str:
    """Returns a mean with its interval."""
    return f"{interval['mean']:.2f} [{interval['low']:.2f} {interval['high']:.2f}]"


def main() -> int:
    """Runs the check; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    parser.add_argument("--horizon", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=200, help="tasks of each split")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    cuts = [f"cut at {TRUNCATION_BUDGET}, h{length}" for length in (SHORT, LONG)]
    print(" | ".join([*HEADS, *cuts]))
    results = []
    for family in options.families:
        for language in options.languages:
            result = check(family, language, options.horizon, options.tasks)
            print(row(result), flush=True)
            results.append(result)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0 if all(result["passes"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
