"""Checkpoints: what is saved is what is loaded, and damage is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pointer_cases import network, random_observation
from safetensors.torch import load_file, save_file

import contextpilot.policies
from contextpilot.edits.codec import ActionCodec
from contextpilot.errors import ConfigurationError
from contextpilot.observations.observation import Observation
from contextpilot.policies.checkpoint import load_network, save_checkpoint, shared_network
from contextpilot.policies.pointer.network import PointerNetwork

TRAINING = {"seed": 3, "sources": ["docqa"], "note": "naïve"}
CARD = "# A pointer policy\n\nIts evaluation: none.\n"


def saved(folder: Path, net: PointerNetwork | None = None) -> Path:
    save_checkpoint(folder, net or network(sharp=100), training=TRAINING, card=CARD)
    return folder


def test_a_loaded_network_answers_bit_by_bit_as_before(tmp_path: Path) -> None:
    net = network(sharp=100, width=32, layers=2, heads=4, context_slots=16, archive_slots=0)
    loaded = load_network(saved(tmp_path / "deep" / "run", net))
    observation = random_observation()
    before, after = net(observation), loaded(observation)
    assert torch.equal(before.distribution.log_probs, after.distribution.log_probs)
    assert torch.equal(before.value, after.value)
    assert loaded.config == net.config
    assert not loaded.training


def test_what_is_in_the_folder(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run")
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "training.json",
    ]  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    assert config["format"] == "contextpilot-pointer"
    assert {"format_version", "observation_version", "action_version"} < config.keys()
    assert json.loads((folder / "training.json").read_text()) == TRAINING
    assert (folder / "README.md").read_text() == CARD
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # nothing is left beside it


def test_a_checkpoint_replaces_one(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run")
    (folder / "old.txt").write_text("")
    first = load_network(folder)
    second = network(7)
    saved(folder, second)
    assert torch.equal(load_network(folder).op_head.weight, second.op_head.weight)
    assert not torch.equal(first.op_head.weight, second.op_head.weight)
    assert not (folder / "old.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_save_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    folder, rename, calls = saved(tmp_path / "run"), Path.rename, []

    def fail(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == failing:
            raise OSError("the disk is gone")
        return rename(self, target)

    before = load_network(folder)
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        saved(folder, network(7))
    assert torch.equal(load_network(folder).op_head.weight, before.op_head.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_other_folders_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("two years of work")
    with pytest.raises(ConfigurationError, match=r"holds something else.*Name a new"):
        saved(tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    with pytest.raises(ConfigurationError, match="holds something else"):
        saved(tmp_path / "thesis.tex")
    (tmp_path / "empty").mkdir()
    load_network(saved(tmp_path / "empty"))


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_settings_that_are_not_json_are_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"only what JSON has.*Received keys \['x'\]"):
        save_checkpoint(tmp_path / "run", network(), training={"x": value}, card="")
    assert not list(tmp_path.iterdir())


def change(name: str, **values: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return write


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def reshape(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["op_head.bias"] = torch.zeros(8)
    save_file(weights, folder / "model.safetensors")


def forget(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["op_head.bias"]
    save_file(weights, folder / "model.safetensors")


def halve(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({name: w.half() for name, w in weights.items()}, folder / "model.safetensors")


def network_of(**values: object) -> dict[str, object]:
    return {
        "width": 16, "layers": 1, "heads": 2, "backbone": "none", "context_slots": 32,
        "archive_slots": 8, **values,
    }  # fmt: skip


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json cannot be read .No such"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors cannot be"),
    "not JSON": (lambda f: (f / "config.json").write_text("{"), "is not JSON .*Copy"),
    "not UTF-8": (lambda f: (f / "config.json").write_bytes(b"\xff"), "is not JSON"),
    "a list": (lambda f: (f / "config.json").write_text("[1]"), r"JSON object. Received \[1\]"),
    "another format": (change("config.json", format="x"), "`format` must be .*Received 'x'"),
    "later format": (change("config.json", format_version=2), "`format_version` 1. Received 2"),
    "observations": (change("config.json", observation_version=99), "Received 99. Train"),
    "actions": (change("config.json", action_version=None), "`action_version` 1. Received None"),
    "no network": (change("config.json", network={}), "must have the keys .* Received {}"),
    "size": (change("config.json", network=network_of(width=15)), "config.json: .*15 and 2"),
    "backbone": (change("config.json", network=network_of(backbone="x")), "Received 'x'"),
    "garbage": (lambda f: (f / "model.safetensors").write_bytes(b"junk"), "is damaged"),
    "empty": (lambda f: (f / "model.safetensors").write_bytes(b""), "is damaged"),
    "cut": (cut_weights, "is damaged: .*Copy"),
    "other size": (
        change("config.json", network=network_of(width=32)),
        r"does not fit its config.json: 'archive_in.bias' must be \(\(32,\).*Received \(\(16,\)",
    ),
    "shape": (reshape, r"'op_head.bias' must be \(\(7,\).*Received \(\(8,\)"),
    "missing": (forget, r"'op_head.bias' must be .*Received nothing"),
    "precision": (halve, "torch.float32.*Received .*torch.float16"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named(tmp_path: Path, damage: str) -> None:
    break_it, message = DAMAGE[damage]
    folder = saved(tmp_path / "run", network())
    break_it(folder)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_network(folder)
    assert damage == "backbone" or str(folder) in str(caught.value)


@pytest.mark.parametrize("load", [load_network, shared_network, contextpilot.policies.load])
def test_a_folder_that_does_not_exist(tmp_path: Path, load: Callable[[Path], object]) -> None:
    with pytest.raises(ConfigurationError, match=r"Received '.*nothing'.*Check the path"):
        load(tmp_path / "nothing")


def test_a_process_reads_a_checkpoint_once_until_it_changes(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run")
    first = shared_network(folder)
    assert shared_network(os.path.relpath(folder)) is first
    saved(folder, network(7))
    assert torch.equal(shared_network(folder).op_head.weight, network(7).op_head.weight)


def test_the_door_returns_a_policy_that_decides_greedily(tmp_path: Path) -> None:
    net = network(sharp=100)
    policy = contextpilot.policies.load(saved(tmp_path / "run", net), name="mine")
    observation = random_observation()
    view = Observation({k: a[2].numpy() for k, a in observation.items()}, ActionCodec(8, 3))
    assert policy.name == "mine"
    assert policy(view) == net(observation).distribution.mode()[2].item()
