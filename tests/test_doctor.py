"""`contextpilot doctor`, on made-up installations."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from contextpilot import doctor

OURS = {"contextpilot/__init__.py": "ours", "contextpilot_envs/__init__.py": "envs"}


def install(site: Path, name: str, files: Mapping[str, str], version: str = "1.0") -> None:
    """Writes a distribution as pip does: its files, its metadata, a record with hashes."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    record = []
    for file, text in files.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record.append(f"{file},sha256={digest.decode()},{len(text)}")
    record.append(f"{info.name}/METADATA,,")
    (info / "RECORD").write_text("\n".join(record))


def check(site: Path) -> list[doctor.Finding]:
    return doctor.check_installation(list(metadata.distributions(path=[str(site)])))


def test_a_sound_installation_needs_no_remedy(tmp_path: Path) -> None:
    install(tmp_path, "contextpilot-rl", OURS)
    install(tmp_path, "numpy", {"numpy/__init__.py": ""})
    assert [finding.remedy for finding in check(tmp_path)] == ["", ""]


def test_another_owner_of_the_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    install(tmp_path, "contextpilot", {"contextpilot/cache.py": ""}, "0.5.0")
    install(tmp_path, "contextpilot-rl", OURS)
    installed, folder = check(tmp_path)
    assert not installed.remedy
    assert "contextpilot 0.5.0" in folder.text
    assert "pip uninstall --yes contextpilot contextpilot-rl" in folder.remedy


def test_an_owner_that_only_declares_the_folder_is_found(tmp_path: Path) -> None:
    install(tmp_path, "contextpilot", {"__editable__.contextpilot.pth": "/elsewhere"})
    (tmp_path / "contextpilot-1.0.dist-info" / "top_level.txt").write_text("contextpilot\n")
    install(tmp_path, "contextpilot-rl", OURS)
    assert check(tmp_path)[1].remedy


def test_a_similar_folder_is_no_clash(tmp_path: Path) -> None:
    install(tmp_path, "contextpilot-rl", OURS)
    install(tmp_path, "contextpilot-ai", {"contextpilot_ai/__init__.py": "", "contextpilot.py": ""})
    assert not check(tmp_path)[1].remedy


@pytest.mark.parametrize("deleted", [True, False])
def test_overwritten_and_deleted_files_are_found(tmp_path: Path, deleted: bool) -> None:
    install(tmp_path, "contextpilot-rl", OURS)
    file = tmp_path / "contextpilot/__init__.py"
    file.unlink() if deleted else file.write_text("theirs")
    installed, _ = check(tmp_path)
    assert "missing or not ours: 1, such as contextpilot/__init__.py" in installed.text
    assert "install contextpilot-rl again" in installed.remedy


def test_code_that_was_never_installed_is_reported(tmp_path: Path) -> None:
    (installed, _) = check(tmp_path)
    assert "not installed" in installed.text
    assert "pip install contextpilot-rl" in installed.remedy


def test_broken_metadata_of_others_does_no_harm(tmp_path: Path) -> None:
    install(tmp_path, "contextpilot-rl", OURS)
    (tmp_path / "half-1.0.dist-info").mkdir()
    assert not check(tmp_path)[1].remedy


@pytest.mark.parametrize(
    ("version", "is_old"), [((3, 10), True), ((3, 11), False), ((3, 12), False), ((4, 0), False)]
)
def test_python_too_old(version: tuple[int, int], is_old: bool) -> None:
    assert bool(doctor.check_python(version).remedy) == is_old


def test_packages_are_reported_by_version() -> None:
    assert doctor.check_package("numpy").text == metadata.version("numpy")
    missing = doctor.check_package("contextpilot-no-such-package")
    assert missing.remedy == "pip install contextpilot-no-such-package"


@pytest.mark.parametrize(
    ("probe", "text", "needs_remedy"),
    [
        ("print('|0')", "none seen by PyTorch", False),
        ("print('H200|2')", "2 x H200", False),
        ("raise ImportError('libcudart.so not found')", "libcudart.so not found", True),
        ("import os; os.abort()", "exit status", True),
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "unknown", False),
    ],
)
def test_the_gpu_is_asked_for_in_another_process(
    probe: str, text: str, needs_remedy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_GPU_PROBE", probe)
    finding = doctor.check_gpu()
    assert text in finding.text
    assert bool(finding.remedy) == needs_remedy


def test_the_data_folder(tmp_path: Path) -> None:
    assert not doctor.check_data(None).remedy
    assert doctor.check_data(str(tmp_path)) == doctor.Finding("CONTEXTPILOT_DATA", str(tmp_path))
    missing = doctor.check_data(str(tmp_path / "none"))
    assert "does not exist" in missing.text
    assert missing.remedy
    file = tmp_path / "file"
    file.touch()
    assert "cannot be read" in doctor.check_data(str(file)).text


def test_each_remedy_stands_below_its_problem() -> None:
    lines = doctor.report([doctor.Finding("a", "fine"), doctor.Finding("b", "bad", "mend it")])
    assert [line.split() for line in lines] == [
        ["ok", "a", "fine"],
        ["PROBLEM", "b", "bad"],
        ["remedy:", "mend", "it"],
    ]


@pytest.mark.parametrize(("remedy", "status"), [("", 0), ("mend it", 1)])
def test_the_exit_status_says_whether_something_is_wrong(
    remedy: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("a", "text", remedy)])
    assert doctor.main(["doctor"]) == status
    assert "text" in capsys.readouterr().out


def test_the_command_needs_no_installation() -> None:
    done = subprocess.run(
        [sys.executable, "-S", doctor.__file__, "doctor", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Exit status" in done.stdout
