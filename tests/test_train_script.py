"""Training as a user runs it: a sweep, Ctrl-C, going on, and what a finished run says."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from contextpilot.evaluation.storage import load_evaluation
from contextpilot.policies.checkpoint import load_network
from contextpilot.training.config import ALGORITHMS, TrainConfig

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = str(ROOT / "scripts" / "train.py")
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if k != "CONTEXTPILOT_DATA"}, "OMP_NUM_THREADS": "1",
}  # fmt: skip
TINY = ("debug=smoke", "task=tools", "algorithm.episodes=4", "warm_start.tasks=0")


def train(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def iterations(folder: Path) -> list[int]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line)["iteration"] for line in lines]


def test_a_sweep_gives_each_job_a_run_folder_and_litters_nothing(tmp_path: Path) -> None:
    result = train(tmp_path, "-m", "seed=0,1", *TINY, "comparison.tasks=0")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["sweeps", "train"]
    folders = sorted((tmp_path / "runs" / "train").iterdir(), key=lambda path: path.name[-1])
    assert [folder.name[-11:] for folder in folders] == ["smoke-seed0", "smoke-seed1"]
    for folder in folders:
        assert iterations(folder) == [0, 1]
        assert not (folder / "evaluation").exists()
    weights = [load_network(folder / "checkpoints" / "last").state_dict() for folder in folders]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_stopped_run_says_how_to_go_on_and_equals_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = (*TINY, "algorithm.iterations=8", "comparison.policies=[raw]", "checkpoint_every=3")
    process = subprocess.Popen(
        [sys.executable, SCRIPT, *tiny, "output=broken"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list((tmp_path).glob("broken/*/checkpoints/last/trainer.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    (folder,) = (tmp_path / "broken").iterdir()
    assert process.returncode == 130, errors
    assert f"resume=broken/{folder.name}" in errors
    assert "Traceback" not in errors
    assert not (folder / "finished.json").exists()

    resumed = train(tmp_path, f"resume=broken/{folder.name}")
    assert resumed.returncode == 0, resumed.stderr
    assert iterations(folder) == list(range(8))
    evaluation = load_evaluation(folder / "evaluation" / "evaluation.json")
    assert {row.policy for row in evaluation.rows} == {"raw", "trained"}

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("train")
    configuration = importlib.import_module("configuration")
    choices = {"algorithm": ALGORITHMS}
    settings = configuration.compose("train", TrainConfig, [*tiny, "comparison.tasks=0"], choices)
    script.main(replace(settings, output="whole"))
    (whole,) = (tmp_path / "whole").iterdir()
    for name in ("last", "best"):
        ours, theirs = (
            load_network(path / "checkpoints" / name).state_dict() for path in (folder, whole)
        )
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)

    capsys.readouterr()
    script.main(TrainConfig(resume=str(folder)))
    said = capsys.readouterr().out
    assert "is finished" in said
    assert "comparison: " in said
    assert "Comparison |" not in said
    (folder / "evaluation" / "evaluation.json").unlink()
    script.main(TrainConfig(resume=str(folder)))
    assert "Comparison | tools" in capsys.readouterr().out


KILLED = (
    "debug=smoke", "task=tools", "algorithm.episodes=4", "algorithm.iterations=7",
    "warm_start.tasks=4", "checkpoint_every=3", "comparison.tasks=0",
)  # fmt: skip


@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
def test_a_killed_run_that_goes_on_equals_an_unbroken_one_to_the_bit(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Killed wherever it happens to be once so many rows are written: before the first checkpoint
    # to resume from, and between two.
    settings = [s for s in KILLED if algorithm == "ppo" or "episodes" not in s]
    settings += [f"algorithm={algorithm}"]
    settings += ["algorithm.groups=2", "algorithm.group_size=2"] if algorithm == "grpo" else []
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("train")
    configuration = importlib.import_module("configuration")
    config = configuration.compose("train", TrainConfig, settings, {"algorithm": ALGORITHMS})
    script.main(replace(config, output="whole"))
    (whole,) = (tmp_path / "whole").iterdir()
    for rows in (2, 6):
        folder = killed_at(tmp_path, [*settings, f"output=killed{rows}"], rows)
        script.main(TrainConfig(resume=str(folder)))
        assert lasting(folder) == lasting(whole)
        for name in ("last", "best", "warm"):
            ours, theirs = (
                load_network(path / "checkpoints" / name).state_dict() for path in (folder, whole)
            )
            assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def killed_at(cwd: Path, settings: list[str], rows: int) -> Path:
    """Starts a run, kills it with SIGKILL once it has written so many rows; returns its folder."""
    process = subprocess.Popen(
        [sys.executable, SCRIPT, *settings], cwd=cwd, env=ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    output = settings[-1].partition("=")[2]
    while (
        sum(len(f.read_bytes().splitlines()) for f in cwd.glob(f"{output}/*/metrics.jsonl")) < rows
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait()
    (folder,) = (cwd / output).iterdir()
    assert not (folder / "finished.json").exists()
    return folder


def lasting(folder: Path) -> list[dict[str, float]]:
    """Returns the rows of a run without what depends on the machine's speed."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [{k: v for k, v in row.items() if not k.startswith("speed/")} for row in rows]
