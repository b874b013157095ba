"""Has each edit a use, and does folding everything as soon as it was read win?

    python scripts/study_edits.py        # a few minutes on two cores

For each edit a scripted policy that uses it against the same policy with the edit masked, on
validation tasks of one family; and on every source what folding everything as read loses against
the oracle, beside the best of all baselines.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from tqdm import tqdm

from contextpilot.core.edit import Op
from contextpilot.evaluation.config import GENERATED
from contextpilot.evaluation.edit_study import (
    FOLD_AS_READ,
    aligned,
    fold_lines,
    use_lines,
    use_setting,
)
from contextpilot.evaluation.runner import Setting, evaluate
from contextpilot.policies.catalog import policy_spec
from contextpilot.policies.scripted import ScriptedSpec
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig

WINDOW = {"max_context_tokens": 6000, "budget_fraction": None}
FREE = {"budget_fraction": None}
ROTTING = {"budget_fraction": None, "reader": "rot", "prices": "uncached"}
USES = (
    (Op.SUMMARIZE, "docqa", 30, "good", WINDOW),
    (Op.FOLD, "tools", 30, "good", WINDOW),
    (Op.EXPIRE, "logs", 30, "good", WINDOW),
    (Op.DROP, "docqa", 100, "good", FREE),
    (Op.RELOAD, "restock", 30, "poor", WINDOW),
    (Op.REORDER, "docqa", 20, "good", ROTTING),
)
"""Edit, family, horizon, notice preset and simulator; chosen on training tasks."""

OTHERS = (
    "truncation", "fixed_summary", "rolling_summary", "clear_old_results", "threshold_fold",
    "goal_selection", "reuse_predictor", "random",
)  # fmt: skip
RECORDED = ("claude_code", "codex", "oh_my_pi", "tau_bench")


def main() -> None:
    """Plays both studies, prints their tables, saves them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=200, help="tasks per edit")
    parser.add_argument("--family-tasks", type=int, default=60, help="tasks per generated family")
    parser.add_argument(
        "--only", choices=("uses", "folding"), help="play one study; the other's table is kept"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path("runs/study_edits"), help="folder")
    arguments = parser.parse_args()
    recorded = RECORDED if os.environ.get("CONTEXTPILOT_DATA") else ("sample",)
    studies = {
        "uses": [_use(*use, arguments.tasks) for use in USES],
        "folding": [
            _game(source, notice, arguments.family_tasks)
            for source in (*GENERATED, *recorded)
            for notice in ("good", "poor")
        ],
    }
    chosen = {k: v for k, v in studies.items() if arguments.only in (None, k)}
    path = arguments.output / "study_edits.json"
    tables = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with tqdm(
        total=sum(s.episodes for study in chosen.values() for s in study),
        unit="episode", mininterval=1,
    ) as bar:  # fmt: skip
        for name, settings in chosen.items():
            rows = evaluate(settings, workers=arguments.workers, on_rows=bar.update)
            tables[name] = use_lines(rows) if name == "uses" else fold_lines(rows)
    arguments.output.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(aligned(tables[name]) for name in chosen) + f"\n\nsaved: {path}")


def _use(
    op: Op, family: str, horizon: int, notice: str, config: dict[str, object], tasks: int
) -> Setting:
    simulator = SimulatorConfig(notice=notice, **config)  # type: ignore[arg-type]
    spec = EngineSpec(family, simulator, horizon)
    return use_setting(
        f"{op.name.lower()}, {family}", spec, spec.tasks().ids("validation")[:tasks],
        (ScriptedSpec(op, masked=False), ScriptedSpec(op, masked=True)), notice, horizon,
    )  # fmt: skip


def _game(source: str, notice: str, tasks: int) -> Setting:
    spec = EngineSpec(source, SimulatorConfig(budget_fraction=1.0, notice=notice))
    ids = tuple(spec.tasks().ids("validation"))
    policies = {"fold as read": FOLD_AS_READ, "raw": policy_spec("raw"), "oracle": make_oracle}
    policies |= {name: policy_spec(name, source) for name in OTHERS}
    return Setting(
        source, "validation", notice, 0, spec, ids[:tasks], (0,), policies
    )  # fmt: skip


if __name__ == "__main__":
    main()
