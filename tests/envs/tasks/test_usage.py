import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot_envs.tasks.replay import replay_tasks
from contextpilot_envs.tasks.transcripts import Usage, read_transcripts
from contextpilot_envs.tasks.usage import MAX_SCALE, MIN_SCALE, UsageFit, cold_requests, fit_usage

DATA = Path(os.environ.get("CONTEXTPILOT_DATA", "/nonexistent"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="CONTEXTPILOT_DATA is not set")


@given(st.integers(0, 60_000), st.floats(0.6, 2.8), st.integers(0, 99))
def test_a_line_is_recovered_exactly(prefix: int, scale: float, seed: int) -> None:
    estimated = np.cumsum(np.random.default_rng(seed).integers(50, 4000, size=40))
    fit = fit_usage(estimated.tolist(), [round(prefix + scale * x) for x in estimated])
    assert fit.prefix_tokens == pytest.approx(prefix, abs=20)
    assert fit.token_scale == pytest.approx(scale, rel=2e-3)
    assert fit.median_relative_error < 1e-3
    assert fit.requests == 40


def test_a_fifth_of_outliers_does_not_move_the_line() -> None:
    rng = np.random.default_rng(0)
    estimated = np.cumsum(rng.integers(500, 4000, size=60))
    reported = 30_000 + 1.4 * estimated
    reported[::5] *= 0.5
    fit = fit_usage(estimated.tolist(), [round(y) for y in reported])
    assert fit.prefix_tokens == pytest.approx(30_000, rel=0.01)
    assert fit.token_scale == pytest.approx(1.4, rel=0.01)
    assert fit.median_relative_error < 0.001
    assert fit.p90_relative_error == pytest.approx(1.0, rel=0.01)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.one_of(st.none(), st.integers(1, 10**6))),
        max_size=30,
    )
)
def test_any_report_gives_a_fit_within_bounds(pairs: list[tuple[int, int | None]]) -> None:
    fit = fit_usage([x for x, _ in pairs], [y for _, y in pairs])
    assert fit.prefix_tokens >= 0
    assert MIN_SCALE <= fit.token_scale <= MAX_SCALE
    assert fit.requests in (0, sum(y is not None for _, y in pairs))


def test_bounds_hold_where_the_free_line_breaks_them() -> None:
    estimated = list(range(1000, 21_000, 1000))
    below = fit_usage(estimated, [2 * x - 900 for x in estimated])
    assert below.prefix_tokens == 0
    assert 1.8 < below.token_scale <= 2.0
    steep = fit_usage(estimated, [5000 + 4 * x for x in estimated])
    assert steep.token_scale == MAX_SCALE
    assert steep.prefix_tokens > 5000
    flat = fit_usage(estimated, [40_000] * len(estimated))
    assert flat.token_scale == MIN_SCALE


def test_nothing_is_fitted_to_few_reports() -> None:
    assert fit_usage([10, 20, 30, 40], [None, 100, 200, 300]) == UsageFit()
    assert str(UsageFit()) == "no usage reported"
    assert "2.00 x estimate" in str(fit_usage([10, 20, 30, 40], [20, 40, 60, 80]))


def test_a_cache_that_ran_out_is_noticed() -> None:
    usage = [
        Usage(1000, 0, 1), Usage(1200, 990, 1), Usage(1500, 300, 1), None, Usage(1800, 0, 1),
        Usage(1900, 1800, 1), Usage(600, 590, 1), Usage(700, None, 1),
    ]  # fmt: skip
    assert cold_requests(usage) == (2,)


def test_providers_without_a_cache_have_no_cold_requests() -> None:
    assert cold_requests([Usage(1000, 0, 1)] * 5) == ()
    assert cold_requests([None, None]) == ()


@needs_data
def test_claude_code_counts_are_met_within_a_few_percent() -> None:
    folders = (DATA / "claude_code", DATA / "agent_sessions" / "entireio_cli_claude_code")
    tasks = [
        task
        for folder in folders
        for transcript in read_transcripts(folder).transcripts
        if "/subagents/" not in transcript.id
        for task in replay_tasks(transcript)
    ]
    errors = sorted(float(task.metadata["usage_error"]) for task in tasks)
    assert len(errors) >= 17
    assert errors[len(errors) // 2] < 0.01
    assert sum(error < 0.035 for error in errors) >= len(errors) - 1
    prefixes = [task.prefix_tokens for task in tasks]
    assert min(prefixes) > 24_000
    assert max(prefixes) < 66_000
    for task in tasks:
        assert len(task.recorded_input_tokens) == task.requests
