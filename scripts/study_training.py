"""What does training bring? Several seeds of an experiment against their warm start and the rules.

    python scripts/study_training.py                     # goes on where it was cut
    python scripts/study_training.py algorithms=[ppo] seeds=[0,1] tasks=10

Runs are trained into `output`/runs, one core each; then all policies are played on the same
validation tasks under the same noise. Rows are kept per source and notice preset, so that a study
that was cut plays only what is missing. The tables go to `output`/study.json and study.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from configuration import run as run_script
from tqdm import tqdm
from train import comparison_settings, trained

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.rule_front import front_specs
from contextpilot.evaluation.runner import PolicyFactory, Setting, evaluate
from contextpilot.evaluation.storage import Evaluation, load_evaluation, save_evaluation
from contextpilot.evaluation.training_report import Arm, study_document, study_markdown
from contextpilot.evaluation.tuning import GridPoint
from contextpilot.policies.catalog import PolicySpec
from contextpilot.policies.learned import PointerSpec
from contextpilot.training.run_folder import Run
from contextpilot.training.study_config import StudyConfig

SCRIPTS = Path(__file__).parent
TABLES, MARKDOWN = "study.json", "study.md"
OWN = ("warm start", "trained")
FRONT = "front: "
"""What the names of a front's rules begin with."""


@dataclass(frozen=True)
class Job:
    """One run to be trained."""

    algorithm: str
    seed: int
    folder: Path
    """Where its run folder is made; a folder of its own, so that it is found again."""

    @property
    def name(self) -> str:
        """What the rows call the trained policy."""
        return f"{self.algorithm} {self.seed}"


def main(config: StudyConfig) -> None:
    """Trains what is not trained yet, plays what is not played yet, and writes the tables."""
    require_recipe(config.recipe)
    output = Path(config.output)
    jobs = [
        Job(algorithm, seed, output / "runs" / f"{algorithm}-{seed}")
        for algorithm in config.algorithms
        for seed in config.seeds
    ]
    with ThreadPoolExecutor(config.workers) as pool:
        runs = list(tqdm(pool.map(lambda job: ran(job, config), jobs), "training", len(jobs)))
    by_job = dict(zip(jobs, runs, strict=True))
    rows: list[EvaluationRow] = []
    fronts: dict[str, list[str]] = {}
    for source in runs[0].config.task.sources:
        for notice in config.notice:
            file = output / "rows" / f"{source}_{notice}.json"
            raw, limited = settings_of(config, by_job, source, notice)
            fronts[source] = [n for n in limited.policies if n.startswith(FRONT)]
            found = played(file, [raw, limited], config.workers)
            if config.masked and notice == config.notice[0]:
                unused, used = without_an_edit(by_job, found)
                found = played(file, [replace(limited, policies=used)], config.workers) + unused
            rows += found
    arms = [arm(jobs, runs, algorithm) for algorithm in config.algorithms]
    rules = sorted({name for names in fronts.values() for name in names})
    document = study_document(rows, arms, rules)
    (output / TABLES).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (output / MARKDOWN).write_text(study_markdown(document), encoding="utf-8")
    print(study_markdown(document))
    print(f"saved: {output / TABLES}, {output / MARKDOWN}")


def require_recipe(name: str) -> None:
    """Raises ConfigurationError where no experiment has this name."""
    known = sorted(path.stem for path in (SCRIPTS.parent / "configs" / "experiment").glob("*.yaml"))
    if name not in known:
        raise ConfigurationError(
            f"there is no experiment of this name. Received recipe={name!r}."
            f"{did_you_mean(name, known)}"
        )


