"""Rollouts on a counting environment: what is recorded, and what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from contextpilot.errors import ConfigurationError
from contextpilot.training.rollout import Assignment, Decisions, collect


class Counting:
    """Row b's k-th episode lasts `lengths[b][k]` steps; observation: (row, episode, step)."""

    def __init__(self, lengths: list[list[int]], mode: AutoresetMode, *, truncates: bool = False):
        self.lengths, self.truncates = lengths, truncates
        self.num_envs = len(lengths)
        self.metadata: dict[str, Any] = {"autoreset_mode": mode}
        self.disabled = mode == AutoresetMode.DISABLED
        self.episode, self.step_of = [0] * self.num_envs, [0] * self.num_envs
        self.ended = [False] * self.num_envs
        self.begun: list[tuple[int, str, int]] = []
        self.idle_steps = 0

    def reset(self, *, seed=None, options=None):
        if options is None:
            self.episode, self.step_of = [0] * self.num_envs, [0] * self.num_envs
        else:
            for row in np.nonzero(options["reset_mask"])[0].tolist():
                self.episode[row] = sum(1 for begun in self.begun if begun[0] == row)
                self.begun.append((row, options["task_id"][row], options["noise_seed"][row]))
                self.step_of[row], self.ended[row] = 0, False
        return self._observations(), {"request": np.array(self.step_of) // 2}

    def step(self, actions):
        rewards, ended = np.zeros(self.num_envs), np.zeros(self.num_envs, bool)
        metrics = np.full(self.num_envs, None, dtype=object)
        for row in range(self.num_envs):
            if self.ended[row]:
                self.idle_steps += 1
                if not self.disabled:
                    self.episode[row] += 1
                    self.step_of[row], self.ended[row] = 0, False
                continue
            self.step_of[row] += 1
            rewards[row] = 100 * row + 10 * self.episode[row] + self.step_of[row]
            if self.step_of[row] == self.lengths[row][self.episode[row] % len(self.lengths[row])]:
                ended[row] = self.ended[row] = True
                metrics[row] = {"length": self.step_of[row]}
        none = np.zeros(self.num_envs, bool)
        terminated, truncated = (none, ended) if self.truncates else (ended, none)
        infos = {"request": np.array(self.step_of) // 2, "episode_metrics": metrics}
        return self._observations(), rewards, terminated, truncated, infos

    def _observations(self):
        rows = zip(range(self.num_envs), self.episode, self.step_of, strict=True)
        return {"where": np.array(list(rows), np.float32)}


class Echo:
    """Acts with what it saw; values a state by its step number."""

    def __init__(self):
        self.begun: list[tuple[int, Assignment]] = []

    def begin(self, row, assignment):
        self.begun.append((row, assignment))

    def act(self, observations, rows):
        where = observations["where"]
        assert where[:, 0].tolist() == list(rows)
        steps = where[:, 2]
        return Decisions(steps.astype(np.int64), steps, steps)

    def value(self, observations):
        return 1000 + observations["where"][:, 2]


def test_the_step_that_only_resets_is_never_recorded():
    env = Counting([[2, 3], [4, 1]], AutoresetMode.NEXT_STEP)
    played = collect(env, Echo(), [Assignment()] * 4, keep=["where"])
    where = played.observations["where"].tolist()
    assert len(played) == 2 + 4 + 3 + 1
    # Episodes in the order begun: row 0's, row 1's, then row 0 (whose first ended first), row 1.
    assert [w[:2] for w in where] == [[0, 0]] * 2 + [[1, 0]] * 4 + [[0, 1]] * 3 + [[1, 1]]
    assert [w[2] for w in where] == [0, 1, 0, 1, 2, 3, 0, 1, 2, 0]
    assert played.rewards.tolist() == [1, 2, 101, 102, 103, 104, 11, 12, 13, 111]
    assert played.starts.tolist() == [0, 2, 6, 9, 10]
    assert [m["length"] for m in played.metrics] == [2, 4, 3, 1]


def test_no_more_episodes_than_planned_are_recorded():
    env = Counting([[2], [5]], AutoresetMode.NEXT_STEP)
    played = collect(env, Echo(), [Assignment()] * 2, keep=[])
    assert played.starts.tolist() == [0, 2, 7]


def test_a_plan_decides_what_each_row_plays_and_idle_rows_are_left_alone():
    env = Counting([[2, 2, 2], [7]], AutoresetMode.DISABLED)
    plan = [Assignment("a", 1), Assignment("b", 2), Assignment("c", 3)]
    actor = Echo()
    played = collect(env, actor, plan, keep=["where"])
    assert env.begun == [(0, "a", 1), (1, "b", 2), (0, "c", 3)]
    assert [a.task_id for _, a in actor.begun] == ["a", "b", "c"]
    assert played.starts.tolist() == [0, 2, 9, 11]
    assert played.assignments == tuple(plan)
    assert env.idle_steps == 7 - 4  # row 0 has nothing further to do while row 1 goes on


def test_a_plan_shorter_than_the_environment_begins_every_row_and_records_its_own():
    env = Counting([[2], [3], [4]], AutoresetMode.DISABLED)
    played = collect(env, Echo(), [Assignment("a", 1)], keep=["where"])
    assert [task for _, task, _ in env.begun] == ["a", "a", "a"]
    assert played.starts.tolist() == [0, 2]
    assert played.observations["where"][:, 0].tolist() == [0, 0]


def test_what_a_time_limit_cut_off_is_valued_at_its_last_observation():
    cut = collect(
        Counting([[2], [3]], AutoresetMode.NEXT_STEP, truncates=True),
        Echo(), [Assignment()] * 2, keep=[],
    )  # fmt: skip
    ended = collect(
        Counting([[2], [3]], AutoresetMode.NEXT_STEP), Echo(), [Assignment()] * 2, keep=[]
    )
    assert cut.final_values.tolist() == [1002.0, 1003.0]
    assert ended.final_values.tolist() == [0.0, 0.0]
    assert cut.returns.tolist() == [1 + 2 + 1002, 101 + 102 + 103 + 1003]


def test_requests_come_from_the_environment():
    env = Counting([[5]], AutoresetMode.NEXT_STEP)
    played = collect(env, Echo(), [Assignment()], keep=[])
    assert played.requests.tolist() == [0, 0, 1, 1, 2]
    assert played.ends_request.tolist() == [False, True, False, True, True]


def test_other_autoreset_modes_are_refused():
    env = Counting([[1]], AutoresetMode.SAME_STEP)
    with pytest.raises(ConfigurationError, match="NEXT_STEP"):
        collect(env, Echo(), [Assignment()], keep=[])
