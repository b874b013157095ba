"""`contextpilot doctor`: is this installation sound? Needs the standard library only.

The distribution is called contextpilot-rl, since another project owns `contextpilot` on PyPI. Both
unpack into the folder `contextpilot/`: whichever came last overwrites the other's files, and
uninstalling one takes the other's with it. Nothing in Python notices, so this command looks.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "contextpilot-rl"
IMPORT_FOLDERS = ("contextpilot", "contextpilot_envs")
CORE_PACKAGES = ("torch", "gymnasium", "transformers", "trl", "peft", "wandb", "hydra-core")
DATA_VARIABLE = "CONTEXTPILOT_DATA"
OLDEST_PYTHON = (3, 11)

_GPU_PROBE = (
    "import torch; n = torch.cuda.device_count(); "
    "print(torch.cuda.get_device_name(0) if n else '', n, sep='|')"
)
_GPU_PROBE_SECONDS = 120
_REINSTALL = (
    f"pip uninstall --yes {{others}} {DISTRIBUTION}, then install {DISTRIBUTION} again; "
    "keep the other project in a virtual environment of its own."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `remedy` is empty where nothing is wrong."""

    subject: str
    text: str
    remedy: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status, 1 where something needs a remedy."""
    parser = argparse.ArgumentParser(
        prog="contextpilot", description="ContextPilot: context management for LLM agents."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "doctor",
        help="check this installation",
        description=(
            "Checks this installation: whether another distribution owns the same import folder, "
            "whether installed files were overwritten, the versions of Python and of the core "
            f"packages, whether PyTorch sees a GPU, and whether the folder that {DATA_VARIABLE} "
            "names can be read. Changes nothing."
        ),
        epilog="Exit status: 0 if all is well, 1 if something needs the remedy that is printed.",
    )
    parser.parse_args(arguments)
    findings = examine()
    sys.stdout.write("".join(f"{line}\n" for line in report(findings)))
    return int(any(finding.remedy for finding in findings))


def examine() -> list[Finding]:
    """Returns all findings, in the order in which they are printed."""
    return [
        check_python(sys.version_info[:2]),
        *check_installation(list(metadata.distributions())),
        *(check_package(name) for name in CORE_PACKAGES),
        check_gpu(),
        check_data(os.environ.get(DATA_VARIABLE)),
    ]


def report(findings: Iterable[Finding]) -> list[str]:
    """Returns one line per finding, and one more for each remedy."""
    lines = []
    for finding in findings:
        mark = "PROBLEM" if finding.remedy else "ok"
        lines.append(f"{mark:8}{finding.subject:18}{finding.text}")
        if finding.remedy:
            lines.append(f"{'':8}remedy: {finding.remedy}")
    return lines


def check_python(version: tuple[int, int]) -> Finding:
    """Says which Python this is, and whether it is too old."""
    oldest = ".".join(map(str, OLDEST_PYTHON))
    remedy = "" if version >= OLDEST_PYTHON else f"install Python {oldest} or newer."
    return Finding("python", f"{platform.python_version()} at {sys.executable}", remedy)


def check_installation(distributions: Sequence[metadata.Distribution]) -> list[Finding]:
    """Looks for other owners of the import folder, and for installed files that have changed.

    Args:
        distributions: everything that is installed.
    """
    others = sorted(
        f"{distribution.name} {distribution.version}"
        for distribution in distributions
        if not _is_ours(distribution) and owned_folders(distribution)
    )
    here = Path(__file__).resolve().parent
    ours = next((d for d in distributions if _is_ours(d)), None)
    if ours is None:
        remedy = f"pip install {DISTRIBUTION}, or pip install -e . in a checkout."
        installed = Finding(DISTRIBUTION, f"not installed; imported from {here}", remedy)
    else:
        damaged = damaged_files(ours)
        text = f"{ours.version} at {here}"
        if damaged:
            text += f"; files that are missing or not ours: {len(damaged)}, such as {damaged[0]}"
        remedy = _REINSTALL.format(others="contextpilot") if damaged else ""
        installed = Finding(DISTRIBUTION, text, remedy)
    if not others:
        return [installed, Finding("import folder", "no other distribution owns it")]
    names = " ".join(other.split()[0] for other in others)
    clash = f"contextpilot/ is also owned by {', '.join(others)}"
    return [installed, Finding("import folder", clash, _REINSTALL.format(others=names))]


def owned_folders(distribution: metadata.Distribution) -> list[str]:
    """Returns which of our import folders a distribution has files in."""
    tops = {file.parts[0] for file in distribution.files or () if len(file.parts) > 1}
    tops |= set((distribution.read_text("top_level.txt") or "").split())
    return sorted(tops.intersection(IMPORT_FOLDERS))


def damaged_files(distribution: metadata.Distribution) -> list[str]:
    """Returns the installed files that are gone, or do not have the hash they came with."""
    damaged = []
    for file in distribution.files or ():
        if file.parts[0] not in IMPORT_FOLDERS or file.hash is None:
            continue
        path = Path(str(file.locate()))
        if not path.is_file() or _digest(path, file.hash.mode) != file.hash.value:
            damaged.append(str(file))
    return damaged


def check_package(name: str) -> Finding:
    """Says which version of a package is installed."""
    try:
        return Finding(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, "not installed", f"pip install {name}")


def check_gpu() -> Finding:
    """Says whether PyTorch sees a GPU; asks in a process of its own, as importing it may crash."""
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _GPU_PROBE],
            capture_output=True,
            text=True,
            timeout=_GPU_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"PyTorch did not answer within {_GPU_PROBE_SECONDS} seconds"
        return Finding("gpu", text, "pip install --force-reinstall torch")
    if probe.returncode:
        last = (probe.stderr.strip().splitlines() or [f"exit status {probe.returncode}"])[-1]
        if "No module named 'torch'" in last:
            return Finding("gpu", "unknown without PyTorch")
        return Finding("gpu", f"PyTorch fails: {last}", "pip install --force-reinstall torch")
    name, _, count = probe.stdout.strip().rpartition("|")
    return Finding("gpu", f"{count} x {name}" if name else "none seen by PyTorch; the CPU is used")


def check_data(folder: str | None) -> Finding:
    """Says whether the folder of recorded data is named and readable."""
    if not folder:
        text = "not set; recorded data sets are left out, and tests that need them are skipped"
        return Finding(DATA_VARIABLE, text)
    path = Path(folder)
    if path.is_dir() and os.access(path, os.R_OK | os.X_OK):
        return Finding(DATA_VARIABLE, folder)
    state = "cannot be read" if path.exists() else "does not exist"
    remedy = f"set {DATA_VARIABLE} to a folder that you can read, or unset it."
    return Finding(DATA_VARIABLE, f"{folder} {state}", remedy)


def _is_ours(distribution: metadata.Distribution) -> bool:
    name = distribution.name or ""  # broken metadata has none
    return name.lower().replace("_", "-").replace(".", "-") == DISTRIBUTION


def _digest(path: Path, algorithm: str) -> str:
    raw = hashlib.new(algorithm, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


if __name__ == "__main__":
    sys.exit(main())
