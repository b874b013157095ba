from __future__ import annotations

import itertools
import os
import subprocess
import sys
from functools import cache

import pytest
from task_checks import check_labels, check_stream

from contextpilot.core.segment import Form, Kind
from contextpilot.edits.stub import outline_stub
from contextpilot.errors import ConfigurationError, UnknownTaskError
from contextpilot.messages import openai
from contextpilot.messages.rendered import RenderedSegment
from contextpilot.messages.validate import problems
from contextpilot.tokenizers.estimate import EstimateTokenizer
from contextpilot_envs.tasks.base import KeyFact, Task
from contextpilot_envs.tasks.synthetic import (
    FAMILIES,
    LANGUAGES,
    SyntheticConfig,
    SyntheticSource,
)
from contextpilot_envs.tasks.synthetic.templates import LOSSY_KINDS, STYLES, family_text

PAIRS = list(itertools.product(FAMILIES, LANGUAGES))
each_pair = pytest.mark.parametrize(("family", "language"), PAIRS)


@cache
def tasks(config: SyntheticConfig, count: int = 20) -> list[Task]:
    source = SyntheticSource(config, count)
    return [source.load(task_id) for task_id in source.ids("train")]


def lags(task: Task) -> list[int]:
    return [
        demand.request - task.arrivals[task.facts[fact].segments[0]]
        for demand in task.demands
        for fact in demand.facts
    ]


def homes(task: Task, fact: KeyFact) -> list[int]:
    """Where a fact stands, but for the turns that quote it."""
    return [place for place in fact.segments if task.segments[place].kind != Kind.TURN]


@each_pair
@pytest.mark.parametrize("horizon", [8, 20, 61])
def test_tasks_are_well_formed(family: str, language: str, horizon: int) -> None:
    for task in tasks(SyntheticConfig(family, language, horizon)):
        assert task.requests == horizon
        check_stream(task)
        check_labels(task)


@each_pair
def test_every_request_is_one_that_providers_take(family: str, language: str) -> None:
    (task,) = tasks(SyntheticConfig(family, language, 20), 1)
    for request in range(task.requests):
        shown = [
            RenderedSegment(segment, Form.FULL)
            for segment, arrival in zip(task.segments, task.arrivals, strict=True)
            if arrival <= request
        ]
        assert problems("openai", openai.render(shown)) == ()


@each_pair
def test_values_do_not_occur_by_accident(family: str, language: str) -> None:
    for task in tasks(SyntheticConfig(family, language, 40, duplication=0.2)):
        for demand in task.demands:
            for place in demand.facts:
                fact = task.facts[place]
                first, *copies = [task.segments[home].text for home in homes(task, fact)]
                # A copy may have an announcement of the next demand above it.
                assert all(copy.endswith(first) or first.endswith(copy) for copy in copies), fact
                quoting = set(fact.segments) - set(homes(task, fact))
                assert all(task.arrivals[turn] > demand.request for turn in quoting), fact


@each_pair
def test_a_fold_hides_the_facts(family: str, language: str) -> None:
    hidden = []
    for task in tasks(SyntheticConfig(family, language)):
        for fact in task.facts:
            for home in homes(task, fact):
                lines = task.segments[home].text.splitlines()
                outside = lines[:3] + lines[-2:]
                assert not any(fact.value in line for line in outside), fact
                hidden.append(fact.value not in outline_stub(task.segments[home], 100))
    assert sum(hidden) / len(hidden) > 0.95


@each_pair
def test_a_third_of_the_facts_are_of_lossy_kinds(family: str, language: str) -> None:
    kinds = [
        fact.kind for task in tasks(SyntheticConfig(family, language), 60) for fact in task.facts
    ]
    assert 0.24 < sum(kind in LOSSY_KINDS for kind in kinds) / len(kinds) < 0.42
    assert {"number", "name", "code", "identifier", *LOSSY_KINDS} <= set(kinds)


@pytest.mark.parametrize("horizon", [10, 40, 100])
@pytest.mark.parametrize("demands", [1, 4, 5])
def test_demands_do_not_grow_with_the_horizon(horizon: int, demands: int) -> None:
    for task in tasks(SyntheticConfig("tools", "en", horizon, demands), 10):
        assert len(task.demands) == demands
        assert all(demand.final for demand in task.demands)
        requests = [demand.request for demand in task.demands]
        assert requests == sorted(set(requests))
        assert requests[-1] == horizon - 1
        assert requests[0] >= min(round(horizon * 2 / 3), horizon - demands)


