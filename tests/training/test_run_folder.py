from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from contextpilot.edits.codec import ACTION_VERSION
from contextpilot.errors import ConfigurationError
from contextpilot.observations.features import OBSERVATION_VERSION
from contextpilot.policies.checkpoint import load_network
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.rewards.weights import PRESETS
from contextpilot.training.config import GRPOConfig, LoggerConfig, TrainConfig, WarmStartConfig
from contextpilot.training.config_file import load_config, save_config
from contextpilot.training.run_folder import Run

SMALL = PointerConfig(width=8, layers=1, heads=2, context_slots=4, archive_slots=2)
EPISODE = {
    "iteration": 0, "task": "tools/1", "return": -0.5, "success": 1.0, "billed_share": 0.9,
    "edits": "3: fold stub slot 2\u20284: keep",
}  # fmt: skip


def config(tmp_path: Path, **changes: Any) -> TrainConfig:
    silent = LoggerConfig(progress=False)
    return replace(TrainConfig(output=str(tmp_path / "runs"), logger=silent), **changes)


def network(seed: int = 0) -> PointerNetwork:
    torch.manual_seed(seed)
    return PointerNetwork(SMALL)


def optimizer(of: PointerNetwork) -> torch.optim.Adam:
    return torch.optim.Adam(of.parameters(), 1e-3, eps=1e-5)


def steps(of: PointerNetwork, optimizer: torch.optim.Adam, first: int, count: int) -> None:
    """Makes gradient steps whose gradients depend on the step's number alone."""
    for k in range(first, first + count):
        generator = torch.Generator().manual_seed(k)
        for parameter in of.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.param_groups[0]["lr"] = 1e-3 / (k + 1)
        optimizer.step()


