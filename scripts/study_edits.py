"""Has each edit a use, and does folding everything as soon as it was read win?

    python scripts/study_edits.py        # about ten minutes on two cores

For each edit a scripted policy that uses it against the same policy with the edit masked, on
fresh validation tasks of one family (numbers from `FIRST_FRESH` on, on which nothing was chosen or
tested before); and on every source what folding everything as read loses against the oracle,
beside the best of all baselines.

Family and notice preset of each edit are fixed by `USES`, chosen on training tasks. `--train`
plays all families and presets with the scripted policy of one edit on those.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from contextpilot.core.edit import Op
from contextpilot.evaluation.config import GENERATED
from contextpilot.evaluation.edit_study import (
    FOLD_AS_READ,
    aligned,
    fold_lines,
    fresh_ids,
    use_lines,
    use_setting,
)
from contextpilot.evaluation.runner import PolicyFactory, Setting, evaluate
from contextpilot.policies.catalog import policy_spec
from contextpilot.policies.scripted import ScriptedSpec
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig


class Use(NamedTuple):
    """Where an edit is tested."""

    op: Op
    family: str
    horizon: int
    simulator: SimulatorConfig


WINDOW = SimulatorConfig(max_context_tokens=6000, budget_fraction=None)
FREE = SimulatorConfig(budget_fraction=None)
ROTTING = SimulatorConfig(budget_fraction=None, reader="rot", prices="uncached")
USES = (
    Use(Op.SUMMARIZE, "docqa", 30, WINDOW),
    Use(Op.FOLD, "tools", 30, WINDOW),
    Use(Op.EXPIRE, "logs", 30, WINDOW),
    Use(Op.DROP, "docqa", 100, FREE),
    Use(Op.RELOAD, "restock", 30, FREE),
    Use(Op.REORDER, "docqa", 20, ROTTING),
)
"""Chosen on training tasks.

For reload an earlier policy (outlines under pressure; reload as soon as announced) had been tried
on validation tasks 1 to 399 with tools and docqa under `good`, without a gain clear of 0, and with
restock under `poor`, with one. Three tries on the same tasks prove little, so policy, family and
preset were chosen anew on training tasks: of all families the gain is largest on restock, under
either preset, and `good`, where an agent without reloads misses less, is the harder one to gain on.
"""

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
    parser.add_argument(
        "--train", choices=[use.op.name.lower() for use in USES], metavar="EDIT",
        help="play the scripted policy of an edit on training tasks of all families; save nothing",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path("runs/study_edits"), help="folder")
    arguments = parser.parse_args()
    if arguments.train:
        op = Op[arguments.train.upper()]
        print(aligned(use_lines(evaluate(_tries(op, arguments.tasks), workers=arguments.workers))))
        return
    recorded = RECORDED if os.environ.get("CONTEXTPILOT_DATA") else ("sample",)
    studies = {
        "uses": [_use(use, arguments.tasks) for use in USES],
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


def _use(use: Use, tasks: int) -> Setting:
    """Returns the one comparison of an edit that counts."""
    spec = EngineSpec(use.family, use.simulator, use.horizon)
    ids = fresh_ids(spec.tasks().ids("validation")[0], tasks)
    return _compared(use.op, spec, "validation", ids)


def _tries(op: Op, tasks: int) -> list[Setting]:
    """Returns the comparison of an edit for every family and notice preset, on training tasks."""
    use = next(use for use in USES if use.op == op)
    specs = [
        EngineSpec(family, replace(use.simulator, notice=notice), use.horizon)
        for family in GENERATED
        for notice in ("good", "poor")
    ]
    return [_compared(op, spec, "train", spec.tasks().ids("train")[:tasks]) for spec in specs]


def _compared(op: Op, spec: EngineSpec, split: str, ids: Sequence[str]) -> Setting:
    return use_setting(
        f"{op.name.lower()}, {spec.source}", spec, split, ids,
        (ScriptedSpec(op, masked=False), ScriptedSpec(op, masked=True)),
        spec.simulator.notice, spec.horizon,
    )  # fmt: skip


def _game(source: str, notice: str, tasks: int) -> Setting:
    spec = EngineSpec(source, SimulatorConfig(budget_fraction=1.0, notice=notice))
    ids = tuple(spec.tasks().ids("validation"))
    policies: dict[str, PolicyFactory] = {
        "fold as read": FOLD_AS_READ,
        "raw": policy_spec("raw"),
        "oracle": make_oracle,
    }
    policies |= {name: policy_spec(name, source) for name in OTHERS}
    return Setting(
        source, "validation", notice, 0, spec, ids[:tasks], (0,), policies
    )  # fmt: skip


if __name__ == "__main__":
    main()