def ran(job: Job, config: StudyConfig) -> Run:
    """Returns a job's finished run; trains it, or what is left of it."""
    folders = sorted(path.parent for path in job.folder.glob("*/config.yaml"))
    if folders:
        run = Run.resume(folders[-1])
        run.close()
        if run.finished:
            return run
        settings = [f"resume={folders[-1]}"]
    else:
        settings = [
            f"experiment={config.recipe}", f"algorithm={job.algorithm}", f"seed={job.seed}",
            f"output={job.folder}", "comparison.tasks=0", "logger.progress=false",
            *config.overrides,
        ]  # fmt: skip
    command = [sys.executable, str(SCRIPTS / "train.py"), *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(
            f"training {job.name} ended with {done.returncode}. Received: "
            f"{done.stderr.strip()[-500:]}. Run {' '.join(command)} to see all of it."
        )
    return ran(job, config)


def settings_of(
    config: StudyConfig, runs: dict[Job, Run], source: str, notice: str
) -> tuple[Setting, Setting]:
    """Returns what is played of one source: raw, and baselines, the rules' front, and all runs."""
    run = next(iter(runs.values()))
    comparison = run.config.comparison
    comparison.tasks, comparison.seeds = config.first + config.tasks, config.noise_seeds
    raw, limited = (
        replace(setting, task_ids=setting.task_ids[config.first :])
        for setting in comparison_settings(run, source, notice)
    )
    if not limited.task_ids:
        raise ConfigurationError(
            f"{source!r} has no validation tasks from number {config.first} on. "
            f"Received first={config.first}. Name an earlier one."
        )
    chosen: dict[str, PolicyFactory] = {
        name: make for name, make in limited.policies.items() if name not in OWN
    }
    for spec in front(config, source):
        chosen[FRONT + spec.label] = spec
    for job, each in runs.items():
        chosen[job.name] = PointerSpec(trained(each), job.name, guarded=True)
        if each.checkpoint("warm").exists():
            name = f"warm {job.name}"
            chosen[name] = PointerSpec(each.checkpoint("warm"), name, guarded=True)
    return raw, replace(limited, policies=chosen)


def without_an_edit(
    runs: dict[Job, Run], rows: list[EvaluationRow]
) -> tuple[list[EvaluationRow], dict[str, PolicyFactory]]:
    """Returns what masking each edit of each trained policy comes to.

    A policy that plays its likeliest action does the same without an edit that it never makes: its
    own rows stand for that, and need not be played.

    Returns:
        The rows of masked edits that are not made, and the policies of those that are.
    """
    unused: list[EvaluationRow] = []
    used: dict[str, PolicyFactory] = {}
    for job, run in runs.items():
        own = [row for row in rows if row.policy == job.name]
        for op in (op for op in Op if op != Op.KEEP):
            name = f"{job.name} without {op.name.lower()}"
            if any(row.edits_by_op.get(op.name.lower()) for row in own):
                used[name] = PointerSpec(trained(run), name, guarded=True, masked=op)
            else:
                unused += [replace(row, policy=name) for row in own]
    return unused, used


def front(config: StudyConfig, source: str) -> list[PolicySpec]:
    """Returns the front that tuning found on a source's training tasks; none where it is not."""
    path = Path(config.front or "") / f"grid_{source}.json"
    if config.front is None or not path.exists():
        return []
    points = json.loads(path.read_text(encoding="utf-8"))
    return front_specs([GridPoint(**point) for point in points])


def played(path: Path, settings: list[Setting], workers: int) -> list[EvaluationRow]:
    """Returns the rows of the settings; what the file has already is not played again."""
    rows = list(load_evaluation(path).rows) if path.exists() else []
    known = {row.policy for row in rows}
    missing = [
        replace(s, policies={n: p for n, p in s.policies.items() if n not in known})
        for s in settings
    ]
    missing = [setting for setting in missing if setting.policies]
    with tqdm(total=sum(s.episodes for s in missing), unit="episode", desc=path.stem) as bar:
        rows += evaluate(missing, workers=workers, on_rows=bar.update)
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    save_evaluation(path, Evaluation(now, tuple(sys.argv), {}, tuple(rows)))
    return rows


def arm(jobs: list[Job], runs: list[Run], algorithm: str) -> Arm:
    """Returns the names of one algorithm's policies."""
    own = [(j, r) for j, r in zip(jobs, runs, strict=True) if j.algorithm == algorithm]
    warm = tuple(f"warm {j.name}" for j, r in own if r.checkpoint("warm").exists())
    return Arm(algorithm, tuple(j.name for j, _ in own), warm if len(warm) == len(own) else ())


if __name__ == "__main__":
    run_script("study_training", StudyConfig, main)
