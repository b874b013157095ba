"""The training benchmark measures what it says: same sizes, same work, sums that add up."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from contextpilot.errors import ConfigurationError
from contextpilot.policies.pointer.network import PointerNetwork
from contextpilot.training.rollout import Assignment, NetworkActor, collect

pytest.importorskip("sb3_contrib", reason="needs the dev extra")
SCRIPTS = str(Path(__file__).parent.parent / "scripts")


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)


def test_a_quick_run_saves_ratios_and_profiles(tmp_path, monkeypatch):
    import benchmark_training

    monkeypatch.setattr(sys, "argv", ["benchmark_training.py", "--quick"])
    threads = torch.get_num_threads()
    path = tmp_path / "folder" / "speed.json"
    benchmark_training.main(["--quick", "--output", str(path)])
    torch.set_num_threads(threads)
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["command"] == ["benchmark_training.py", "--quick"]
    assert saved["versions"]["opponents"].keys() == {"stable-baselines3", "sb3-contrib"}
    assert len(set(saved["parameters"].values())) == 1  # the same size, not just about
    own, *others = saved["rounds"]
    assert len(others) == 2
    for samples in saved["rounds"].values():
        for s in samples:
            parts = s["environment"] + s["policy"] + s["update"] + s["bookkeeping"]
            assert parts == pytest.approx(s["wall"])
            assert min(s["environment"], s["policy"], s["update"], s["bookkeeping"]) > 0
            assert 0 < s["steps"] <= s["played"]
    # A ratio is the median of the rounds' own ratios, and counts trained steps alone.
    by_hand = sorted(
        (a["steps"] / a["process"]) / (b["steps"] / b["process"])
        for a, b in zip(saved["rounds"][own], saved["rounds"][others[0]], strict=True)
    )
    ratio = saved["ratios"][0]
    assert [ratio["least"], ratio["largest"]] == pytest.approx([by_hand[0], by_hand[-1]])
    assert ratio["ratio"] == pytest.approx(by_hand[len(by_hand) // 2])
    for profile in saved["profiles"].values():
        assert all(seconds > 0 for seconds in profile["groups"].values())
        own_times = [f["own"] for f in profile["by_own"]]
        assert own_times == sorted(own_times, reverse=True)
        assert not any("/work/" in f["name"] or f["name"][0] == "/" for f in profile["by_own"])


def test_dead_steps_do_not_count():
    from benchmark_learners import Own
    from benchmark_training import QUICK

    own = Own(QUICK)
    kept = own.env.played
    sample = own.iterate(nullcontext())
    assert sample.played == own.env.played - kept
    assert sample.episodes == QUICK.episodes
    assert sample.steps < sample.played  # at least each copy's step that begins a second episode


def test_measures_come_whole_out_of_a_sync_vector_env():
    from benchmark_learners import make_env
    from benchmark_training import QUICK

    network = PointerNetwork(QUICK.network)
    actor = NetworkActor(network, torch.Generator().manual_seed(0))
    env = make_env(QUICK, AutoresetMode.NEXT_STEP)
    played = collect(env, actor, [Assignment()] * 4, keep=[], seed=0)
    assert len(played.metrics) == 4
    for metrics in played.metrics:
        # Nested, and not the same operations in each row.
        assert sum(metrics["edits_by_op"].values()) == metrics["edits"] > 0


def test_both_ways_to_compute_the_opponents_network_agree():
    from benchmark_learners import make_env
    from benchmark_opponents import PointerFeatures, SyncVecEnv
    from benchmark_training import QUICK

    env = SyncVecEnv(make_env(QUICK, AutoresetMode.SAME_STEP), seed=0)
    env.reset()
    for _ in range(3):
        observations = env.step(np.zeros(QUICK.copies, np.int64))[0]
    packed, padded = (
        PointerFeatures(env.observation_space, QUICK.network, packed=way) for way in (True, False)
    )
    blocks, layers = packed.network.blocks, padded.encoder.layers
    padded.network.load_state_dict(packed.network.state_dict(), strict=False)
    for block, layer in zip(blocks, layers, strict=True):
        attention = layer.self_attn
        for mine, theirs in (
            (block.attention_norm, layer.norm1), (block.hidden_norm, layer.norm2),
            (block.attention_out, attention.out_proj), (block.hidden_in, layer.linear1),
            (block.hidden_out, layer.linear2),
        ):  # fmt: skip
            theirs.load_state_dict(mine.state_dict())
        with torch.no_grad():
            attention.in_proj_weight.copy_(block.queries_keys_values.weight)
            attention.in_proj_bias.copy_(block.queries_keys_values.bias)
    batch = {name: torch.from_numpy(array).float() for name, array in observations.items()}
    legal = batch["action_mask"] != 0
    with torch.no_grad():
        found, expected = padded(batch), packed(batch)
        ours = packed.network(batch).distribution.log_probs
    actions = legal.shape[1]
    assert torch.allclose(found[:, :actions][legal], expected[:, :actions][legal], atol=1e-5)
    assert torch.allclose(found[:, actions:], expected[:, actions:], atol=1e-5)
    # Within an operation, both point as our own network does.
    compared = 0
    for row in range(len(ours)):
        for op in range(1, 7):
            of_op = legal[row] & (packed.op_of_action == op)
            mine, theirs = ours[row][of_op], expected[row, :actions][of_op]
            assert torch.allclose(mine.log_softmax(0), theirs.log_softmax(0), atol=1e-5)
            compared += len(mine) > 1
    assert compared > 2


def test_without_the_other_library_the_remedy_is_named(monkeypatch):
    from benchmark_training import QUICK, make_learners

    monkeypatch.delitem(sys.modules, "benchmark_opponents", raising=False)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(ConfigurationError, match=r'extra "dev"'):
        make_learners(QUICK)
