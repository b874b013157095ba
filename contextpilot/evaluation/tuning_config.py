"""What tuning plays, and the document that it writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.tuning import GridPoint
from contextpilot.policies.catalog import ANY_SOURCE, TUNED_FILES


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

    generated_budget_fraction: float | None = None
    """When given, generated tasks have this share of their largest raw request as their window,
    and not `window_tokens`."""

    context_slots: int = 128
    archive_slots: int = 32
    """The action layout's size."""

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

    tuned_file: str = "tuned"
    """Which of them: a name in `contextpilot.policies.catalog.TUNED_FILES`, one per setting."""

    workers: int = 2
    output: str = "runs/tuning"

    def __post_init__(self) -> None:
        """Refuses what could not be played or written, before anything is."""
        if self.tuned_file not in TUNED_FILES:
            raise ConfigurationError(
                f"`tuned_file` has an unknown name. Received {self.tuned_file!r}."
                f"{did_you_mean(self.tuned_file, TUNED_FILES)}"
            )
        share = self.generated_budget_fraction
        if share is not None and not share > 0:
            raise ConfigurationError(
                f"`generated_budget_fraction` must be positive, or null for a window of "
                f"`window_tokens`. Received {share}."
            )
        for name, least in (("context_slots", 1), ("archive_slots", 0)):
            if getattr(self, name) < least:
                raise ConfigurationError(
                    f"`{name}` must be at least {least}. Received {getattr(self, name)}."
                )
        if self.install and self.fit_predictor and self.tuned_file != "tuned":
            raise ConfigurationError(
                "`fit_predictor` would replace reuse_model.json, which tuned.json was found with. "
                f"Received tuned_file={self.tuned_file!r}. Add fit_predictor=false, or "
                "install=false."
            )


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
