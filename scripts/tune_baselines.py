"""Tunes every rule and the reuse predictor on training tasks, and draws their whole fronts.

    python scripts/tune_baselines.py                     # all sources; an hour on two cores
    python scripts/tune_baselines.py sources=[tools]     # one of them

Writes contextpilot/policies/tuned.json (or what `tuned_file` names) and reuse_model.json (or, with
`install=false`, only the report): per source the best parameters, and in `output` every grid point
with its figures. configs/tune_baselines.yaml has the command of each shipped file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from configuration import run
from tqdm import tqdm

from contextpilot.evaluation.reuse_training import LabelledSegments, auc, fit_reuse
from contextpilot.evaluation.tuning import GridPoint, halving, reuse_grid, rule_grid
from contextpilot.evaluation.tuning_config import TuneConfig, tuned_document
from contextpilot.evaluation.tuning_plots import draw_grid
from contextpilot.policies.catalog import TUNED, TUNED_FILES, PolicySpec
from contextpilot.policies.reuse import reuse_features
from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.reuse_data import labelled_segments
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.catalog import FAMILIES

MODEL = TUNED.with_name("reuse_model.json")


def main(config: TuneConfig) -> None:
    """Fits the predictor, tunes everything source by source, and writes what was found."""
    folder = Path(config.output)
    folder.mkdir(parents=True, exist_ok=True)
    fitted_aside = config.fit_predictor and not config.install
    model = folder / "reuse_model.json" if fitted_aside else MODEL
    if config.fit_predictor:
        fit(config, model, folder)
    points: dict[str, list[GridPoint]] = {}
    for source in config.sources:
        points[source] = tune(config, source, model)
        (folder / f"grid_{source}.json").write_text(
            json.dumps([asdict(p) for p in points[source]], indent=1) + "\n", encoding="utf-8"
        )
        draw_grid(folder / f"front_{source}.png", source, points[source])
        shipped = TUNED_FILES[config.tuned_file]
        known = json.loads(shipped.read_text(encoding="utf-8")) if shipped.exists() else {}
        document = tuned_document(known, points)
        path = shipped if config.install else folder / shipped.name
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{source}: best rule {document[source]['best_rule']}")


def tune(config: TuneConfig, source: str, model: Path) -> list[GridPoint]:
    """Returns the best points of every rule and of the predictor on one source, best first."""
    spec = engine_spec(config, source, limited=True)
    ids = list(spec.tasks().ids("train"))[: config.tasks if source in FAMILIES else config.replays]
    grids: dict[str, Sequence[PolicySpec]] = {
        **rule_grid(),
        "reuse_predictor": [PolicySpec(p.kind, p.params, model) for p in reuse_grid()],
    }
    found: list[GridPoint] = []
    few = min(config.first_tasks, len(ids))
    total = sum(len(g) * few + min(config.keep, len(g)) * len(ids) for g in grids.values())
    with tqdm(total=total, unit="episode", desc=source) as bar:
        for grid in grids.values():
            found += halving(
                spec, ids, grid, workers=config.workers, on_rows=bar.update, first_tasks=few,
                keep=config.keep,
            )  # fmt: skip
    return found


def fit(config: TuneConfig, model: Path, folder: Path) -> None:
    """Fits the predictor on all sources' training tasks; prints its AUC on held-back ones."""
    lines, needed, weight, held_back = [], [], [], {}
    for source in config.sources:
        spec = engine_spec(config, source, limited=False)
        engine, tasks = spec(1), spec.tasks()
        ids = list(tasks.ids("train"))[: config.predictor_tasks]
        cut = max(1, len(ids) // 5)  # the training split's last fifth judges, not the validation
        x, y, _ = labelled_segments(engine, ids[:-cut], encode)
        held_back[source] = labelled_segments(engine, ids[-cut:], encode)[:2]
        lines.append(x)
        needed.append(y)
        weight.append(np.full(len(y), 1 / max(1, len(y))))
    data = LabelledSegments(
        np.concatenate(lines), np.concatenate(needed), np.concatenate(weight)
    )  # fmt: skip
    network = fit_reuse(data, text=True, alpha=config.predictor_alpha)
    network.save(model)
    scores = {s: round(auc(network.probability(x), y), 3) for s, (x, y) in held_back.items()}
    (folder / "reuse_auc.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    print("reuse predictor, AUC on held-back training tasks:", scores)


def encode(observation: object, slots: object) -> object:
    """Returns the predictor's input, text part included."""
    return reuse_features(observation, slots, text=True)  # type: ignore[arg-type]


def engine_spec(config: TuneConfig, source: str, *, limited: bool) -> EngineSpec:
    """Returns the environment that a source is tuned in: that of the evaluation, on training."""
    tokens, share = None, config.budget_fraction
    if source in FAMILIES:
        share = config.generated_budget_fraction
        tokens = config.window_tokens if share is None else None
    simulator = SimulatorConfig(
        max_context_tokens=tokens if limited else None, budget_fraction=share if limited else None,
        notice=config.notice, reload_output_tokens=config.reload_output_tokens,
    )  # fmt: skip
    data = config.data or os.environ.get("CONTEXTPILOT_DATA")
    return EngineSpec(
        source, simulator, config.horizon, "en", Path(data) if data else None,
        context_slots=config.context_slots, archive_slots=config.archive_slots,
    )  # fmt: skip


if __name__ == "__main__":
    run("tune_baselines", TuneConfig, main)
