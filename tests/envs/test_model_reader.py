"""A model in the reader's place: what it answers is what counts."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError
from contextpilot.observations.observation import Observation
from contextpilot.readers.base import MISSING, Message, states
from contextpilot_envs.evaluation_engine import EngineSpec
from contextpilot_envs.reader_study import verdicts
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.episode import Episode
from contextpilot_envs.tasks.catalog import load_source

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")


@dataclass
class Searching:
    """States every value that it knows and sees; says what is told where it sees none."""

    values: Sequence[str]
    otherwise: str
    name: str = "searching"

    def answer(self, messages: Sequence[Message]) -> str:
        roles = [message["role"] for message in messages]
        assert all(a != b for a, b in itertools.pairwise(roles))
        assert roles[-1] == "user"
        text = "\n".join(message["content"] for message in messages)
        return "; ".join(v for v in self.values if v in text) or self.otherwise


class FoldAll:
    """Folds every second thing that may be folded."""

    def reset(self, seed: int) -> None:
        self.count = 0

    def __call__(self, observation: Observation) -> int:
        allowed = observation.allowed(Op.FOLD, "stub")
        self.count += 1
        slots = allowed.nonzero()[0]
        return (
            observation.action(Op.FOLD, "stub", int(slots[0]))
            if self.count % 2 and len(slots)
            else 0
        )


def played(fold: bool, config: SimulatorConfig) -> Episode:
    """Plays a task; folds every result that may be folded, or nothing."""
    engine = EngineSpec("docqa", config, horizon=8)(1)
    engine.begin(0, engine.source.ids("validation")[0], 0)
    engine.observe([0])
    while not engine.ended(0):
        mask = engine.arrays()["action_mask"][0]
        folds = [a for a in mask.nonzero()[0] if engine.codec.decode(int(a)).op == Op.FOLD]
        engine.step([int(folds[0]) if fold and folds else 0], [0])
    return engine.episodes[0]


def model(otherwise: str) -> SimulatorConfig:
    task = load_source("docqa", horizon=8)
    values = [fact.value for fact in task.load(task.ids("validation")[0]).facts]
    reader = Searching(values, otherwise)
    return SimulatorConfig(budget_fraction=None, reader="model", model=reader)


def test_one_that_finds_what_is_there_is_the_ideal_reader() -> None:
    ideal = played(False, SimulatorConfig(budget_fraction=None))
    assert played(False, model("hm")).tally == ideal.tally
    assert ideal.tally.silent_misses == 0


def test_saying_that_it_is_missing_fetches_and_anything_else_misses() -> None:
    honest, bluffing = played(True, model(MISSING)).tally, played(True, model("12")).tally
    assert honest.forced_reloads > 0
    assert honest.silent_misses < bluffing.silent_misses
    assert bluffing.forced_reloads == 0
    assert honest.demands == bluffing.demands


def test_a_model_and_its_setting_go_together() -> None:
    with pytest.raises(ConfigurationError, match="exactly where `reader`"):
        SimulatorConfig(reader="model")
    with pytest.raises(ConfigurationError, match="exactly where `reader`"):
        SimulatorConfig(model=Searching((), ""))


def test_verdicts_say_what_stood_in_the_place_of_each_fact() -> None:
    spec = EngineSpec("docqa", SimulatorConfig(budget_fraction=None), horizon=12)
    source = spec.tasks()
    task = source.load(source.ids("validation")[1])
    reader = Searching([fact.value for fact in task.facts], MISSING)
    found = list(verdicts(spec, task.id, FoldAll(), reader))
    assert len(found) == sum(len(demand.facts) for demand in task.demands)
    assert all(v.read for v in found if v.seen == "fact")
    assert {"fact", "stub"} <= {v.seen for v in found}
    assert {v.rot > 0 for v in found if v.seen == "fact"} <= {True}
    assert all(v.tokens > 0 for v in found)


def test_the_study_counts_and_saves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    study: Any = importlib.import_module("study_reader")

    @dataclass
    class Blind:
        name: str = "blind"

        def answer(self, messages: Sequence[Message]) -> str:
            return MISSING

    monkeypatch.setattr(study, "reader_of", lambda arguments: Blind())
    path = tmp_path / "verdicts.json"
    assert study.main(["--model", "x", "--tasks", "2", "--output", str(path)]) == 0
    made = json.loads(path.read_text())
    assert made["by_what_is_seen"]["fact"]["stated"][0] == 0.0
    assert made["by_what_is_seen"]["fact"]["said_missing"][0] == 1.0
    assert len(made["verdicts"]) == sum(row["facts"] for row in made["by_what_is_seen"].values())
    assert "agreement with the ideal reader" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.syspath_prepend(SCRIPTS)
    assert study.main(["--model", str(tmp_path), "--tasks", "1", "--output", str(path)]) == 1
    assert "no causal language model" in capsys.readouterr().err


def test_values_are_found_in_answers_only() -> None:
    assert states("x 12 y", "12")
