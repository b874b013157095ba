import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import DATA, needs_data
from replay_checks import RUN, answer, check_exchanges, check_labels, demanded, transcript, turn

from contextpilot.core.segment import Kind
from contextpilot_envs.tasks.augment import augment
from contextpilot_envs.tasks.demands import MAX_FACTS
from contextpilot_envs.tasks.replay import cut, replay_task, replay_tasks, windows
from contextpilot_envs.tasks.sample import sample_transcript
from contextpilot_envs.tasks.transcripts import Usage, read_transcripts

# --- the stream ----------------------------------------------------------------------------------


def test_what_an_agent_says_arrives_at_its_next_request() -> None:
    task = replay_task(RUN)
    assert task.requests == 4
    assert task.arrivals == (0, 0, 1, 1, 2, 2, 2, 3, 3)
    assert [segment.kind.name for segment in task.segments] == [
        "TEXT", "TEXT", "TURN", "RESULT", "TURN", "RESULT", "TEXT", "TURN", "RESULT"
    ]  # fmt: skip
    assert len(task.output_tokens) == 4
    assert min(task.output_tokens) > 0
    assert task.success == "no_silent_miss"
    assert (task.id, task.cluster) == ("transcripts/s#0", "transcripts/s")


def test_runs_below_four_requests_are_no_tasks() -> None:
    short = transcript(*RUN.messages[:-1])
    assert short.requests == 3
    assert replay_tasks(short) == ()
    assert len(replay_tasks(RUN)) == 1


def test_reported_output_counts_unless_the_turn_is_longer() -> None:
    usage = (Usage(output_tokens=5000), Usage(output_tokens=1), None, None)
    task = replay_task(transcript(*RUN.messages, usage=usage))
    plain = replay_task(RUN)
    assert task.output_tokens == (5000, *plain.output_tokens[1:])


# --- demands -------------------------------------------------------------------------------------


def test_values_passed_on_from_results_are_demanded() -> None:
    assert demanded(replay_task(RUN, quotes=False)) == {
        1: {"cust_4410"},
        2: {"card_7731"},
    }


def test_quoted_values_are_demanded_on_request() -> None:
    assert demanded(replay_task(RUN, quotes=True)) == {
        1: {"cust_4410"},
        2: {"card_7731", "ZX-9001-B"},
        3: {"990155"},
    }


def test_a_fact_has_every_segment_that_states_it() -> None:
    task = replay_task(RUN)
    facts = {fact.value: fact for fact in task.facts}
    assert facts["cust_4410"].segments == (3, 4, 5)
    assert facts["card_7731"].segments == (5, 7)
    assert facts["cust_4410"].kind == "identifier"
    assert facts["990155"].kind == "number"


def test_values_that_no_earlier_result_states_are_not_demanded() -> None:
    values = set().union(*demanded(replay_task(RUN)).values())
    assert "778812" not in values  # the pinned first text has it
    assert "EU-WEST-4" not in values  # so has the system prompt
    late = transcript(
        {"role": "user", "content": "guess"},
        *[turn("", {"id": "node_5501"}, "c1"), answer("no", "c1")] * 4,
        turn("", {"id": "all"}, "c9"),
        answer("node_5501", "c9"),
        turn("Stop."),
    )
    assert replay_task(late).demands == ()


def test_what_a_system_prompt_outside_the_stream_says_is_not_demanded() -> None:
    metadata = {"session": "s", "file": "", "system": "Always pay by card_7731."}
    task = replay_task(transcript(*RUN.messages, metadata=metadata))
    assert "card_7731" not in set().union(*demanded(task).values())
    assert task.prefix_tokens > 0


def test_a_fact_inside_another_is_not_demanded_twice() -> None:
    run = transcript(
        {"role": "user", "content": "read it"},
        turn("", {"path": "."}, "c1"),
        answer("src/core/index.py and index.py", "c1"),
        turn("", {"cmd": "cat src/core/index.py"}, "c2"),
        answer("x", "c2"),
        turn("a"),
        turn("b"),
    )
    assert demanded(replay_task(run)) == {1: {"src/core/index.py"}}


