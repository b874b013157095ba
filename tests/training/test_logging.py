from __future__ import annotations

import io
import json
import os
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.training.config import LoggerConfig, TrainConfig
from contextpilot.training.logging import (
    EPISODE_COLUMNS,
    ProgressLogger,
    WandbLogger,
    finite,
    load_wandb,
)
from contextpilot.training.run_folder import Run

ROW = {"iteration": 0, "environment_steps": 64, "episode/return": -0.5, "update/kl": None}
EPISODE = {
    "iteration": 0, "task": "tools/1", "return": -0.5, "success": 1.0, "billed_share": 0.9,
    "edits": "3: fold stub slot 2",
}  # fmt: skip


class RecordedWandb:
    """Stands for the module `wandb` and for a run of it; keeps every call in order."""

    class Error(Exception):
        """As W&B raises it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.refuses = refuses

    def Settings(self, **settings: Any) -> dict[str, Any]:  # noqa: N802
        return settings

    def Table(self, columns: list[str], data: list[list[Any]]) -> tuple[str, Any]:  # noqa: N802
        return ("table", columns, data)  # type: ignore[return-value]

    def init(self, **arguments: Any) -> RecordedWandb:
        if self.refuses:
            raise self.Error("api_key not configured")
        self.calls.append(("init", arguments))
        return self

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.calls.append(("define_metric", (name, step_metric)))

    def log(self, data: dict[str, Any], step: int) -> None:
        self.calls += [("log", data), ("step", step)]

    def finish(self) -> None:
        self.calls.append(("finish", None))

    def named(self, name: str) -> list[Any]:
        return [value for call, value in self.calls if call == name]


def settings(mode: str = "offline") -> LoggerConfig:
    return LoggerConfig(wandb=mode, project="p", entity="e", tags=["a"], progress=False)


def config(tmp_path: Path, mode: str = "offline") -> TrainConfig:
    return replace(TrainConfig(seed=2, output=str(tmp_path), name="try"), logger=settings(mode))


def test_wandb_is_begun_with_the_settings_and_environment_steps_as_axis(tmp_path: Path) -> None:
    api = RecordedWandb()
    run = Run.create(config(tmp_path), wandb=api)
    (begun,) = api.named("init")
    assert begun["mode"] == "offline"
    assert (begun["project"], begun["entity"], begun["tags"]) == ("p", "e", ["a"])
    assert (begun["name"], begun["group"]) == (run.folder.name, "try")
    assert begun["dir"] == str(run.folder)
    assert begun["config"]["algorithm"]["clip"] == run.config.algorithm.clip
    assert begun["settings"]["disable_git"]
    assert begun["settings"]["save_code"] is False
    assert api.named("define_metric") == [
        ("environment_steps", None), ("*", "environment_steps"),
    ]  # fmt: skip
    run.finish()
    assert api.calls[-1] == ("finish", None)


def test_a_row_goes_to_the_file_and_to_wandb(tmp_path: Path) -> None:
    api = RecordedWandb()
    run = Run.create(config(tmp_path), wandb=api)
    run.log(0, 64, {"episode/return": -0.5, "update/kl": float("inf")})
    assert json.loads((run.folder / "metrics.jsonl").read_text()) == ROW
    assert api.named("log") == [{k: v for k, v in ROW.items() if v is not None}]


def test_sampled_episodes_are_a_table_beside_the_next_row(tmp_path: Path) -> None:
    api = RecordedWandb()
    run = Run.create(config(tmp_path), wandb=api)
    run.log_episodes([EPISODE, EPISODE])
    assert api.named("log") == []
    run.log(0, 64, {})
    run.log(1, 128, {})
    first, second = api.named("log")
    cells = [EPISODE[name] for name in EPISODE_COLUMNS]
    assert first["episodes"] == ("table", list(EPISODE_COLUMNS), [cells, cells])
    assert first["environment_steps"] == 64
    assert "episodes" not in second


def test_a_resumed_run_goes_on_with_the_same_wandb_run(tmp_path: Path) -> None:
    first, second, other = RecordedWandb(), RecordedWandb(), RecordedWandb()
    run = Run.create(config(tmp_path), wandb=first)
    Run.resume(run.folder, wandb=second)
    Run.create(config(tmp_path), wandb=other)
    ids = [api.named("init")[0]["id"] for api in (first, second, other)]
    assert ids[0] == ids[1] == (run.folder / "wandb_id").read_text().strip()
    assert ids[2] != ids[0]
    assert second.named("init")[0]["resume"] == "allow"


def test_the_iteration_is_the_step_so_that_what_is_played_again_is_not_counted_twice(
    tmp_path: Path,
) -> None:
    api, again = RecordedWandb(), RecordedWandb()
    run = Run.create(config(tmp_path), wandb=api)
    run.log(-1, 0, {})  # the warm start
    run.log(0, 64, {})
    Run.resume(run.folder, wandb=again).log(0, 64, {})
    assert api.named("step") == [0, 1]
    assert again.named("step") == [1]


def test_a_run_that_wandb_refuses_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="wandb login"):
        Run.create(config(tmp_path, "online"), wandb=RecordedWandb(refuses=True))
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_is_not_begun_again(tmp_path: Path) -> None:
    api = RecordedWandb()
    run = Run.create(config(tmp_path), wandb=RecordedWandb())
    run.finish()
    assert Run.resume(run.folder, wandb=api).finished
    assert api.calls == []


def test_without_wandb_it_is_not_touched(tmp_path: Path) -> None:
    api = RecordedWandb()
    Run.create(config(tmp_path, "disabled"), wandb=api).finish()
    assert api.calls == []


def test_a_refusal_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"api_key.*'online'.*wandb login.*logger=jsonl"):
        WandbLogger(RecordedWandb(refuses=True), settings("online"), tmp_path, {"name": "try"})


def test_a_missing_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigurationError, match="pip install wandb"):
        load_wandb()


def test_numbers_that_are_not_finite_are_none() -> None:
    found = finite({"a": float("nan"), "b": float("-inf"), "c": 3})
    assert found == {"a": None, "b": None, "c": 3.0}
    assert isinstance(found["c"], float)


class Terminal(io.StringIO):
    """What tqdm takes for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "enabled", "drawn"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_the_bar_is_drawn_on_a_terminal_only(
    stream: io.StringIO, enabled: bool, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    bar = ProgressLogger(10, 4, enabled=enabled)
    bar.log({"iteration": -1, "environment_steps": 0, "warm_start/loss": 1.0})
    bar.log({
        "iteration": 4, "environment_steps": 64, "episode/return": -0.5, "actions/keep": 0.75,
        "episode/demand_success": None, "speed/steps_per_second": 812.0,
    })  # fmt: skip
    bar.close()
    shown = stream.getvalue()
    assert bool(shown) is drawn
    if drawn:
        assert "5/10" in shown
        assert "return=-0.5, keep=0.75, steps/s=812" in shown


@pytest.mark.filterwarnings("default")  # the package's own
def test_offline_wandb_touches_no_network_and_writes_into_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"connects to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
    monkeypatch.setenv("WANDB_API_KEY", "5ec2e7" * 6 + "abcd")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.chdir(tmp_path)
    run = Run.create(config(tmp_path / "runs"))
    run.log_episodes([EPISODE])
    run.log(0, 64, {"episode/return": -0.5})
    run.finish()
    (folder,) = (run.folder / "wandb").glob("offline-run-*")
    (written,) = folder.glob("*.wandb")
    assert written.name == f"run-{(run.folder / 'wandb_id').read_text().strip()}.wandb"
    deadline = time.monotonic() + 30  # W&B's own process writes the file
    while b"episode/return" not in written.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert os.listdir(tmp_path) == ["runs"]  # noqa: PTH208
    for path in run.folder.rglob("*"):
        if path.is_file():
            assert b"5ec2e75ec2e7" not in path.read_bytes(), path
