"""Baselines by name, with the parameters that were tuned on training tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.policies.base import Policy
from contextpilot.policies.guard import FitGuard
from contextpilot.policies.reuse import ReuseModel, ReusePolicy
from contextpilot.policies.rules import (
    ClearOldResults,
    DropOldest,
    GoalSelection,
    RollingSummary,
    SummarizeAtThreshold,
    ThresholdFold,
)
from contextpilot.policies.simple import KeepAll, RandomPolicy

RULES: Mapping[str, Callable[..., Policy]] = MappingProxyType(
    {
        "truncation": DropOldest,
        "fixed_summary": SummarizeAtThreshold,
        "rolling_summary": RollingSummary,
        "clear_old_results": ClearOldResults,
        "threshold_fold": ThresholdFold,
        "goal_selection": GoalSelection,
    }
)
"""Rules that have parameters to tune."""

TUNED = Path(__file__).with_name("tuned.json")
"""Written by scripts/tune_baselines.py: per source and policy the best parameters found."""

TUNED_FILES: Mapping[str, Path] = MappingProxyType(
    {
        "tuned": TUNED,  # a window of 6,000 tokens, 30 requests
        "tuned_half": TUNED.with_name("tuned_half.json"),  # half the raw peak, 20 requests
    }
)
"""Parameters by the setting that they were tuned in: a rule is at its best in its own."""

ANY_SOURCE = "any"
"""The parameters for sources that were not tuned on: the best on average over those that were."""


@dataclass(frozen=True)
class PolicySpec:
    """A baseline by name and parameters; survives pickling, and makes a policy when called.

    Attributes:
        kind: "raw", "random", "reuse_predictor", or a name in RULES.
        params: the parameters that differ from the defaults.
        model: for the reuse predictor, the model's file; None: the one that ships.
    """

    kind: str
    params: tuple[tuple[str, Any], ...] = ()
    model: Path | None = None

    def __call__(self, _engine: object = None, _row: int = 0) -> Policy:
        """Makes the policy."""
        if self.kind == "raw":
            return KeepAll()
        if self.kind == "random":
            return RandomPolicy()
        if self.kind == "reuse_predictor":
            return FitGuard(ReusePolicy(_model(self.model), **dict(self.params)))
        return FitGuard(RULES[self.kind](**dict(self.params)))

    @property
    def label(self) -> str:
        """Name and parameters in one word, for grids."""
        return ",".join([self.kind, *(f"{key}={value}" for key, value in self.params)])


def policy_spec(name: str, source: str = ANY_SOURCE, tuned: str = "tuned") -> PolicySpec:
    """Returns a baseline with the parameters tuned for a source.

    Args:
        name: "raw", "random", "reuse_predictor", or a name in RULES.
        source: a task source; the parameters of ANY_SOURCE where it was not tuned on.
        tuned: a name in TUNED_FILES.

    Raises:
        ConfigurationError: for an unknown name, with the nearest known one.
    """
    known = ("raw", "random", "reuse_predictor", *RULES)
    if name not in known:
        raise ConfigurationError(
            f"There is no baseline of this name. Received {name!r}.{did_you_mean(name, known)}"
        )
    params = _tuned_for(source, tuned).get(name, {})
    return PolicySpec(name, tuple(sorted(params.items())))


def best_rule(source: str = ANY_SOURCE, tuned: str = "tuned") -> PolicySpec:
    """Returns whichever tuned rule did best on a source's training tasks; as `policy_spec`."""
    name = _tuned_for(source, tuned).get("best_rule", {}).get("kind")
    return policy_spec(name or "clear_old_results", source, tuned)


def _tuned_for(source: str, tuned: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns policy -> parameters of a source, or of any where it was not tuned on."""
    if tuned not in TUNED_FILES:
        raise ConfigurationError(
            f"There are no tuned parameters of this name. Received {tuned!r}."
            f"{did_you_mean(tuned, TUNED_FILES)}"
        )
    known: Mapping[str, Mapping[str, Any]] = tuned_parameters(TUNED_FILES[tuned])
    return known[source] if source in known else known.get(ANY_SOURCE, {})


@cache
def tuned_parameters(path: Path = TUNED) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns source -> policy -> parameters, as tuned; empty where nothing was tuned yet.

    Raises:
        ConfigurationError: when the file names a parameter that a rule does not have.
    """
    if not path.exists():
        return {}
    tuned: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    for source, policies in tuned.items():
        for name, params in policies.items():
            kind = RULES.get(name, ReusePolicy)
            known = {f.name for f in fields(kind)} | {"kind"}  # type: ignore[arg-type]
            for key in params:
                if key not in known:
                    raise ConfigurationError(
                        f"{path}: {source}.{name} has no parameter {key!r}."
                        f"{did_you_mean(key, known)}"
                    )
    return tuned


@cache
def _model(path: Path | None) -> ReuseModel:
    return ReuseModel.load() if path is None else ReuseModel.load(path)
