"""Snapshots: going on from one is going on, here or in another instance; forks disturb nothing."""

import numpy as np
import pytest
from hypothesis import given
from strategies import examples, seeds
from tiny_tasks import FixedSource, chain_task, engine_of, episode_at, mixed_task

from contextpilot.core.edit import Fold, Keep, Op, Summarize
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.stress import check_archive, check_replay

POOR = SimulatorConfig(budget_fraction=None, notice="poor")
CONFIG = SimulatorConfig(budget_fraction=0.7, notice="poor")


def make(*tasks, slots: int = 14) -> ContextEditEnv:
    return ContextEditEnv(
        FixedSource(*tasks), simulator=CONFIG, context_slots=slots, archive_slots=4
    )


def legal(rng: np.random.Generator, env: ContextEditEnv) -> int:
    return 0 if rng.random() < 0.15 else int(rng.choice(np.flatnonzero(env.action_masks())))


def play(env: ContextEditEnv, rng: np.random.Generator, steps: int) -> list:
    seen = []
    for _ in range(steps):
        if env.engine.episodes[0].ended:
            break
        seen.append(env.step(legal(rng, env)))
    return seen


def assert_same(left: list, right: list) -> None:
    assert len(left) == len(right)
    for (o1, r1, e1, _, i1), (o2, r2, e2, _, i2) in zip(left, right, strict=True):
        for name in o1:
            np.testing.assert_array_equal(o1[name], o2[name], err_msg=name)
        assert (r1, e1) == (r2, e2)
        for name in ("action_mask", "reward_terms"):
            np.testing.assert_array_equal(i1.pop(name), i2.pop(name))
        assert i1 == i2


@given(seeds)
@examples(10)
def test_going_on_from_a_snapshot_is_going_on(seed):
    """Few slots, so that some segments have none; the snapshot is taken amid the edits."""
    tasks = [mixed_task(seed % 40, 8), mixed_task(99, 8)]
    env, other = make(*tasks), make(*tasks)
    env.reset(options={"task_id": tasks[0].id, "noise_seed": 3})
    rng = np.random.default_rng(seed)
    before = play(env, rng, int(rng.integers(5, 30)))
    snapshot = env.snapshot()
    onward = play(env, np.random.default_rng(seed), 25)
    last = before[-1]
    for target in (env, other):
        if target is other:  # in the middle of another task
            other.reset(options={"task_id": tasks[1].id})
            play(other, rng, 12)
        play(target, np.random.default_rng(1), 5)
        observation, info = target.restore(snapshot)
        for name in observation:
            np.testing.assert_array_equal(observation[name], last[0][name], err_msg=name)
        assert info["request"] == last[-1]["request"]
        assert_same(play(target, np.random.default_rng(seed), 25), onward)
        onward = onward if target is other else _again(env, snapshot, seed)


def _again(env: ContextEditEnv, snapshot, seed: int) -> list:
    env.restore(snapshot)
    return play(env, np.random.default_rng(seed), 25)


def test_two_branches_with_the_same_ids_do_not_mix():
    """Both branches copy another original to the same new index."""
    env = make(chain_task(9, needed_at=8), slots=32)
    env.reset(options={"task_id": "chain", "noise_seed": 0})
    encode = env.engine.codec.encode
    for _ in range(4):
        env.step(0)
    for slot in (2, 4):
        env.step(encode(Op.FOLD, "stub", slot))
    for _ in range(2):
        env.step(0)
    root, ends = env.snapshot(), []
    for slot in (2, 4):
        env.restore(root)
        env.step(encode(Op.RELOAD, "at_end", slot))
        ends.append((env.step(0)[0], env.snapshot()))
    assert not np.array_equal(ends[0][0]["segment_tokens"], ends[1][0]["segment_tokens"])
    for observation, snapshot in ends:
        restored, _ = env.restore(snapshot)
        for name in observation:
            np.testing.assert_array_equal(restored[name], observation[name], err_msg=name)


@pytest.mark.parametrize("run", [False, True])
def test_summaries_and_the_archive_travel_with_a_snapshot(run):
    episode = episode_at(chain_task(8), 4)
    episode.edit(Summarize((2, 4) if run else (2,), 90, run=run))
    twin = episode_at(chain_task(8), 1)  # another instance, prepared anew
    twin.restore(episode.snapshot())
    shown = [[e.context.text(i) for i in e.context.visible()] for e in (episode, twin)]
    assert shown[0] == shown[1]
    check_archive(twin)
    check_replay(twin)
    output = episode.log[0].output
    archived = [e.services.archive.get("chain", output) for e in (episode, twin)]
    assert archived[0] == archived[1]


def test_forks_do_not_disturb_the_original():
    episode = episode_at(chain_task(8), 5, CONFIG, noise_seed=4)
    before = episode.snapshot()
    for k in range(3):
        fork = episode.fork(noise_seed=k)
        fork.edit(Summarize((2 + 2 * k,), 90, run=True))
        while not fork.ended:
            fork.send()
    after = episode.snapshot()
    assert after.context == before.context
    assert list(after.log) == list(before.log)
    assert (after.tally, after.noise_seed, after.ended) == (before.tally, 4, False)
    episode.edit(Summarize((2, 4), 90, run=True))
    fork = episode.fork()
    fork.edit(Summarize((6,), 90, run=True))
    check_archive(episode)
    check_replay(episode)
    check_replay(fork)


def test_a_fork_ends_as_its_original_does():
    episode = episode_at(chain_task(8), 3, CONFIG, noise_seed=2)
    episode.edit(Fold((2,)))
    fork = episode.fork()
    for one in (episode, fork):
        one.edit(Keep())
        while not one.ended:
            one.send()
    assert episode.tally == fork.tally
    assert episode.objective == fork.objective


def test_another_noise_seed_is_another_future():
    ends = set()
    for seed in range(12):
        episode = episode_at(chain_task(6), 3, POOR)
        episode.edit(Fold((2,)))
        twin = episode.fork(noise_seed=seed)
        while not twin.ended:
            twin.send()
        ends.add(twin.tally.silent_misses)
    assert ends == {0, 1}


def test_a_summarizer_that_was_not_billed_yet_is_billed_after_a_restore():
    engine = engine_of(chain_task(8))
    for _ in range(3):
        engine.step([0], [0])
    engine.step([engine.codec.encode(Op.SUMMARIZE, "this", 2)], [0])
    snapshot = engine.snapshot(0)
    first = engine.step([0], [0])[0]
    engine.restore(0, snapshot)
    engine.observe()
    assert engine.step([0], [0])[0] == first
