"""Trains a context policy, and compares it with the baselines on tasks that it has not seen.

    python scripts/train.py experiment=quickstart
    python scripts/train.py -m seed=0,1,2 algorithm=grpo credit=hindsight
    python scripts/train.py resume=runs/train/RUN

Settings: the folders of configs/, contextpilot/training/config.py. A run is a folder, which is
explained in contextpilot/training/run_folder.py; docs/metrics.md explains what it logs.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from configuration import run as run_script
from gymnasium.vector import AutoresetMode
from hydra.core.hydra_config import HydraConfig
from tqdm import tqdm

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.report import write_report
from contextpilot.evaluation.runner import PolicyFactory, Setting, evaluate
from contextpilot.evaluation.slices import ReportPlan
from contextpilot.evaluation.terminal import print_report
from contextpilot.policies.catalog import best_rule, policy_spec
from contextpilot.policies.learned import PointerSpec
from contextpilot.training.config import ALGORITHMS, TrainConfig
from contextpilot.training.run_folder import Run
from contextpilot.training.train import MakeEnvironment, train
from contextpilot_envs.context_edit_vector import ContextEditVectorEnv
from contextpilot_envs.evaluation_engine import EngineSpec, make_oracle
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.augmented import AugmentedSource
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.catalog import MixedSource, load_source
from contextpilot_envs.tasks.replay_source import NAMES as REPLAYS

EVALUATION = "evaluation"
SHOWN_SKIPPED = 5


def main(config: TrainConfig) -> None:
    """Begins a run or goes on with one, trains, compares; Ctrl-C says how to go on."""
    if config.resume is None:
        make_env = environments(config)  # a wrong name fails here, before there is a folder
        run = Run.create(config)
        print(f"run: {run.folder}")
    else:
        refuse_other_settings()
        run = Run.resume(config.resume)
        make_env = environments(run.config)
        state = "is finished" if run.finished else f"goes on with iteration {run.iteration}"
        print(f"run: {run.folder} {state}")
    try:
        if not run.finished:
            train(run, make_env)
        if compared(run):
            print(f"comparison: {run.folder / EVALUATION / 'report.md'}")
        elif run.config.comparison.tasks:
            compare(run)
    except KeyboardInterrupt:
        command = f"python scripts/train.py resume={shlex.quote(str(run.folder))}"
        print(f"\nstopped. From its last checkpoint it goes on with: {command}", file=sys.stderr)
        sys.exit(130)
    finally:
        run.close()
    print(f"policy: {trained(run)}")


def environments(config: TrainConfig) -> MakeEnvironment:
    """Returns what makes the run's environments.

    Raises:
        ConfigurationError, TranscriptError: for sources and presets that do not exist.
    """
    for notice in (config.env.notice, *config.comparison.notice):
        simulator(config, notice)
    source = MixedSource([task_source(config, name) for name in config.task.sources])
    source.ids("train")  # reads recorded runs, and says so where there are none

    def make(num_envs: int, split: str) -> ContextEditVectorEnv:
        return ContextEditVectorEnv(
            num_envs, source, split, simulator(config, config.env.notice),
            context_slots=config.env.context_slots, archive_slots=config.env.archive_slots,
            reward=config.reward, autoreset_mode=AutoresetMode.DISABLED,
            hindsight=config.credit.name == "hindsight",
        )  # fmt: skip

    return make


def task_source(config: TrainConfig, name: str) -> TaskSource:
    """Returns a source to train on; recorded runs in variants, where that is asked for."""
    source = load_source(
        name, horizon=config.task.horizon, language=config.task.language, data=data_folder(config)
    )
    if name not in REPLAYS:
        return source
    for item in source.skipped[:SHOWN_SKIPPED]:  # type: ignore[attr-defined]
        where = f"{item.file}, line {item.line}" if item.line else str(item.file)
        print(f"{name}: skipped {where}: {item.reason} {item.remedy}", file=sys.stderr)
    return AugmentedSource(source) if config.task.augment else source


def simulator(config: TrainConfig, notice: str, *, limited: bool = True) -> SimulatorConfig:
    """Returns the simulator that training and comparison share; raw is compared without a window.

    Raises:
        ConfigurationError: for unknown presets.
    """
    env = config.env
    return SimulatorConfig(
        max_context_tokens=env.max_context_tokens if limited else None,
        budget_fraction=env.budget_fraction if limited else None, max_edits=env.max_edits,
        notice=notice, reader=config.reader.name, prices=env.prices,
        reload_output_tokens=env.reload_output_tokens, bill_prefix=env.bill_prefix,
    )  # fmt: skip


def compare(run: Run) -> None:
    """Plays baselines, warm start and trained policy on the validation split, and reports."""
    config = run.config
    settings = [
        setting
        for source in config.task.sources
        for notice in config.comparison.notice
        for setting in comparison_settings(run, source, notice)
    ]
    total = sum(setting.episodes for setting in settings)
    hidden = None if config.logger.progress else True
    with tqdm(total=total, unit="episode", desc="comparing", disable=hidden) as bar:
        rows = evaluate(settings, workers=config.comparison.workers, on_rows=bar.update)
    names = tuple(dict.fromkeys(name for setting in settings for name in setting.policies))
    plan = ReportPlan(names, names[0])
    paths = write_report(
        run.folder / EVALUATION, rows, plan, command=sys.argv, config=asdict(config)
    )
    print_report(rows, plan, paths)


def comparison_settings(run: Run, source: str, notice: str) -> Iterator[Setting]:
    """Yields what is played of one source: raw without a window, and all others."""
    config = run.config
    policies: dict[str, PolicyFactory] = {
        name: baseline(name, source, config.tuned) for name in config.comparison.policies
    }
    if run.checkpoint("warm").exists():
        policies["warm start"] = PointerSpec(run.checkpoint("warm"), "warm start", guarded=True)
    policies["trained"] = PointerSpec(trained(run), "trained", guarded=True)
    raw = {name: policies.pop(name) for name in ("raw",) if name in policies}
    for chosen, limited in ((raw, False), (policies, True)):
        spec = EngineSpec(
            source, simulator(config, notice, limited=limited), config.task.horizon,
            config.task.language, data_folder(config), context_slots=config.env.context_slots,
            archive_slots=config.env.archive_slots,
        )  # fmt: skip
        ids = tuple(spec.tasks().ids("validation"))[: config.comparison.tasks]
        if chosen and ids:
            horizon = 0 if source in REPLAYS else config.task.horizon
            seeds = tuple(config.comparison.seeds)
            yield Setting(source, "validation", notice, horizon, spec, ids, seeds, chosen)


def baseline(name: str, source: str, tuned: str) -> PolicyFactory:
    """Returns a baseline by name, as it was tuned for the source."""
    if name == "oracle":
        return make_oracle
    return best_rule(source, tuned) if name == "best_rule" else policy_spec(name, source, tuned)


def trained(run: Run) -> Path:
    """Returns the checkpoint that the run stands for: its best, or its last where none is."""
    best = run.checkpoint("best")
    return best if best.exists() else run.checkpoint("last")


def compared(run: Run) -> bool:
    """True where the comparison is there already."""
    return (run.folder / EVALUATION / "evaluation.json").exists()


def data_folder(config: TrainConfig) -> Path | None:
    """Returns the folder of recorded runs, where one is named."""
    data = config.task.data or os.environ.get("CONTEXTPILOT_DATA")
    return Path(data) if data else None


def refuse_other_settings() -> None:
    """Raises ConfigurationError where `resume` is not the only setting."""
    given = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    others = [override for override in given if not override.startswith("resume=")]
    if others:
        raise ConfigurationError(
            "a resumed run keeps its own settings. "
            f"Received {' '.join(others)!r} beside `resume`. Leave it out, or begin a new run."
        )


if __name__ == "__main__":
    run_script("train", TrainConfig, main, {"algorithm": ALGORITHMS})
