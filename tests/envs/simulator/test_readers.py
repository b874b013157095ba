"""The readers by their formulas, and settings that no episode could run with."""

import pytest
from demand_tasks import LAST, edited, files
from demand_tasks import settings_of as config
from tiny_tasks import episode_at, goal_segment, stream_task

from contextpilot.core.edit import Keep
from contextpilot.errors import ConfigurationError
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.simulator.noise import uniform
from contextpilot_envs.simulator.readers import unread_probability

# ---- readers -----------------------------------------------------------------------------------


def test_the_ideal_reader_overlooks_nothing():
    assert unread_probability("ideal", episode_at(files(), 5).context, 2) == 0.0


def test_the_rot_reader_follows_its_formula():
    context = episode_at(files(), 5).context
    sizes = [context.columns.size[i] for i in range(9)]
    total = sum(sizes)
    for index in (1, 2, 6, 8):
        x = (sum(sizes[:index]) + sizes[index] / 2) / total
        share = 1 - sizes[index] / total
        expected = share * (0.149 + 0.193 * 4 * x * (1 - x) + 0.150 * x)
        assert unread_probability("rot", context, index) == pytest.approx(expected, abs=1e-12)


def test_the_rot_reader_is_worst_in_the_middle_and_perfect_on_one_document():
    context = episode_at(files(), 5).context
    first, middle, last = (unread_probability("rot", context, i) for i in (2, 6, 8))
    assert first < middle > last
    alone = episode_at(stream_task([goal_segment()], [0], 2)).context
    assert unread_probability("rot", alone, 0) == 0.0


def test_what_the_rot_reader_overlooked_can_be_fetched_all_the_same():
    root = edited(Keep(), settings=config(reader="rot"))
    outcomes = [root.fork(noise_seed=seed).send() for seed in range(40)]
    assert 0 < sum(outcome.forced_reloads for outcome in outcomes) < 40
    assert sum(outcome.silent_misses for outcome in outcomes) == 0


def test_the_rot_reader_overlooks_as_often_as_it_should():
    root = edited(Keep(), settings=config(reader="rot", max_reloads=0))
    p = unread_probability("rot", root.context, 2)
    missed = 0
    for seed in range(60):
        outcome = root.fork(noise_seed=seed).send()
        expected = uniform(seed, "stream", LAST, "read:0:0") < p
        assert outcome.silent_misses == expected
        missed += expected
    assert 0 < missed < 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"notice": "god"}, r"unknown `notice` preset\. Received 'god'\. Did you mean 'good'"),
        ({"prices": "free"}, r"unknown `prices` preset"),
        ({"reader": "chat"}, r"unknown `reader` preset"),
        ({"budget_fraction": 0.0}, r"`budget_fraction` must be positive, or None"),
        ({"max_context_tokens": 0}, r"`max_context_tokens` must be positive, or None"),
        ({"max_edits": 0}, r"`max_edits` must be at least 1\. Received 0"),
        ({"summarize_max_tokens": 0}, r"`summarize_max_tokens` must be at least 1"),
        ({"max_reloads": -1}, r"`max_reloads` must not be negative"),
        ({"task_weight": -2.0}, r"`task_weight` must not be negative"),
    ],
)
def test_settings_that_no_episode_could_run_with_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        SimulatorConfig(**settings)
