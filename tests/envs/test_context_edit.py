"""The single environment: Gymnasium's contract, and what its docstring promises."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from strategies import examples, seeds
from tiny_tasks import (
    FixedSource,
    chain_task,
    document_segment,
    goal_segment,
    mixed_task,
    stream_task,
    words,
)

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError, UnknownTaskError
from contextpilot.rewards.weights import RewardWeights
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig

INVALID = RewardWeights().invalid


def make(*tasks, slots=32, archived=4, render_mode=None, **settings) -> ContextEditEnv:
    return ContextEditEnv(
        FixedSource(*tasks), simulator=SimulatorConfig(**{"budget_fraction": None, **settings}),
        context_slots=slots, archive_slots=archived, render_mode=render_mode,
    )  # fmt: skip


def same(left: dict, right: dict) -> bool:
    return all(np.array_equal(left[name], right[name]) for name in left)


def legal(rng: np.random.Generator, mask: np.ndarray, keep_share: float = 0.15) -> int:
    return 0 if rng.random() < keep_share else int(rng.choice(np.flatnonzero(mask)))


def step_with(env: ContextEditEnv, op: Op, preset: str, slot: int):
    return env.step(env.engine.codec.encode(op, preset, slot))


def test_gymnasium_s_checker_finds_nothing():
    env = gym.make("contextpilot_envs:ContextPilot/ContextEdit-v0", context_slots=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_observations_lie_in_their_space():
    env = make(mixed_task(3, 8), budget_fraction=0.6)
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=1)
    ended = False
    while not ended:
        assert env.observation_space.contains(observation)
        observation, reward, ended, truncated, info = env.step(legal(rng, info["action_mask"]))
        assert type(reward) is float
        assert not truncated
    assert env.observation_space.contains(observation)


def test_the_three_masks_are_one():
    env = make(mixed_task(1, 8), budget_fraction=0.7)
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=4)
    for _ in range(80):
        masks = env.action_masks()
        assert masks.dtype == np.bool_
        assert info["action_mask"].dtype == np.int8
        assert np.array_equal(masks, info["action_mask"])
        assert np.array_equal(masks, observation["action_mask"])
        assert masks[0]
        observation, _, ended, _, info = env.step(legal(rng, masks))
        if ended:
            observation, info = env.reset()


def trajectory(env: ContextEditEnv, seed: int) -> list:
    rng = np.random.default_rng(5)
    seen = [env.reset(seed=seed)]
    for _ in range(60):
        seen.append(env.step(legal(rng, seen[-1][-1]["action_mask"])))
        if seen[-1][2]:
            seen.append(env.reset())
    return seen


def test_the_same_seed_gives_the_same_trajectory():
    tasks = [mixed_task(n, 7) for n in range(4)]
    first, again = (trajectory(make(*tasks, budget_fraction=0.6), 9) for _ in range(2))
    for left, right in zip(first, again, strict=True):
        assert same(left[0], right[0])
        assert left[1:-1] == right[1:-1]
        assert left[-1]["task_id"] == right[-1]["task_id"]
    other = trajectory(make(*tasks, budget_fraction=0.6), 10)
    assert any(not same(a[0], b[0]) for a, b in zip(first, other, strict=False))


def test_a_second_episode_is_not_disturbed_by_the_first():
    tasks = [mixed_task(n, 7) for n in range(2)]
    env, fresh = make(*tasks), make(*tasks)
    trajectory(env, 3)
    options = {"task_id": "mixed/1", "noise_seed": 7}
    assert same(env.reset(options=options)[0], fresh.reset(options=options)[0])
    rng = np.random.default_rng(0)
    mask = fresh.action_masks()
    for _ in range(40):
        action = legal(rng, mask)
        (left, r1, ended, *_), (right, r2, *_) = env.step(action), fresh.step(action)
        assert same(left, right)
        assert r1 == r2
        if ended:
            break
        mask = fresh.action_masks()


def test_a_masked_action_changes_nothing_and_is_priced_and_counted():
    env = make(chain_task(6))
    env.reset(seed=0)
    before = env.snapshot().episode.context
    forbidden = np.flatnonzero(~env.action_masks())
    _, reward, ended, _, info = env.step(int(forbidden[0]))
    assert reward == -INVALID
    assert info["invalid_actions"] == 1
    assert env.snapshot().episode.context == before
    assert not ended
    assert len(env.engine.episodes[0].log) == 0
    assert info["request"] == 0
    _, reward, *_, info = env.step(int(forbidden[-1]))
    assert (reward, info["invalid_actions"]) == (-INVALID, 2)


def test_an_action_outside_the_space_is_an_error():
    env = make(chain_task(6))
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="Received 100000"):
        env.step(100_000)
    with pytest.raises(ConfigurationError, match="Received -1"):
        env.step(-1)


@given(seeds)
@examples(12)
def test_rewards_sum_to_the_objective_plus_one(seed):
    rng = np.random.default_rng(seed)
    env = make(
        mixed_task(seed % 50, 7), budget_fraction=(None, 0.5, 0.8)[seed % 3],
        notice=("poor", "good", "perfect")[seed % 3], max_edits=(16, 3)[seed % 2],
    )  # fmt: skip
    _, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, _, info = env.step(legal(rng, info["action_mask"]))
        total += reward
    metrics = info["episode_metrics"]
    assert total == pytest.approx(metrics["objective"] + 1, abs=1e-9)
    cost = metrics["billed_tokens"] + 5 * metrics["miss_cost_tokens"]
    expected = -cost / metrics["raw_billed_tokens"] - 2 * metrics["failed"]
    assert metrics["objective"] == pytest.approx(expected, abs=1e-9)


def test_doing_nothing_earns_nothing():
    env = make(chain_task(6))
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(6)]
    assert rewards == pytest.approx([0.0] * 6)
    episode = env.engine.episodes[0]
    assert episode.tally.bill == pytest.approx(episode.prepared.raw.total)
    assert episode.succeeded


def test_the_kth_edit_sends_the_request():
    env = make(chain_task(12), max_edits=3)
    env.reset(seed=0)
    for _ in range(6):
        env.step(0)
    for slot in (2, 4):
        _, reward, _, _, info = step_with(env, Op.FOLD, "stub", slot)
        assert (reward, info["request"], "bill" in info) == (0.0, 6, False)
    _, reward, _, _, info = step_with(env, Op.FOLD, "stub", 6)
    assert info["request"] == 7
    assert info["bill"] > 0
    raw = env.engine.episodes[0].prepared.raw
    assert reward == pytest.approx((raw.requests[6] - info["bill"]) / raw.total)


def test_a_masked_kth_step_sends_as_well():
    env = make(chain_task(12), max_edits=1)
    env.reset(seed=0)
    _, reward, _, _, info = step_with(env, Op.FOLD, "stub", 0)
    assert (info["request"], info["invalid_actions"]) == (1, 1)
    raw = env.engine.episodes[0].prepared.raw
    assert info["bill"] == pytest.approx(raw.requests[0])
    assert reward == pytest.approx(-INVALID)


def test_a_refused_request_ends_the_episode_and_fails_the_task():
    segments = [goal_segment(), document_segment("d0", words(400)), document_segment("d1", "x")]
    env = make(stream_task(segments, [0, 1, 2], 5), max_context_tokens=500)
    env.reset(seed=0)
    first = env.step(0)[1]
    _, reward, terminated, truncated, info = env.step(0)
    assert (terminated, truncated) == (True, False)
    metrics = info["episode_metrics"]
    assert (metrics["overflows"], metrics["failed"], metrics["task_success"]) == (1, True, 0.0)
    assert (first, reward) == pytest.approx((0.0, -2.0))  # the rest is billed as raw's
    assert metrics["billed_tokens"] == pytest.approx(metrics["raw_billed_tokens"])
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_a_task_and_its_noise_can_be_chosen():
    env = make(*(chain_task(4, task_id=f"c{n}") for n in range(5)))
    _, info = env.reset(seed=0, options={"task_id": "c3", "noise_seed": 11})
    assert info["task_id"] == "c3"
    assert env.engine.episodes[0].noise_seed == 11


def test_an_unknown_task_and_an_empty_split_are_named():
    env = gym.make("contextpilot_envs:ContextPilot/ContextEdit-v0", context_slots=8).unwrapped
    with pytest.raises(UnknownTaskError, match="nowhere/1"):
        env.reset(options={"task_id": "nowhere/1"})
    with pytest.raises(ConfigurationError, match="no tasks in its split 'train'"):
        make().reset(seed=0)


def test_the_desk_is_drawn_as_text():
    env = make(chain_task(6), render_mode="ansi")
    env.reset(seed=0)
    for _ in range(4):
        env.step(0)
    step_with(env, Op.FOLD, "stub", 2)
    step_with(env, Op.DROP, "this", 4)
    step_with(env, Op.EXPIRE, "8", 6)
    desk = env.render()
    assert isinstance(desk, str)
    lines = desk.splitlines()
    assert lines[0].startswith("chain  request 5/6")
    assert any(line.split()[:3] == ["r0", "result", "stub"] for line in lines)
    assert any(line.split()[:3] == ["r2", "result", "full"] and " m " in line for line in lines)
    assert "archived: t1 r1" in lines
    assert "drop r1" in desk
    assert make(chain_task(6)).render() is None


def test_the_registered_environment_is_the_default():
    env = gym.make("contextpilot_envs:ContextPilot/ContextEdit-v0")
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.action_space.n == len(info["action_mask"]) == 1 + 14 * 128 + 2 * 32
    assert env.spec.id == "ContextPilot/ContextEdit-v0"