def test_facts_come_early_and_are_needed_late() -> None:
    arrived = []
    for family in FAMILIES:
        for task in tasks(SyntheticConfig(family, "en", 40)):
            arrived += [task.arrivals[fact.segments[0]] / task.requests for fact in task.facts]
    assert sum(share < 0.6 for share in arrived) / len(arrived) > 0.65
    assert any(share > 0.8 for share in arrived)


@each_pair
def test_sizes_have_a_heavy_tail(family: str, language: str) -> None:
    count = EstimateTokenizer().count
    loaded = tasks(SyntheticConfig(family, language, 40))
    sizes = [count(segment.text) for task in loaded for segment in task.segments]
    per_request = sum(sizes) / (40 * len(loaded))
    assert 250 < per_request < 520
    assert max(sizes) > 1500


def test_long_lags_are_longer_than_short_ones() -> None:
    short, long = (
        [lag for task in tasks(SyntheticConfig("logs", "en", 50, lag=lag)) for lag in lags(task)]
        for lag in ((0.0, 0.2), (0.5, 0.95))
    )
    # A link comes before what it leads to, so its own lag may be longer than asked for.
    assert sum(lag <= 0.2 * 50 for lag in short) > 0.8 * len(short)
    assert sum(lag >= 0.5 * 50 for lag in long) > 0.9 * len(long)


def test_duplication_repeats_word_for_word() -> None:
    def repeated(share: float) -> float:
        loaded = tasks(SyntheticConfig("docqa", "en", 40, duplication=share))
        texts = [
            [segment.text for segment in task.segments if segment.kind == Kind.DOCUMENT]
            for task in loaded
        ]
        return sum(len(found) - len(set(found)) for found in texts) / sum(map(len, texts))

    assert repeated(0.0) == 0
    assert 0.2 < repeated(0.3) < 0.4


def test_difficulty_adds_links_over_one_hop() -> None:
    def linked(difficulty: float) -> int:
        loaded = tasks(SyntheticConfig("restock", "en", 40, difficulty=difficulty))
        return sum("is listed as SKU-" in fact.value for task in loaded for fact in task.facts)

    assert linked(1.0) > 2 * linked(0.0) > 0


def test_a_link_leads_from_the_goal_to_the_fact() -> None:
    for task in tasks(SyntheticConfig("restock", "en", 40, difficulty=1.0)):
        for demand in task.demands:
            link, *values = [task.facts[fact] for fact in demand.facts]
            if "is listed as SKU-" not in link.value:
                continue
            name, _, alias = link.value.partition(" is listed as ")
            assert name in task.goal
            assert alias not in task.goal
            for fact in values:
                text = task.segments[fact.segments[0]].text
                assert alias in text
                assert homes(task, fact)[0] > homes(task, link)[0]


def test_corrections_and_false_claims_are_stale() -> None:
    stale = [
        task.segments[place].kind
        for task in tasks(SyntheticConfig("chat", "en", 40), 40)
        for fact in task.facts
        for place in fact.stale_segments
    ]
    assert Kind.TURN in stale
    assert {Kind.TEXT, Kind.RESULT, Kind.DOCUMENT} & set(stale)


@pytest.mark.parametrize("family", FAMILIES)
def test_users_announce_what_is_next(family: str) -> None:
    announced = total = 0
    for task in tasks(SyntheticConfig(family, "en", 20)):
        names = [line[2:].split(": ")[0] for line in task.goal.splitlines() if line[:2] == "- "]
        assert len(names) == len(task.demands)
        for demand in task.demands:
            (name,) = [name for name in names if demand.query.startswith(name)]
            said = [
                segment.text
                for segment, arrival in zip(task.segments, task.arrivals, strict=True)
                if arrival == demand.request - 1 and segment.kind == Kind.TEXT
            ]
            announced += any(name in text.partition("\n")[0] for text in said)
            total += 1
    assert 0.3 < announced / total < 0.9


def test_later_calls_use_earlier_results() -> None:
    used = 0
    for task in tasks(SyntheticConfig("tools", "en", 20)):
        for fact in task.facts:
            for place in fact.segments:
                calls = [part for part in task.segments[place].parts if part.type == "call"]
                used += any(fact.value in call.text for call in calls)
    assert used > 20


