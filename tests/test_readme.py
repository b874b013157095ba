"""The README's code runs, and what it names exists."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from contextpilot.core.edit import Op
from contextpilot.evaluation.config import POLICIES, EvaluateConfig
from contextpilot.training.config import TrainConfig
from contextpilot_envs.tasks.catalog import LABELLED
from contextpilot_envs.tasks.replay_source import NAMES as REPLAYS
from contextpilot_envs.tasks.synthetic import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICKSTART_LINES = 20


def blocks(language: str) -> list[tuple[int, str]]:
    """Returns the fenced blocks of a language, each with the number of its first line."""
    found = re.finditer(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [(README[: match.start(1)].count("\n") + 1, match.group(1)) for match in found]


def section(title: str) -> str:
    """Returns the text below a heading, up to the next one of its level."""
    match = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    assert match is not None, f"README has no section {title!r}"
    return match.group(1)


def first_cells(title: str) -> list[str]:
    """Returns the names in backticks in the first column of a section's table."""
    rows = re.findall(r"^\| (`.*?) \|", section(title), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_python_blocks_run_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "readme"}
    for line, code in blocks("python"):
        padded = "\n" * (line - 1) + code  # so that a traceback names the README's own lines
        exec(compile(padded, "README.md", "exec"), namespace)
    assert namespace["ended"] is True
    assert "J = -" in capsys.readouterr().out


def test_the_quickstart_is_as_short_as_it_says() -> None:
    _, code = blocks("python")[0]
    assert "twenty lines" in README
    assert len(code.splitlines()) <= QUICKSTART_LINES


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake (\w+)", "\n".join(code for _, code in blocks("bash"))))
    assert named >= {"quickstart", "test"}
    assert named <= targets


def test_settings_and_groups_exist() -> None:
    named = set(re.findall(r"['\s`](\w+)=\S", "".join(code for _, code in blocks("bash"))))
    named |= set(re.findall(r"`(\w+)=\w+`", README))
    named |= set(re.findall(r"(\w+)=", " ".join(re.findall(r"ARGS='(.*?)'", README))))
    assert named >= {"sources", "data", "algorithm", "resume", "seed"}
    known = {field.name for schema in (EvaluateConfig, TrainConfig) for field in fields(schema)}
    known |= {folder.name for folder in (ROOT / "configs").iterdir() if folder.is_dir()}
    assert named <= known


def test_the_table_of_groups_names_every_choice() -> None:
    rows = re.findall(
        r"^\| (`env`.*|`(?:\w+)`.*) \|$", README.split("## Training")[1], re.MULTILINE
    )
    table = "\n".join(rows)
    for file in (ROOT / "configs").glob("*/*.yaml"):
        if file.stem not in ("none", *FAMILIES):
            assert f"`{file.parent.name}`" in table
            assert f"`{file.stem}`" in table, file


def test_files_that_are_named_exist() -> None:
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|txt))`", README))
    assert len(named) > 5
    assert not [name for name in named if not _exists(name)]


def test_the_house_is_as_it_is_drawn() -> None:
    ((_, drawing),) = blocks("text")
    parent = ROOT
    for line in drawing.splitlines():
        if line.startswith(" " * 8):  # goes on with the line above
            continue
        names = re.findall(r"[\w.]+(?:/[\w]+)*(?:/|\.py)", re.split(r"\s{3,}", line.strip())[0])
        assert names, line
        if not line.startswith(" "):
            parent = ROOT / names[0]
            assert parent.is_dir(), line
        else:
            assert all((parent / name).exists() for name in names), line


def test_every_package_and_every_script_is_in_the_drawing() -> None:
    ((_, drawing),) = blocks("text")
    packages = {path.parent.name for path in (ROOT / "contextpilot").glob("*/__init__.py")}
    assert not [name for name in sorted(packages) if f"{name}/" not in drawing]
    imported = {"configuration"}
    imported |= {f"benchmark_{n}" for n in ("langchain", "learners", "opponents", "profile")}
    imported |= {f"soak_{n}" for n in ("checks", "histories", "sessions", "wire")}
    scripts = {path.stem for path in (ROOT / "scripts").glob("*.py")} - imported
    assert not [name for name in sorted(scripts) if name not in drawing]


def test_tables_name_what_there_is() -> None:
    assert first_cells("The seven edits") == [op.name.lower() for op in Op]
    assert set(first_cells("Tasks")) == {*FAMILIES, *REPLAYS, *LABELLED}
    assert set(first_cells("Baselines")) | {"best_rule"} == set(POLICIES)


def _exists(name: str) -> bool:
    return name.startswith((".venv", "runs/")) or (ROOT / name).exists()
