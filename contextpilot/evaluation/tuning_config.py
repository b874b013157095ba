"""What tuning plays, and the document that it writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextpilot.evaluation.tuning import GridPoint
from contextpilot.policies.catalog import ANY_SOURCE


@dataclass
class TuneConfig:
    """Settings of `scripts/tune_baselines.py`."""

    sources: list[str] = field(
        default_factory=lambda: [
            "docqa", "tools", "chat", "logs", "restock", "sample", "claude_code", "codex",
            "oh_my_pi", "tau_bench",
        ]
    )  # fmt: skip
    """Task sources, each tuned for itself; only their training split is touched."""

    tasks: int = 16
    """Generated training tasks."""

    replays: int = 8
    """Recorded training runs."""

    first_tasks: int = 4
    """Tasks of the first cut, which plays the whole grid."""

    keep: int = 16
    """Points per policy that survive the first cut and play all tasks."""

    horizon: int = 30
    """Of generated tasks."""

    notice: str = "good"
    window_tokens: int = 6000
    budget_fraction: float | None = 1.0
    reload_output_tokens: int = 600
    """As in the evaluation."""

    fit_predictor: bool = True
    """Whether the reuse predictor's network is fitted first."""

    predictor_tasks: int = 160
    """Training tasks per source that it is fitted on."""

    predictor_alpha: float = 1.0
    """Its weight decay."""

    data: str | None = None
    """Folder of recorded runs; by default the variable CONTEXTPILOT_DATA."""

    install: bool = True
    """Whether the package's own files are written."""

    workers: int = 2
    output: str = "runs/tuning"


def tuned_document(
    known: Mapping[str, Mapping[str, Mapping[str, Any]]], points: Mapping[str, Sequence[GridPoint]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns source -> policy -> best parameters, what was known before included.

    `any` has, per policy, the parameters that are best on average over the sources' own fields.
    """
    document = {source: {k: dict(v) for k, v in kinds.items()} for source, kinds in known.items()}
    for source, found in points.items():
        best: dict[str, GridPoint] = {}
        for point in found:
            if point.policy not in best or point.objective > best[point.policy].objective:
                best[point.policy] = point
        rules = [p for p in best.values() if p.policy != "reuse_predictor"]
        document[source] = {
            "best_rule": {"kind": max(rules, key=lambda p: p.objective).policy},
            **{kind: dict(point.params) for kind, point in best.items()},
        }
    document[ANY_SOURCE] = _for_any(document)
    return document


def _for_any(
    document: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """Returns per policy the median of each parameter over the tuned sources."""
    values: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for source, kinds in document.items():
        if source == ANY_SOURCE:
            continue
        for kind, params in kinds.items():
            for name, value in params.items():
                values[kind][name].append(value)
    return {
        kind: {name: _middle(found) for name, found in params.items()}
        for kind, params in values.items()
    }


def _middle(found: list[Any]) -> Any:
    """Returns the median of numbers (a value that occurs), or the most frequent of others."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in found):
        return sorted(found)[len(found) // 2]
    names, counts = np.unique([str(v) for v in found], return_counts=True)
    most = str(names[counts.argmax()])
    return next(v for v in found if str(v) == most)