def test_at_most_24_facts_a_request_rare_ones_first() -> None:
    common = [f"node_{n:04d}" for n in range(30)]
    rare = ["vault_9931", "vault_9932"]
    run = transcript(
        {"role": "user", "content": "all"},
        turn("", {"q": "*"}, "c1"),
        answer(" ".join(common + rare), "c1"),
        turn("", {"q": "again"}, "c2"),
        answer(" ".join(common), "c2"),
        turn("", {"ids": common + rare}, "c3"),
        answer("ok", "c3"),
        turn("done"),
    )
    (demand,) = replay_task(run, quotes=False).demands
    assert len(demand.facts) == MAX_FACTS
    task = replay_task(run, quotes=False)
    assert set(rare) <= {task.facts[f].value for f in demand.facts}


def test_queries_are_the_agents_words_without_the_values() -> None:
    task = replay_task(RUN)
    queries = {demand.request: demand.query for demand in task.demands}
    assert "contract" in queries[2]
    assert "lookup" in queries[2]
    assert "look" in queries[1]  # this turn says nothing: what it said last


# --- windows -------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.one_of(st.none(), st.integers(4, 90)))
def test_windows_cover_a_run_without_overlap(requests: int, window: int | None) -> None:
    found = windows(requests, window)
    covered = [request for start, stop in found for request in range(start, stop)]
    assert covered == list(range(requests))
    if window is not None and requests >= window:
        assert all(window <= stop - start < 2 * window for start, stop in found)


@settings(max_examples=15)
@given(st.integers(0, 5), st.integers(4, 40))
def test_windows_of_a_session_are_valid_tasks(seed: int, window: int) -> None:
    recorded = sample_transcript(seed)
    whole = replay_task(recorded)
    check_labels(whole)
    tasks = replay_tasks(recorded, window=window)
    assert sum(task.requests for task in tasks) == whole.requests
    assert len({task.id for task in tasks}) == len(tasks)
    for task in tasks:
        check_labels(task)
        check_exchanges(task)
        assert task.segments[0].pinned


def test_cutting_nothing_off_returns_the_task() -> None:
    task = replay_task(RUN)
    assert cut(task, 0, task.requests) is task


# --- made-up sessions ----------------------------------------------------------------------------


def test_samples_are_deterministic_and_differ_by_seed() -> None:
    assert sample_transcript(3) == sample_transcript(3)
    assert sample_transcript(3).messages != sample_transcript(4).messages


@pytest.mark.parametrize("seed", range(4))
def test_samples_look_like_sessions(seed: int) -> None:
    task = replay_task(sample_transcript(seed))
    assert 50 <= task.requests <= 70
    lengths = sorted(len(s.text) for s in task.segments if s.kind == Kind.RESULT)
    assert lengths[len(lengths) // 10] >= 100
    assert 5000 < lengths[-1] < 13_000
    assert len(task.demands) > task.requests / 2
    lags = [d.request - min(task.arrivals[i] for i in task.facts[f].segments)
            for d in task.demands for f in d.facts]  # fmt: skip
    assert max(lags) > 30
    assert sorted(lags)[len(lags) // 2] >= 1


# --- real recordings -----------------------------------------------------------------------------


@needs_data
def test_real_recordings_become_valid_tasks() -> None:
    rng = np.random.default_rng(0)
    for folder in ("claude_code", "agent_sessions", "swe_agent"):
        tasks = [t for r in read_transcripts(DATA / folder).transcripts for t in replay_tasks(r)]
        for task in tasks:
            check_labels(task)
        long = [task for task in tasks if task.requests >= 40]
        for task in long[:3]:
            assert len(task.demands) > task.requests / 4
            variant = augment(task, rng, tasks)
            check_labels(variant)
            check_exchanges(variant)
