"""Settings of training: what every group comes to, and that no mistake gets as far as any work."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.config import EvaluateConfig
from contextpilot.rewards.weights import PRESETS
from contextpilot.training.config import (
    ALGORITHMS,
    CREDITS,
    READERS,
    EnvConfig,
    GRPOConfig,
    PolicyConfig,
    PPOConfig,
    TaskConfig,
    TrainConfig,
)

ROOT = Path(__file__).resolve().parent.parent
GROUPS = sorted(path.name for path in (ROOT / "configs").iterdir() if path.is_dir())
CHOICES = [
    (group, path.stem) for group in GROUPS for path in sorted((ROOT / "configs" / group).iterdir())
]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


configuration = load_script("configuration")


def compose(*overrides: str) -> TrainConfig:
    found: TrainConfig = configuration.compose(
        "train", TrainConfig, overrides, {"algorithm": ALGORITHMS}
    )
    return found


def refused(*overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        compose(*overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_settings_the_defaults_hold() -> None:
    found = compose()
    assert found.algorithm == PPOConfig()
    assert (found.env, found.task, found.policy) == (EnvConfig(), TaskConfig(), PolicyConfig())
    assert found.reward == PRESETS["balanced"]
    assert (found.credit.name, found.reader.name) == ("step", "ideal")
    assert found.logger.wandb == "disabled"


@pytest.mark.parametrize(("group", "choice"), CHOICES)
def test_every_choice_of_every_group_composes(group: str, choice: str) -> None:
    assert isinstance(compose(f"{group}={choice}"), TrainConfig)


def test_rewards_are_the_presets() -> None:
    files = {path.stem for path in (ROOT / "configs" / "reward").iterdir()}
    assert files == set(PRESETS)
    for name, weights in PRESETS.items():
        assert compose(f"reward={name}").reward == weights


def test_choices_are_what_they_are_called() -> None:
    assert [compose(f"credit={name}").credit.name for name in CREDITS] == list(CREDITS)
    assert [compose(f"reader={name}").reader.name for name in READERS] == list(READERS)
    assert {choice for group, choice in CHOICES if group == "credit"} == set(CREDITS)
    assert compose("env=sessions").env.context_slots == 128
    assert compose("task=transcripts").task.sources == [
        "claude_code", "codex", "oh_my_pi", "tau_bench",
    ]  # fmt: skip
    mixed = compose("task=mixed").task.sources
    assert mixed == TaskConfig().sources + compose("task=transcripts").task.sources
    small = compose("policy=pointer_small").policy
    assert (small.width, small.layers, small.heads) == (32, 1, 2)
    assert compose("logger=wandb").logger.wandb == "online"
    assert compose("logger=wandb_offline").logger.wandb == "offline"


def test_an_algorithm_brings_its_own_settings() -> None:
    found = compose("algorithm=grpo", "algorithm.group_size=4", "algorithm.clip=0.1")
    assert found.algorithm == GRPOConfig(group_size=4, clip=0.1)


def test_a_run_is_smoke_whatever_it_is_of() -> None:
    for algorithm in ALGORITHMS:
        found = compose("debug=smoke", f"algorithm={algorithm}")
        assert isinstance(found.algorithm, ALGORITHMS[algorithm])
        assert found.algorithm.iterations == 2


@pytest.mark.parametrize(
    ("overrides", "received", "remedy"),
    [
        ("algorithm.learning_rat=1", "'algorithm.learning_rat=1'", "'algorithm.learning_rate'?"),
        ("learning_rate=1", "'learning_rate=1'", "'algorithm.learning_rate' or 'warm_start."),
        ("num_envs=4", "'num_envs=4'", "Did you mean 'env.num_envs'?"),
        ("sed=1", "'sed=1'", "Did you mean 'seed'?"),
        ("algoritm=ppo", "'algoritm=ppo'", "Did you mean 'algorithm'?"),
        ("+fresh=1", "'+fresh=1'", "Known: algorithm,"),
        ("++env.num_env=1", "'++env.num_env=1'", "Did you mean 'env.num_envs'?"),
        ("env={num_env: 3}", "'env={num_env: 3}'", "Did you mean 'env.num_envs'?"),
        ("algorithm=pppo", "'algorithm=pppo'", "Did you mean 'ppo'?"),
        ("reward=balancd", "'reward=balancd'", "Did you mean 'balanced'?"),
        (
            "algorithm=grpo algorithm.value_coefficient=1",
            "'algorithm.value_coefficient=1'",
            "It is a setting of algorithm=ppo.",
        ),
        ("algorithm.group_size=4", "'algorithm.group_size=4'", "a setting of algorithm=grpo."),
        ("seed=abc", "'seed=abc'", "could not be converted to Integer"),
        ("task.horizon=2.5", "'task.horizon=2.5'", "could not be converted to Integer"),
        ("reward.demand=much", "'reward.demand=much'", "could not be converted to Float"),
        ("logger.progress=maybe", "'logger.progress=maybe'", "not a valid bool"),
        ("task.sources=docqa", "'task.sources=docqa'", "is not a ListConfig, list or tuple"),
        ("env.num_envs=null", "'env.num_envs=null'", "not Optional"),
        ("seed=0,1", "'seed=0,1'", "Add -m for one run of each."),
        ("seed=[1", "'seed=[1'", "Write NAME=VALUE"),
        ("algorithm.clip=-1", "-1.0", "`algorithm.clip` must be positive."),
        ("algorithm.learning_rate=inf", "inf", "`algorithm.learning_rate` must be finite."),
        ("reward.demand=nan", "nan", "`reward.demand` must be a finite number."),
        (f"seed={2**32}", str(2**32), "`seed` must be at most 4294967295."),
        ("algorithm.clip=nan", "nan", "`algorithm.clip` must be positive."),
        ("algorithm.epochs=0", "0", "`algorithm.epochs` must be at least 1."),
        ("algorithm=grpo algorithm.group_size=1", "1", "`algorithm.group_size` must be at least"),
        ("credit.gae_lambda=1.5", "1.5", "`credit.gae_lambda` must lie in [0, 1]."),
        ("policy.heads=3", "64 and 3", "must be a multiple of `policy.heads`"),
        ("task.inner_fold=0", "0.0", "`task.inner_fold` must lie in"),
        ("task.sources=[]", "[]", "`task.sources` must not be empty"),
        ("warm_start.teachers=[best_rul]", "'best_rul'", "Did you mean 'best_rule'?"),
        ("comparison.policies=[raw,orcle]", "'orcle'", "Did you mean 'oracle'?"),
        ("credit.name=stepp", "'stepp'", "Did you mean 'step'?"),
        ("checkpoint_every=0", "0", "`checkpoint_every` must be at least 1."),
        ("seed=-1", "-1", "`seed` must be at least 0."),
        ("comparison.seeds=[0,-2]", "-2", "`comparison.seeds` must be at least 0."),
        ("name=a/b", "'a/b'", "Set output=FOLDER"),
        ("warm_start.tasks=1 warm_start.teachers=[]", "[]", "or set warm_start.tasks=0."),
    ],
)
def test_a_mistake_is_named_with_its_remedy(overrides: str, received: str, remedy: str) -> None:
    arguments = overrides.split() if "{" not in overrides else [overrides]
    message = refused(*arguments)
    assert f"Received {received}" in message
    assert remedy in message


@pytest.mark.parametrize(
    ("file", "text", "overrides", "message"),
    [
        ("train", "sed: 1\n", [], "Did you mean 'seed'?"),
        ("reward/balanced", "demnd: 1\n", [], "Did you mean 'reward.demand'?"),
        ("algorithm/ppo", "lerning_rate: 1\n", [], "Did you mean 'algorithm.learning_rate'?"),
        ("debug/smoke", "policy:\n  wdth: 3\n", ["debug=smoke"], "Did you mean 'policy.width'?"),
        ("env/sessions", "num_envs: many\n", ["env=sessions"], "converted to Integer"),
        ("credit/step", "gae_lambda: [1\n", [], "not YAML"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(
    file: str, text: str, overrides: list[str], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.setattr(configuration, "CONFIGS", tmp_path / "configs")
    path = tmp_path / "configs" / f"{file}.yaml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    line = len(path.read_text(encoding="utf-8").splitlines())
    line += 1 if message == "not YAML" else 0  # where the parser noticed that it never ends
    found = refused(*overrides)
    assert found.startswith(f"{path}, line {line}: ")
    assert message in found


def test_a_choice_that_a_file_asks_for_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.setattr(configuration, "CONFIGS", tmp_path / "configs")
    path = tmp_path / "configs" / "train.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    line = lines.index("  - reader: ideal") + 1
    lines[line - 1] = "  - reader: ideel"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = refused()
    assert found.startswith(f"{path}, line {line}: ")
    assert "Did you mean 'ideal'?" in found


def test_a_sweep_is_checked_job_by_job() -> None:
    assert configuration.jobs(["-m", "seed=0,1", "task.sources=[a,b]", "reward=naive"]) == [
        ["seed=0", "task.sources=[a,b]", "reward=naive"],
        ["seed=1", "task.sources=[a,b]", "reward=naive"],
    ]
    assert configuration.jobs(["seed=range(0,3)", "--multirun"]) == [
        ["seed=0"], ["seed=1"], ["seed=2"],
    ]  # fmt: skip
    assert configuration.jobs(["--cfg", "job", "seed=1"]) == [["seed=1"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["seed", "3"], "Received 'seed'. Write NAME=VALUE."), (["-m", "seed=[1"], "'seed=[1'")],
)
def test_what_is_not_a_setting_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configuration.jobs(arguments)
    assert message in str(caught.value)


def test_other_scripts_have_the_same_checks() -> None:
    found = configuration.compose("evaluate", EvaluateConfig, ["tasks=3"])
    assert found == EvaluateConfig(tasks=3)
    with pytest.raises(ConfigurationError, match="Did you mean 'horizons'"):
        configuration.compose("evaluate", EvaluateConfig, ["horzons=[3]"])


def test_no_script_leaves_a_log_file() -> None:
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        assert "override hydra/job_logging: stdout" in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "seed=0,1,x"], "Received 'seed=x'"),
        (["task.sources=[tols]"], "Did you mean 'tools'?"),
        (["env.prices=defalt"], "Did you mean 'default'?"),
        (["env.notice=goood"], "Did you mean 'good'?"),
        (["resume=runs/nowhere"], "no run to resume"),
        (["resume=runs/nowhere", "seed=1"], "Received 'seed=1' beside `resume`"),
    ],
)
def test_the_script_fails_in_one_line_before_any_work(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "train.py"), *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not list(tmp_path.iterdir())
