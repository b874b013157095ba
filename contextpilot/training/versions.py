"""What a run was made with: packages, Python, platform, commit, layout versions."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from contextpilot import __version__
from contextpilot.edits.codec import ACTION_VERSION
from contextpilot.observations.features import OBSERVATION_VERSION

PACKAGES = ("torch", "numpy", "gymnasium", "safetensors", "hydra-core", "omegaconf", "wandb")
_GIT_SECONDS = 20


def versions() -> dict[str, Any]:
    """Returns the versions as JSON has them; of the commit no more than id and whether it holds."""
    return {
        "contextpilot": __version__,
        "observation_version": OBSERVATION_VERSION,
        "action_version": ACTION_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git": _git(Path(__file__).resolve().parent.parent.parent),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(checkout: Path) -> dict[str, Any] | None:
    """Returns commit and dirty flag of a checkout, None elsewhere; never the remote's address."""
    if not (checkout / ".git").exists():
        return None
    commit = _output(checkout, "rev-parse", "HEAD")
    changes = _output(checkout, "status", "--porcelain")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _output(checkout: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments], cwd=checkout, capture_output=True,
            text=True, timeout=_GIT_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
