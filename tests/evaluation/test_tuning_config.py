"""Settings of the tuning script: what is refused, and the window that each source is given."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.tuning_config import TuneConfig

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tuned_file": "tuned_hal"}, "Received 'tuned_hal'. Did you mean 'tuned_half'?"),
        ({"generated_budget_fraction": 0.0}, "must be positive, or null .* Received 0.0."),
        ({"generated_budget_fraction": -0.5}, "Received -0.5."),
        ({"context_slots": 0}, "`context_slots` must be at least 1. Received 0."),
        ({"archive_slots": -1}, "`archive_slots` must be at least 0. Received -1."),
        ({"tuned_file": "tuned_half"}, "Add fit_predictor=false, or install=false."),
    ],
)
def test_what_could_not_be_played_or_written_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TuneConfig(**settings)


def test_another_file_is_tuned_without_touching_the_shipped_predictor() -> None:
    assert TuneConfig(tuned_file="tuned_half", fit_predictor=False).install
    assert TuneConfig(tuned_file="tuned_half", install=False).fit_predictor


@pytest.mark.parametrize(
    ("source", "share", "expected"),
    [
        ("tools", None, (6000, None)),
        ("tools", 0.5, (None, 0.5)),
        ("sample", None, (None, 1.0)),
        ("sample", 0.5, (None, 1.0)),
    ],
)
def test_only_generated_tasks_have_their_own_share(
    monkeypatch: pytest.MonkeyPatch, source: str, share: float | None, expected: tuple[Any, Any]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    script = importlib.import_module("tune_baselines")
    config = TuneConfig(generated_budget_fraction=share, context_slots=7, archive_slots=3)
    spec = script.engine_spec(config, source, limited=True)
    assert (spec.simulator.max_context_tokens, spec.simulator.budget_fraction) == expected
    assert (spec.context_slots, spec.archive_slots) == (7, 3)
    free = script.engine_spec(config, source, limited=False)
    assert free.simulator.max_context_tokens is None
    assert free.simulator.budget_fraction is None
