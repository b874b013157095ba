from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.core.segment import Kind, Role, Segment, Source, Trust, text_segment
from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.generator_check import (
    Candidate,
    auc,
    auc_interval,
    candidates,
    folded_success,
    goal_relations,
    separability,
    survival,
    truncated_success,
)
from contextpilot_envs.tasks.base import Demand, KeyFact, Task
from contextpilot_envs.tasks.synthetic import SyntheticConfig, SyntheticSource


def words(text: str) -> int:
    return len(text.split())


def text(number: int, text: str, kind: Kind = Kind.DOCUMENT) -> Segment:
    pinned = kind == Kind.TEXT
    return text_segment(
        f"s{number}", Role.USER, kind, text, source=Source.USER, trust=Trust.USER, pinned=pinned
    )


def small_task(*texts: str, values: tuple[str, ...] = ("needle",)) -> Task:
    """A pinned goal at request 0, then one document a request; values are demanded at request 3."""
    documents = [text(number, words) for number, words in enumerate(texts, 2)]
    segments = (text(1, "find it", Kind.TEXT), *documents)
    facts = tuple(
        KeyFact(value, "name", tuple(n for n, seg in enumerate(segments) if value in seg.text))
        for value in values
    )
    return Task(
        id="t",
        source="small",
        cluster="c",
        goal="find it",
        segments=segments,
        arrivals=tuple(range(len(segments))),
        requests=len(segments),
        output_tokens=(1,) * len(segments),
        facts=facts,
        demands=(Demand(3, tuple(range(len(values))), final=True),),
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30))
def test_auc_is_the_share_of_ordered_pairs(rows: list[tuple[bool, int]]) -> None:
    labels = np.array([label for label, _ in rows])
    scores = np.array([float(score) for _, score in rows])
    pairs = [
        (high > low) + 0.5 * (high == low) for high in scores[labels] for low in scores[~labels]
    ]
    if not pairs:
        assert np.isnan(auc(labels, scores))
    else:
        assert auc(labels, scores) == pytest.approx(np.mean(pairs))


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.integers(0, 3)), min_size=2))
def test_auc_weights_are_repetitions(rows: list[tuple[bool, int, int]]) -> None:
    labels, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    repeated = auc(np.repeat(labels, weights), np.repeat(scores.astype(float), weights))
    weighted = auc(labels, scores.astype(float), weights.astype(float))
    assert weighted == pytest.approx(repeated, nan_ok=True)


def test_auc_interval_widens_with_fewer_clusters() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(600) < 0.3
    scores = labels + rng.normal(size=600)
    many = auc_interval(labels, scores, [str(n) for n in range(600)])
    few = auc_interval(labels, scores, [str(n % 5) for n in range(600)])
    assert many.mean == few.mean == auc(labels, scores)
    assert many.low < many.mean < many.high
    assert (many.clusters, few.clusters) == (600, 5)


def rigged(sort: str, tasks: int, offset: int = 0) -> list[Candidate]:
    """Candidates that are given away by a word, by their size, by the goal, or by nothing."""
    rng = np.random.default_rng(offset)
    rows = []
    for task, _ in itertools.product(range(tasks), range(10)):
        needed = bool(rng.random() < 0.3)
        noise = [float(value) for value in rng.normal(size=4)]
        word = "secret" if sort == "word" and needed else str(rng.choice(["plain", "grey"]))
        size = 5.0 * needed if sort == "size" else 0.0
        goal = 3.0 * needed if sort == "goal" else 0.0
        rows.append(
            Candidate(f"{offset}-{task}", {word: 1}, (noise[0], noise[1] + size),
                      (noise[2], noise[3] + goal), needed)
        )  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("sort", "blind", "blind_metadata", "aware"),
    [("word", True, False, False), ("size", True, True, True), ("goal", False, False, True)],
)
def test_what_gives_the_need_away_is_found(
    sort: str, blind: bool, blind_metadata: bool, aware: bool
) -> None:
    result = separability(rigged(sort, 80), rigged(sort, 80, 1))
    assert (result.blind.mean > 0.85) == blind
    assert (result.blind_metadata.mean > 0.85) == blind_metadata
    assert (result.aware.mean > 0.85) == aware
    assert result.passes == (sort == "goal")
    assert result.candidates == 800


def test_labels_of_one_sort_are_refused() -> None:
    rows = rigged("goal", 5)
    alike = [replace(row, needed=False) for row in rows]
    with pytest.raises(ConfigurationError, match="`test` must hold needed and other segments"):
        separability(rows, alike)


def test_candidates_are_what_could_be_edited_and_was_needed_in_time() -> None:
    task = small_task("a\nneedle\nb", "hay", "more hay", "needle again")
    rows = candidates(task, words)
    assert [row.needed for row in rows] == [True, False, False, False]
    assert rows[1].words == {"hay": 1}


def test_an_alias_leads_from_the_goal_to_the_document() -> None:
    texts = [
        "Halden bridge\nis filed as prj-4471",
        "prj-4471 report\nthe load is 7",
        "Varna road\nis filed as prj-9000",
        "prj-9000 report\nthe load is 8",
    ]
    relations = goal_relations("tell me about Halden bridge", texts)
    overlap, _, _, opening, _, hop = zip(*relations, strict=True)
    assert overlap[0] == max(overlap) > 0
    assert opening[0] == max(opening)
    assert hop[1] == max(hop) > hop[3]


def test_survival_is_counted_by_kind() -> None:
    task = small_task("first alpha line", "a beta line", values=("alpha", "beta"))
    task = replace(task, facts=(task.facts[0], replace(task.facts[1], kind="clause")))
    kept = survival([task], lambda segment, goal: segment.text.split()[1] if goal else "")
    assert {kind: interval.mean for kind, interval in kept.items()} == {
        "all": 1.0, "clause": 1.0, "name": 1.0,
    }  # fmt: skip
    kept = survival([task], lambda segment, goal: segment.text.replace("beta", ""))
    assert (kept["all"].mean, kept["name"].mean, kept["clause"].mean) == (0.5, 1.0, 0.0)


def test_a_fold_shows_the_ends_of_what_was_read() -> None:
    inside = "1\n2\n3\nneedle\n5\n6"
    outside = "1\n2\nneedle\n4\n5\n6"
    assert folded_success([small_task(inside, "x", "y")]).mean == 0
    assert folded_success([small_task(outside, "x", "y")]).mean == 1
    assert folded_success([small_task("x", "y", inside)]).mean == 1, "it is not read yet"


def test_truncation_keeps_the_newest() -> None:
    task = small_task("needle one two", "a b c", "d e f")
    kept = [truncated_success([task], budget, words).mean for budget in (10, 11)]
    assert kept == [0, 1], "two words of the goal and nine of the documents"


@pytest.mark.parametrize(("family", "language"), [("tools", "en"), ("docqa", "zh")])
def test_the_generator_is_honest(family: str, language: str) -> None:
    source = SyntheticSource(SyntheticConfig(family, language), 50)
    train, test = (
        [row for id_ in source.ids(split) for row in candidates(source.load(id_), words)]
        for split in ("train", "validation")
    )
    assert separability(train, test).passes
