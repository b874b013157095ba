"""The engine that evaluations play on, made from names so that it survives pickling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextpilot_envs.engine import Engine
from contextpilot_envs.metrics import episode_metrics
from contextpilot_envs.oracle.player import OraclePolicy
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.catalog import load_source


class EvaluationEngine(Engine):
    """An engine that says when a row's episode is over, and what it came to."""

    def ended(self, row: int) -> bool:
        """True where a row's episode is over."""
        return self.episodes[row].ended

    def metrics(self, row: int) -> dict[str, Any]:
        """Returns an ended episode's measures, under the names of evaluation rows."""
        return episode_metrics(self.episodes[row], self.states[row].invalid)


@dataclass(frozen=True)
class EngineSpec:
    """Calling it with a number of rows makes an engine.

    Attributes:
        source, horizon, language, data, quotes: as `load_source` takes them.
        simulator: window, prices, notice preset, reader.
        context_slots, archive_slots: the action layout's size.
    """

    source: str
    simulator: SimulatorConfig
    horizon: int = 20
    language: str = "en"
    data: Path | None = None
    quotes: bool = True
    context_slots: int = 128
    archive_slots: int = 32

    def tasks(self) -> TaskSource:
        """Returns the task source."""
        return load_source(
            self.source, horizon=self.horizon, language=self.language, data=self.data,
            quotes=self.quotes,
        )  # fmt: skip

    def __call__(self, rows: int) -> EvaluationEngine:
        """Makes an engine of so many rows."""
        return EvaluationEngine(
            rows, self.tasks(), self.simulator, context_slots=self.context_slots,
            archive_slots=self.archive_slots,
        )  # fmt: skip


def make_oracle(engine: Any, row: int) -> OraclePolicy:
    """Returns the oracle of one row; it looks behind the observation, at the engine itself."""
    return OraclePolicy(engine, row)
