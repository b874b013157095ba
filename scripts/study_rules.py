"""What clearing rules can do on recorded runs, and how far the oracle is below them.

    python scripts/study_rules.py                       # ten minutes on two cores
    python scripts/study_rules.py --quotes --prefix --reload-output 600

On the long coding sessions of CONTEXTPILOT_DATA: for each allowance of reloads per session, the
rule of a wide grid that costs least on the other sessions (leave one out), played on the one left
out; beside it the oracle and its lower bound. On tau-bench: keep-last-N on every request.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tqdm import tqdm

from contextpilot.evaluation.edit_study import aligned
from contextpilot.evaluation.rule_study import allowance_table, keep_last_table, study_settings
from contextpilot.evaluation.runner import evaluate
from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.rule_bounds import session_bounds
from contextpilot_envs.simulator.config import SimulatorConfig

LONG = 25
"""Requests from which on a recorded run is one of the long sessions."""


def main() -> None:
    """Plays the grid, prints the tables, saves every session's figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quotes", action="store_true", help="quoted values are demanded too")
    parser.add_argument("--prefix", action="store_true", help="bill system prompt and tools too")
    parser.add_argument("--reload-output", type=int, default=40, help="output tokens of a reload")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path("runs/study_rules"), help="folder")
    arguments = parser.parse_args()
    simulator = SimulatorConfig(
        budget_fraction=None, notice="perfect", prices="input_only", bill_output=False,
        bill_prefix=arguments.prefix, reload_output_tokens=arguments.reload_output,
        max_reloads=100,
    )  # fmt: skip
    claude = EngineSpec("claude_code", simulator, quotes=arguments.quotes)
    source = claude.tasks()
    tau = EngineSpec("tau_bench", simulator, quotes=arguments.quotes)
    sessions = [
        task_id
        for split in ("train", "validation")
        for task_id in source.ids(split)
        if source.load(task_id).requests >= LONG
    ]
    settings = study_settings(claude, sessions, tau, tau.tasks().ids("train"))
    with tqdm(total=sum(s.episodes for s in settings), unit="episode", mininterval=2) as bar:
        rows = evaluate(settings, workers=arguments.workers, on_rows=bar.update)
    bounds = session_bounds(claude, sessions)
    tables: dict[str, Any] = {
        "config": {k: str(v) for k, v in vars(arguments).items()},
        "claude_code": allowance_table(rows, bounds),
        "tau_bench": keep_last_table(rows),
        "bounds": bounds,
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "study_rules.json"
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    for name in ("claude_code", "tau_bench"):
        shown = ("line", "share_of_raw", "reloads", "in_sample", "where", "rule", "episodes")
        lines = [
            {k: line.get(k, "") for k in shown if k in tables[name][0]} for line in tables[name]
        ]
        print(f"\n{name}\n{aligned(lines)}")
    print(f"\nsaved: {path}")


if __name__ == "__main__":
    main()