def test_ids_split_by_parity_and_load_beyond_the_list() -> None:
    source = SyntheticSource(SyntheticConfig("tools", "zh", 20))
    train, validation = source.ids("train"), source.ids("validation")
    assert (train[0], train[-1]) == ("tools/zh/h20/000000", "tools/zh/h20/000398")
    assert (validation[0], validation[-1]) == ("tools/zh/h20/000001", "tools/zh/h20/000399")
    far = source.load("tools/zh/h20/999999")
    assert far.id == "tools/zh/h20/999999"
    assert far.segments != source.load("tools/zh/h20/999997").segments


@pytest.mark.parametrize(
    "task_id",
    ["tools/zh/h10/000001", "tools/en/h20/000001", "tools/zh/h20/1", "tools/zh/h20/00000x"],
)
def test_foreign_ids_are_refused(task_id: str) -> None:
    with pytest.raises(UnknownTaskError, match="does not belong to 'tools/zh/h20'"):
        SyntheticSource(SyntheticConfig("tools", "zh", 20)).load(task_id)


def test_a_task_is_a_function_of_its_id() -> None:
    """Also in another process, where sets and strings hash differently."""
    code = (
        "from contextpilot_envs.tasks.synthetic import *\n"
        "from hashlib import sha256\n"
        "for family in FAMILIES:\n"
        "    source = SyntheticSource(SyntheticConfig(family, 'zh', 12))\n"
        "    print(sha256(repr(source.load(source.ids('train')[7])).encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(set(outputs.pop().split())) == len(FAMILIES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "tool"}, "`family` is unknown. Received 'tool'. Did you mean 'tools'"),
        ({"language": "de"}, "`language` is unknown. Received 'de'. Known: en, zh"),
        ({"horizon": 7}, "`horizon` must be from 8 to 500. Received 7"),
        (
            {"horizon": 9, "demands": 5},
            "must be from 10 to 500. Received 9. .* two requests",
        ),
        ({"horizon": True}, "`horizon` must be .* Received True"),
        ({"demands": 0}, "`demands` must be from 1 to 50. Received 0"),
        ({"distractor_share": 1.1}, "`distractor_share` must be from 0 to 1. Received 1.1"),
        ({"duplication": 0.6}, "`duplication` must be from 0 to 0.5. Received 0.6"),
        ({"difficulty": -0.1}, "`difficulty` must be from 0 to 1"),
        ({"segment_tokens": 10}, "`segment_tokens` must be from 100"),
        ({"lag": (0.9, 0.1)}, "`lag` must be two shares .* Received \\(0.9, 0.1\\)"),
        ({"lag": (0.5,)}, "`lag` must be two shares"),
    ],
)
def test_impossible_settings_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SyntheticConfig(**{"family": "tools", **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": 8, "duplication": 0.5, "distractor_share": 0.0},
        {"horizon": 8, "difficulty": 1.0, "lag": (0.9, 1.0)},
        {"horizon": 10, "demands": 5, "duplication": 0.5},
        {"horizon": 500, "demands": 50},
    ],
)
def test_extreme_settings_still_give_tasks(changes: dict[str, object]) -> None:
    config = SyntheticConfig(**{"family": "chat", **changes})  # type: ignore[arg-type]
    for task in tasks(config, 3):
        check_stream(task)
        check_labels(task)


@pytest.mark.parametrize("number", [0, 500_001])
def test_too_many_tasks_are_refused(number: int) -> None:
    with pytest.raises(ConfigurationError, match=f"`tasks_per_split` .* Received {number}"):
        SyntheticSource(SyntheticConfig("tools"), number)


@each_pair
def test_vocabularies_are_large_and_complete(family: str, language: str) -> None:
    text = family_text(family, language)
    heads = {"docqa": "place", "chat": "given"}.get(family, "stem")
    assert len(set(text.pools[heads])) >= 60
    assert len(set(text.pools["given"])) >= 60
    for pool in text.pools.values():
        assert len(set(pool)) == len(pool)
    for topic in text.topics:
        assert topic.style in STYLES
        kinds = [fact.kind for fact in topic.facts]
        assert sum(kind in LOSSY_KINDS for kind in kinds) == 3
        assert len({fact.attribute for fact in topic.facts}) == len(topic.facts)
