"""What is in the wheel, and whether the pinned versions are those that the project asks for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import contextpilot

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "contextpilot": ROOT / "contextpilot",
    "contextpilot_envs": ROOT / "envs" / "contextpilot_envs",
}
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_SHIPPED = ("__pycache__", ".pyc", ".DS_Store")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Any:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_the_top_level_is_the_two_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {*PACKAGES, f"contextpilot_rl-{contextpilot.__version__}.dist-info"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_shipped(wheel: zipfile.ZipFile, package: str) -> None:
    source = PACKAGES[package]
    expected = {
        f"{package}/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and not any(part in str(path) for part in NOT_SHIPPED)
    }
    shipped = {name for name in wheel.namelist() if name.startswith(f"{package}/")}
    assert shipped == expected


@pytest.mark.parametrize(
    "name",
    [
        "contextpilot/py.typed",
        "contextpilot_envs/py.typed",
        "contextpilot/evaluation/evaluation.schema.json",
        "contextpilot/policies/reuse_model.json",
        "contextpilot/policies/tuned.json",
        "contextpilot/policies/tuned_half.json",
        "contextpilot_envs/tasks/splits.json",
        "contextpilot_envs/tasks/synthetic/vocabulary/tools.en.toml",
    ],
)
def test_data_files_are_shipped(wheel: zipfile.ZipFile, name: str) -> None:
    assert name in wheel.namelist()


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "contextpilot = contextpilot.doctor:main" in wheel.read(name).decode()


def test_version_and_licence(metadata: Any) -> None:
    assert metadata["Name"] == "contextpilot-rl"
    assert metadata["Version"] == contextpilot.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"


def test_each_pinned_version_is_one_that_the_project_asks_for() -> None:
    pins = _pins()
    asked = [Requirement(line) for line in _asked_for()]
    missing = [str(r) for r in asked if _normal(r.name) not in pins]
    wrong = [
        f"{r} but {pins[_normal(r.name)]}"
        for r in asked
        if _normal(r.name) in pins and pins[_normal(r.name)] not in r.specifier
    ]
    assert not missing
    assert not wrong


def test_pins_are_exact_and_hold_everywhere() -> None:
    lines = _pin_lines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "no paths, no builds"
    assert len(_pins()) == len(lines)


def _pin_lines() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _pins() -> dict[str, str]:
    return {_normal(line.split("==")[0]): line.split("==")[1] for line in _pin_lines()}


def _asked_for() -> list[str]:
    """Returns all dependencies, those of extras and of the build included.

    Not those of the opponents that a benchmark alone meets: nothing else installs them.
    """
    project, build = PYPROJECT["project"], PYPROJECT["build-system"]
    groups = project["optional-dependencies"]
    extras = [line for name in groups if name != "bench" for line in groups[name]]
    asked = (*project["dependencies"], *extras, *build["requires"])
    return [line for line in asked if not line.startswith(project["name"])]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
