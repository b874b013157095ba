"""Does a context policy help? Plays policies on tasks and prints the comparison.

    python scripts/evaluate.py
    python scripts/evaluate.py sources=[transcripts] data=/path/to/your/transcripts

Settings: configs/evaluate.yaml and contextpilot/evaluation/config.py.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

from configuration import run
from tqdm import tqdm

from contextpilot.evaluation.config import GENERATED, EvaluateConfig
from contextpilot.evaluation.report import write_report
from contextpilot.evaluation.runner import PolicyFactory, Setting, evaluate
from contextpilot.evaluation.slices import ReportPlan
from contextpilot.evaluation.terminal import print_report
from contextpilot.policies.catalog import best_rule, policy_spec
from contextpilot.readers.base import Reader
from contextpilot.readers.chat import ChatReader
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.catalog import REPLAYS, load_source
from contextpilot_envs.tasks.replay_source import ReplaySource

SHOWN_SKIPPED = 5
RECORDED = ("claude_code", "codex", "oh_my_pi", "tau_bench")


def main(config: EvaluateConfig) -> None:
    """Composes the settings, plays them, writes and prints the report."""
    data = config.data or os.environ.get("CONTEXTPILOT_DATA")
    sources = config.sources or [*GENERATED, *(RECORDED if data else ("sample",))]
    for source in sources:
        _report_skipped(source, Path(data) if data else None)
    settings = [
        setting
        for source in sources
        for notice in config.notice
        for horizon in (config.horizons if source in GENERATED else (0,))
        for setting in _settings(config, source, notice, horizon, Path(data) if data else None)
    ]
    _report_fits(settings, Path(data) if data else None)
    total = sum(setting.episodes for setting in settings)
    with tqdm(total=total, unit="episode", desc="playing", smoothing=0.05) as bar:
        rows = evaluate(settings, workers=config.workers, on_rows=bar.update)
    plan = ReportPlan(tuple(config.policies), config.reference)
    paths = write_report(
        Path(config.output), rows, plan, command=sys.argv, config=asdict(config)
    )  # fmt: skip
    print_report(rows, plan, paths)


def _settings(
    config: EvaluateConfig, source: str, notice: str, horizon: int, data: Path | None
) -> list[Setting]:
    """Returns a source's setting; raw is played without a window, as a row of its own."""
    generated, reader = source in GENERATED, _reader(config)
    spec, free = (
        EngineSpec(
            source,
            SimulatorConfig(
                max_context_tokens=config.window_tokens if generated and limited else None,
                budget_fraction=config.budget_fraction if limited else None,
                notice=notice, prices=config.prices,
                reader="model" if reader else config.reader, model=reader,
                reload_output_tokens=config.reload_output_tokens, bill_prefix=config.bill_prefix,
            ),
            horizon or 20, config.language, data, config.quotes,
        )
        for limited in (True, False)
    )  # fmt: skip
    own = source == "transcripts"  # nothing was tuned on them: all of them may judge
    splits = ("train", "validation") if own else (config.split,)
    tasks = spec.tasks()
    ids = tuple(task_id for split in splits for task_id in tasks.ids(split))
    ids = ids[: config.tasks if generated else None if own else config.replays]
    policies = {name: _policy(name, source) for name in config.policies}
    raw = {name: policies.pop(name) for name in ("raw",) if name in policies}
    return [
        Setting(
            source, "all" if own else config.split, notice, horizon, engine, ids,
            tuple(config.seeds), chosen,
        )
        for engine, chosen in ((free, raw), (spec, policies))
        if chosen and ids
    ]  # fmt: skip


def _reader(config: EvaluateConfig) -> Reader | None:
    """Returns the model that reads; None: the reader is simulated."""
    if config.reader == "chat":
        return ChatReader(config.reader_model, config.reader_url)
    if config.reader == "hf":
        from contextpilot.readers.local import LocalReader

        return LocalReader(config.reader_model)
    return None


def _report_skipped(source: str, data: Path | None) -> None:
    """Says what of a folder could not be read; the rest is played all the same."""
    if source not in REPLAYS:
        return
    skipped = ReplaySource(source, data).skipped
    for item in skipped[:SHOWN_SKIPPED]:
        where = f"{item.file}, line {item.line}" if item.line else str(item.file)
        print(f"{source}: skipped {where}: {item.reason} {item.remedy}", file=sys.stderr)
    if len(skipped) > SHOWN_SKIPPED:
        print(f"{source}: {len(skipped)} skipped in all", file=sys.stderr)


def _report_fits(settings: list[Setting], data: Path | None) -> None:
    """Says how well the bill's token counts fit what the providers reported of recorded runs."""
    for source in dict.fromkeys(s.source for s in settings if s.source in REPLAYS):
        setting = next(s for s in settings if s.source == source)
        load = load_source(source, data=data).load
        tasks = [load(task_id) for task_id in setting.task_ids]
        for task in (t for t in tasks if "usage_error" in t.metadata):
            print(
                f"{source}: {task.id}: input tokens fitted to recorded usage, median error "
                f"{float(task.metadata['usage_error']):.1%}, 9 of 10 requests within "
                f"{float(task.metadata['usage_error_p90']):.1%} (prefix {task.prefix_tokens}, "
                f"{task.token_scale:.2f} tokens per estimated one)",
                file=sys.stderr,
            )


def _policy(name: str, source: str) -> PolicyFactory:
    if name == "oracle":
        return make_oracle
    return best_rule(source) if name == "best_rule" else policy_spec(name, source)


if __name__ == "__main__":
    run("evaluate", EvaluateConfig, main)