def rows(run: Run, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    lines = (run.folder / name).read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def test_a_new_run_has_a_folder_that_says_everything(tmp_path: Path) -> None:
    settings = config(tmp_path, seed=3, name="try", reward=PRESETS["naive"])
    run = Run.create(settings)
    assert re.fullmatch(r"\d{8}T\d{6}Z-try-seed3", run.folder.name)
    assert load_config(run.folder / "config.yaml") == settings
    found = json.loads((run.folder / "versions.json").read_text())
    assert found["packages"]["torch"] == torch.__version__
    assert found["observation_version"] == OBSERVATION_VERSION
    assert found["action_version"] == ACTION_VERSION
    assert found["git"] is None or re.fullmatch(r"[0-9a-f]{40}", found["git"]["commit"])
    assert (run.iteration, run.environment_steps, run.best, run.finished) == (0, 0, {}, False)


def test_runs_of_one_second_do_not_share_a_folder(tmp_path: Path) -> None:
    folders = {Run.create(config(tmp_path)).folder for _ in range(4)}
    assert len(folders) == 4
    assert all(re.search(r"-seed0(-[234])?$", folder.name) for folder in folders)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(ConfigurationError, match=r"cannot be made.*output=FOLDER"):
        Run.create(config(tmp_path))


def test_settings_of_the_other_algorithm_come_back_as_such(tmp_path: Path) -> None:
    settings = config(tmp_path, algorithm=GRPOConfig(learning_rate=3e-05, group_size=5))
    save_config(tmp_path / "config.yaml", settings)
    assert load_config(tmp_path / "config.yaml") == settings


@pytest.mark.parametrize(
    ("line", "by", "message"),
    [
        ("  clip: 0.2", "  clp: 0.2", r"'algorithm.clp'.*Did you mean 'clip'"),
        ("  clip: 0.2\n", "", r"`algorithm.clip` is missing"),
        ("  clip: 0.2", "  clip: wide", r"`algorithm.clip` must be of type float.*'wide'"),
        ("  clip: 0.2", "  clip: -1", r"`algorithm.clip` must be positive"),
        ("  name: ppo", "  name: pppo", r"`algorithm.name`.*Did you mean 'ppo'"),
        ("seed: 0", "seed: true", r"`seed` must be of type int. Received True"),
        ("seed: 0", "seed: [0", r"damaged: not YAML"),
        ("  - docqa", "  - 3", r"`task.sources\[0\]` must be of type str. Received 3"),
    ],
)
def test_damaged_settings_are_named(tmp_path: Path, line: str, by: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    save_config(path, config(tmp_path))
    text = path.read_text()
    assert text.count(line) >= 1
    path.write_text(text.replace(line, by, 1))
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_are_written_at_once_and_have_no_nan(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.log(0, 120, {"episode/return": -0.25, "update/kl": float("nan")})
    assert rows(run) == [
        {"iteration": 0, "environment_steps": 120, "episode/return": -0.25, "update/kl": None}
    ]


def test_a_metric_that_nobody_explained_is_refused(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    with pytest.raises(ConfigurationError, match="Did you mean 'episode/return'"):
        run.log(0, 1, {"episode/retrun": 1.0})
    assert not (run.folder / "metrics.jsonl").exists()


def test_sampled_episodes_have_their_columns(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.log_episodes([EPISODE])
    assert rows(run, "episodes.jsonl") == [EPISODE]
    with pytest.raises(ConfigurationError, match="billed_share"):
        run.log_episodes([{"iteration": 0}])


def test_a_resumed_run_trains_on_bit_for_bit(tmp_path: Path) -> None:
    unbroken = network()
    whole = optimizer(unbroken)
    steps(unbroken, whole, 0, 7)

    run = Run.create(config(tmp_path))
    first = network()
    begun = optimizer(first)
    steps(first, begun, 0, 4)
    run.save(3, 400, first, begun, {"objective": -0.75, "iteration": 2.0})

    resumed = Run.resume(run.folder)
    assert (resumed.iteration, resumed.environment_steps) == (4, 400)
    assert resumed.best == {"objective": -0.75, "iteration": 2.0}
    second = network(seed=9)
    again = optimizer(second)
    resumed.load(second, again)
    assert again.state_dict()["param_groups"] == begun.state_dict()["param_groups"]
    assert again.state_dict()["param_groups"][0]["betas"] == (0.9, 0.999)
    for index, values in begun.state_dict()["state"].items():
        for name, value in values.items():
            restored = again.state_dict()["state"][index][name]
            assert restored.dtype == value.dtype
            assert torch.equal(restored, value)
    steps(second, again, 4, 3)
    for name, weight in unbroken.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name]), name


def test_nothing_is_pickled(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    trained = network()
    adam = optimizer(trained)
    steps(trained, adam, 0, 1)
    run.save(0, 1, trained, adam, {})
    kinds = {path.suffix for path in run.folder.rglob("*") if path.is_file()}
    assert kinds == {".yaml", ".json", ".safetensors", ".md"}


def test_without_an_optimiser_none_is_restored(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.save(0, 1, network(), None, {})
    other = network(seed=1)
    run.load(other, None)
    assert torch.equal(*(next(iter(n.state_dict().values())) for n in (other, network())))
    with pytest.raises(ConfigurationError, match="has no optimiser"):
        run.load(other, optimizer(other))


def test_a_network_of_another_size_is_refused(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.save(0, 1, network(), None, {})
    with pytest.raises(ConfigurationError, match="width=16"):
        run.load(PointerNetwork(replace(SMALL, width=16)), None)


def saved_twice(tmp_path: Path, fail_at: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, bool]:
    """Saves iteration 0, then iteration 1 with a kill at the n-th renaming of a folder."""
    run = Run.create(config(tmp_path))
    run.save(0, 10, network(0), None, {})
    calls = 0
    rename = Path.rename

    def counted(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", counted)
    try:
        run.save(1, 20, network(1), None, {})
    except KeyboardInterrupt:
        return run, True
    finally:
        monkeypatch.setattr(Path, "rename", rename)
    return run, False


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_a_kill_while_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, fail_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, killed = saved_twice(tmp_path, fail_at, monkeypatch)
    assert killed  # the weights' own renaming, the old folder's, the new one's
    resumed = Run.resume(run.folder)
    expected = network(0 if resumed.iteration == 1 else 1).state_dict()
    assert resumed.environment_steps == 10 * resumed.iteration
    assert resumed.iteration == (2 if fail_at == 3 else 1)
    found = load_network(resumed.checkpoint("last")).state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    assert [path.name for path in (run.folder / "checkpoints").iterdir()] == ["last"]


def logged(tmp_path: Path, *, saved_after: int | None) -> Run:
    run = Run.create(config(tmp_path, warm_start=WarmStartConfig(tasks=1)))
    run.log(-1, 0, {"warm_start/loss": 1.0})
    for iteration in range(4):
        run.log_episodes([{**EPISODE, "iteration": iteration}])
        run.log(iteration, iteration + 1, {"episode/return": 0.0})
        if iteration == saved_after:
            run.save(iteration, iteration + 1, network(), None, {})
    return run


def test_resuming_cuts_rows_that_will_be_played_again(tmp_path: Path) -> None:
    run = logged(tmp_path, saved_after=1)
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 4, "environm')
    resumed = Run.resume(run.folder)
    assert resumed.iteration == 2
    assert [row["iteration"] for row in rows(resumed)] == [-1, 0, 1]
    assert [row["iteration"] for row in rows(resumed, "episodes.jsonl")] == [0, 1]
    resumed.log(2, 9, {})
    assert rows(resumed)[-1] == {"iteration": 2, "environment_steps": 9}


@pytest.mark.parametrize(("warmed", "left"), [(True, [-1]), (False, [])])
def test_a_run_without_a_checkpoint_begins_anew(
    tmp_path: Path, warmed: bool, left: list[int]
) -> None:
    run = logged(tmp_path, saved_after=None)
    if warmed:
        run.save_named("warm", network(), "Imitation.")
    resumed = Run.resume(run.folder)
    assert resumed.iteration == 0
    assert [row["iteration"] for row in rows(resumed)] == left


def test_a_broken_row_in_the_middle_is_named(tmp_path: Path) -> None:
    run = logged(tmp_path, saved_after=1)
    path = run.folder / "metrics.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{oops", *lines[2:]]) + "\n")
    with pytest.raises(ConfigurationError, match=r"metrics.jsonl, line 2"):
        Run.resume(run.folder)


def cut(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "checkpoints" / "last" / name
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut("trainer.json"), "trainer.json is missing or damaged"),
        (cut("optimizer.safetensors"), "optimizer.safetensors is missing or damaged"),
        (cut("model.safetensors"), "model.safetensors"),
        (lambda folder: (folder / "config.yaml").unlink(), "config.yaml is missing"),
    ],
)
def test_a_damaged_run_is_refused(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    run = Run.create(config(tmp_path))
    trained = network()
    adam = optimizer(trained)
    steps(trained, adam, 0, 1)
    run.save(0, 1, trained, adam, {})
    damage(run.folder)
    with pytest.raises(ConfigurationError, match=message):
        Run.resume(run.folder).load(trained, adam)


def test_another_version_of_the_state_is_refused(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.save(0, 1, network(), None, {})
    path = run.checkpoint("last") / "trainer.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(ConfigurationError, match=r"reads version 1\. Received 2"):
        Run.resume(run.folder)


def test_there_is_no_run_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no run to resume.*nowhere"):
        Run.resume(tmp_path / "nowhere")


def test_named_checkpoints_are_whole_policies(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.save_named("best", network(1), "Objective -0.7.")
    run.save_named("best", network(2), "Objective -0.6.")
    found = load_network(run.checkpoint("best")).state_dict()
    assert all(torch.equal(found[k], w) for k, w in network(2).state_dict().items())
    assert "Objective -0.6." in (run.checkpoint("best") / "README.md").read_text()
    with pytest.raises(ConfigurationError, match="Did you mean 'best'"):
        run.save_named("bst", network(), "")


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    run = Run.create(config(tmp_path))
    run.save(0, 7, network(), None, {})
    run.close()
    assert not Run.resume(run.folder).finished
    run.finish()
    run.finish()
    resumed = Run.resume(run.folder)
    assert resumed.finished
    assert json.loads((run.folder / "finished.json").read_text()) == {
        "iterations": 1, "environment_steps": 7,
    }  # fmt: skip
