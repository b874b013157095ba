"""What importing the packages loads: looked up in a fresh interpreter's `sys.modules`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LEARNING = {"torch", "transformers", "trl", "peft", "wandb", "hydra", "datasets"}
EXTRAS = {"matplotlib", "sklearn", "scipy", "pandas", "stable_baselines3", "sb3_contrib"}


def loaded_by(statements: str, folder: Path) -> set[str]:
    """Returns the top-level modules that are loaded after `statements` ran in `folder`."""
    code = f"import sys\n{statements}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_contextpilot_is_light(tmp_path: Path) -> None:
    loaded = loaded_by("import contextpilot", tmp_path)
    assert "contextpilot" in loaded
    assert not loaded & (LEARNING | EXTRAS | {"gymnasium", "bm25s", "tiktoken", "tokenizers"})


@pytest.mark.parametrize(
    "module",
    ["contextpilot.doctor", "contextpilot.core.context", "contextpilot.core.invariants"],
)
def test_core_and_doctor_need_the_standard_library_only(module: str, tmp_path: Path) -> None:
    loaded = loaded_by(f"import {module}", tmp_path)
    installed = {name for name in loaded - loaded_by("", tmp_path) if name != "contextpilot"}
    assert installed <= sys.stdlib_module_names


@pytest.mark.parametrize(
    "module",
    [
        "contextpilot.edits.apply",
        "contextpilot.messages",
        "contextpilot.observations.encoder",
        "contextpilot.policies",
        "contextpilot.policies.catalog",
        "contextpilot.policies.learned",
        "contextpilot.evaluation.report",
        "contextpilot.evaluation.runner",
        "contextpilot.tokenizers",
        "contextpilot.summarizers",
        "contextpilot.retrieval",
    ],
)
def test_edits_baselines_and_evaluation_load_no_framework(module: str, tmp_path: Path) -> None:
    assert not loaded_by(f"import {module}", tmp_path) & (LEARNING | EXTRAS | {"gymnasium"})


def test_the_environment_loads_no_torch(tmp_path: Path) -> None:
    loaded = loaded_by("import contextpilot_envs", tmp_path)
    assert "gymnasium" in loaded
    assert not loaded & (LEARNING | EXTRAS)


def test_the_environment_is_made_by_its_id_alone(tmp_path: Path) -> None:
    statements = (
        "import gymnasium\n"
        "env = gymnasium.make('contextpilot_envs:ContextPilot/ContextEdit-v0', source='tools')\n"
        "env.reset(seed=0)"
    )
    loaded = loaded_by(statements, tmp_path)
    assert {"contextpilot", "contextpilot_envs"} <= loaded
    assert not loaded & (LEARNING | EXTRAS)
