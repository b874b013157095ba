"""The scripts as a user runs them: a small evaluation, typing errors, bad folders, Ctrl-C."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contextpilot.evaluation.storage import load_evaluation
from contextpilot_envs.tasks.sample import sample_transcript

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "CONTEXTPILOT_DATA"}


def run(script: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_small_evaluation_writes_rows_and_a_report(tmp_path: Path) -> None:
    result = run(
        "evaluate.py", "sources=[tools,sample]", "horizons=[10,20]", "tasks=2", "replays=1",
        "notice=[good]", "policies=[raw,truncation,best_rule,reuse_predictor,oracle]",
        f"output={tmp_path / 'report'}", "workers=1", cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    evaluation = load_evaluation(tmp_path / "report" / "evaluation.json")
    assert len(evaluation.rows) == 5 * (2 * 2 + 1)
    assert {row.policy for row in evaluation.rows} == {
        "raw", "truncation", "best_rule", "reuse_predictor", "oracle",
    }  # fmt: skip
    for row in evaluation.rows:
        if row.policy == "raw":
            assert row.billed_tokens == pytest.approx(row.raw_billed_tokens)
            assert row.objective == pytest.approx(-1)
    assert "Comparison | tools" in result.stdout
    assert "Task success by horizon" in result.stdout
    assert (tmp_path / "report" / "report.md").read_text(encoding="utf-8").startswith("#")
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("horzons=[3]", "Did you mean 'horizons'?"),
        ("policies=[raw,truncaton]", "Did you mean 'truncation'?"),
        ("sources=[tols]", "Did you mean 'tools'?"),
        ("notice=[god]", "Did you mean 'good'?"),
        ("tasks=0", "`tasks` must be at least 1. Received 0."),
        ("tasks=many", "could not be converted to Integer"),
        ("sources=[transcripts]", "Add data=/path/to/your/transcripts."),
        ("sources=[claude_code]", "CONTEXTPILOT_DATA"),
        ("reference=best", "must be one of `policies`"),
    ],
)
def test_a_wrong_setting_fails_before_any_work(argument: str, message: str) -> None:
    started = time.monotonic()
    result = run("evaluate.py", argument)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "playing" not in result.stderr
    assert time.monotonic() - started < 60


def test_a_typing_error_in_the_file_is_named_with_its_line(tmp_path: Path) -> None:
    for folder in ("scripts", "configs"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).iterdir():
            if path.is_file():
                (tmp_path / folder / path.name).write_bytes(path.read_bytes())
    config = tmp_path / "configs" / "evaluate.yaml"
    config.write_text(config.read_text(encoding="utf-8") + "horzons: [3]\n", encoding="utf-8")
    line = len(config.read_text(encoding="utf-8").splitlines())
    result = subprocess.run(
        [sys.executable, str(tmp_path / "scripts" / "evaluate.py")],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert f"line {line}" in result.stderr
    assert "Did you mean 'horizons'?" in result.stderr


def test_missing_and_empty_folders_are_named(tmp_path: Path) -> None:
    missing = run("evaluate.py", "sources=[transcripts]", f"data={tmp_path / 'nowhere'}")
    assert missing.returncode == 2
    assert "nowhere" in missing.stderr
    empty = run("evaluate.py", "sources=[transcripts]", f"data={tmp_path}")
    assert empty.returncode == 2
    assert "holds no transcripts" in empty.stderr


def test_a_broken_line_is_counted_and_the_rest_is_played(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "good.json").write_text(json.dumps(list(sample_transcript(0).messages)))
    (folder / "bad.jsonl").write_text('{"role": "user", "content": "hi"}\n{oops\n')
    result = run(
        "evaluate.py", "sources=[transcripts]", f"data={folder}", "policies=[raw,oracle]",
        "notice=[good]", f"output={tmp_path / 'out'}", "workers=1",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "bad.jsonl, line 2" in result.stderr
    assert len(load_evaluation(tmp_path / "out" / "evaluation.json").rows) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_at_once_and_leaves_no_half_report(tmp_path: Path, workers: int) -> None:
    process = subprocess.Popen(
        [
            sys.executable, str(ROOT / "scripts" / "evaluate.py"), "sources=[docqa,tools]",
            "tasks=50", f"output={tmp_path / 'out'}", f"workers={workers}",
        ],
        cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in errors
    assert not (tmp_path / "out" / "evaluation.json").exists()


@pytest.mark.parametrize(
    "script",
    ["evaluate.py", "tune_baselines.py", "stress_edits.py", "benchmark.py", "study_rules.py",
     "study_edits.py", "check_generator.py", "soak.py", "benchmark_manager.py"],
)  # fmt: skip
def test_help_helps(script: str) -> None:
    result = run(script, "--help")
    assert result.returncode == 0, result.stderr
    assert "python scripts/" in result.stdout


def test_the_benchmark_of_the_manager_says_what_it_needs() -> None:
    if importlib.util.find_spec("langchain") is not None:
        pytest.skip("LangChain is installed")
    result = run("benchmark_manager.py", "--rounds", "1")
    assert result.returncode == 1
    assert "pip install -e '.[bench]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_random_edit_script_runs() -> None:
    result = run("stress_edits.py", "--edits", "200")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["edits"] >= 200
