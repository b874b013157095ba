"""Is a task generator honest? Whether the goal, and only the goal, says what will be needed.

Two classifiers are trained to tell the segments that some demand needs from all others, on the
training split, and tested on the validation split. The blind one sees a segment's words, position,
size and kind; were it good, a policy could do without reading the goal. The aware one also sees how
the segment relates to the goal; were it bad, nobody could know what will be needed.

Beside them stand two more checks on the facts: how many survive a summary, by kind, and whether
folding everything at once and cutting off the oldest at a fixed size lose tasks, as they should.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from contextpilot.core.segment import Kind, Segment
from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.statistics import (
    Interval,
    cluster_counts,
    interval_of,
    mean_interval,
)
from contextpilot.retrieval import text_terms

FloatArray = npt.NDArray[np.float64]
BLIND_LIMIT = 0.65
AWARE_LIMIT = 0.85
_RESAMPLES = 500
_OPENING = 3
"""Lines."""
_RARE = 4
"""A term that at most so many candidates hold links them: a name, an alias, a number."""
_OUTLINE_HEAD, _OUTLINE_TAIL = 3, 2


class LabelledFact(Protocol):
    """A key fact, as far as the checks read it."""

    @property
    def value(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def segments(self) -> tuple[int, ...]: ...  # noqa: D102


class LabelledDemand(Protocol):
    """A demand, as far as the checks read it."""

    @property
    def request(self) -> int: ...  # noqa: D102
    @property
    def facts(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def final(self) -> bool: ...  # noqa: D102


class LabelledTask(Protocol):
    """A task, as far as the checks read it."""

    @property
    def cluster(self) -> str: ...  # noqa: D102
    @property
    def goal(self) -> str: ...  # noqa: D102
    @property
    def segments(self) -> tuple[Segment, ...]: ...  # noqa: D102
    @property
    def arrivals(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def requests(self) -> int: ...  # noqa: D102
    @property
    def facts(self) -> Sequence[LabelledFact]: ...  # noqa: D102
    @property
    def demands(self) -> Sequence[LabelledDemand]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Candidate:
    """One segment that might be needed, as the classifiers see it.

    Attributes:
        cluster: what is resampled together.
        words: counts of its terms.
        metadata: position, age, size and kind.
        relation: how it relates to the goal; only the aware classifier sees it.
        needed: the label.
    """

    cluster: str
    words: Mapping[str, int]
    metadata: tuple[float, ...]
    relation: tuple[float, ...]
    needed: bool


@dataclass(frozen=True, slots=True)
class Separability:
    """How well needed segments are told apart: areas under the ROC curve, with intervals.

    `blind_metadata` is a boosted tree on the metadata alone, which finds shapes that the linear
    classifier cannot.
    """

    blind: Interval
    blind_metadata: Interval
    aware: Interval
    candidates: int
    needed_share: float

    @property
    def passes(self) -> bool:
        """True where both limits hold for the means."""
        blind = max(self.blind.mean, self.blind_metadata.mean)
        return blind <= BLIND_LIMIT and self.aware.mean >= AWARE_LIMIT


def candidates(task: LabelledTask, count_tokens: Callable[[str], int]) -> list[Candidate]:
    """Returns all segments of a task that are neither pinned nor a turn, as candidates."""
    places = [
        place
        for place, segment in enumerate(task.segments)
        if not segment.pinned and segment.kind != Kind.TURN
    ]
    needed = {
        place
        for demand in task.demands
        for fact in demand.facts
        for place in task.facts[fact].segments
        if task.arrivals[place] <= demand.request
    }
    relations = goal_relations(task.goal, [task.segments[place].text for place in places])
    rows = []
    for place, relation in zip(places, relations, strict=True):
        segment, arrival = task.segments[place], task.arrivals[place]
        kinds = tuple(float(segment.kind == kind) for kind in (Kind.TEXT, Kind.RESULT))
        metadata = (
            arrival / task.requests,
            place / len(task.segments),
            float(task.requests - arrival),
            math.log1p(count_tokens(segment.text)),
            *kinds,
        )
        bag = Counter(text_terms(segment.text))
        rows.append(Candidate(task.cluster, bag, metadata, relation, place in needed))
    return rows


def goal_relations(goal: str, texts: Sequence[str]) -> list[tuple[float, ...]]:
    """Returns per segment `(overlap, repeated, best line, opening, rank, one hop)`.

    The overlap is the summed inverse document frequency of the terms that the goal and the segment
    share; the repeated one counts a term the more, the more often the segment has it, as BM25 does;
    the best line is the overlap with one line of the goal; the opening one looks at the segment's
    first lines only, which say what it is about, and the rank is by it. One hop is the
    best opening of another segment that shares rare terms with the opening of this one: an alias
    leads from the one to the other.
    """
    bags = [Counter(text_terms(text)) for text in texts]
    openings = [set(text_terms(_opening(text))) for text in texts]
    frequency = Counter(term for bag in bags for term in bag)
    weight = {term: math.log(len(bags) / count) for term, count in frequency.items()}
    lines = [set(text_terms(line)) for line in goal.splitlines()]
    asked = {term for line in lines for term in line}

    def total(found: Iterable[str]) -> float:
        return sum(weight[term] for term in found)

    overlap = [total(asked & bag.keys()) for bag in bags]
    repeated = [
        sum(weight[term] * bag[term] / (bag[term] + 1) for term in asked & bag.keys())
        for bag in bags
    ]
    best_line = [max((total(line & bag.keys()) for line in lines), default=0.0) for bag in bags]
    opening = [total(asked & start) for start in openings]
    order = np.argsort(np.argsort(opening))
    rows: list[tuple[float, ...]] = []
    for place, start in enumerate(openings):
        rare = {term for term in start if frequency[term] <= _RARE} - asked
        hops = (
            opening[other] * total(rare & bags[other].keys())
            for other in range(len(bags))
            if other != place
        )
        rank = float(order[place]) / max(1, len(bags) - 1)
        hop = math.log1p(max(hops, default=0.0))
        direct = (overlap[place], repeated[place], best_line[place], opening[place])
        rows.append((*direct, rank, hop))
    return rows


def _opening(text: str) -> str:
    """Returns the first lines that are not blank."""
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(islice(lines, _OPENING))


def separability(train: Sequence[Candidate], test: Sequence[Candidate]) -> Separability:
    """Trains the classifiers on `train` and measures them on `test`.

    Raises:
        ConfigurationError: when scikit-learn is missing, or a side has labels of one sort only.
    """
    for name, side in (("train", train), ("test", test)):
        if len({row.needed for row in side}) < 2:
            raise ConfigurationError(
                f"`{name}` must hold needed and other segments. Received {len(side)} candidates "
                "with one label. Give more tasks."
            )
    blind, blind_metadata, aware = _scores(train, test)
    labels = np.array([row.needed for row in test])
    clusters = [row.cluster for row in test]
    return Separability(
        auc_interval(labels, blind, clusters),
        auc_interval(labels, blind_metadata, clusters),
        auc_interval(labels, aware, clusters),
        len(test),
        float(labels.mean()),
    )


def _scores(
    train: Sequence[Candidate], test: Sequence[Candidate]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns the test scores of the blind, the blind metadata and the aware classifier."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise ConfigurationError(
            "The generator check needs scikit-learn, which is not installed. "
            'Install the extra: pip install "contextpilot-rl[tune]".'
        ) from error
    labels = [row.needed for row in train]
    metadata = _scaled(StandardScaler(), [[row.metadata for row in side] for side in (train, test)])
    relation = _scaled(StandardScaler(), [[row.relation for row in side] for side in (train, test)])

    vectorizer = DictVectorizer()
    linear = LogisticRegression(C=0.1, max_iter=300)
    linear.fit(vectorizer.fit_transform(_word_features(train, metadata[0])), labels)
    words = vectorizer.transform(_word_features(test, metadata[1]))
    trees = HistGradientBoostingClassifier(max_leaf_nodes=8, max_iter=60, random_state=0)
    by_metadata = trees.fit(metadata[0], labels).decision_function(metadata[1])
    both = [np.hstack(sides) for sides in zip(metadata, relation, strict=True)]
    by_goal = trees.fit(both[0], labels).decision_function(both[1])
    return linear.decision_function(words), by_metadata, by_goal


def _scaled(scaler: Any, sides: Sequence[Sequence[Sequence[float]]]) -> list[FloatArray]:
    """Returns both sides in units of the first side's spread."""
    return [scaler.fit_transform(np.array(sides[0])), scaler.transform(np.array(sides[1]))]


def _word_features(rows: Sequence[Candidate], metadata: FloatArray) -> list[dict[str, float]]:
    """Returns a bag of words for each candidate, with its metadata beside the words."""
    features = []
    for row, numbers in zip(rows, metadata, strict=True):
        bag = {term: math.log1p(count) for term, count in row.words.items()}
        bag |= {f"metadata {place}": number for place, number in enumerate(numbers.tolist())}
        features.append(bag)
    return features


def auc_interval(
    labels: npt.NDArray[np.bool_], scores: FloatArray, clusters: Sequence[str]
) -> Interval:
    """Returns the area under the ROC curve with its clustered bootstrap interval."""
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    draws = [
        auc(labels, scores, counts[codes]) for counts in cluster_counts(names.size, _RESAMPLES, 0)
    ]
    return interval_of(auc(labels, scores), np.array(draws), names.size)


def auc(
    labels: npt.NDArray[np.bool_], scores: FloatArray, weights: FloatArray | None = None
) -> float:
    """Returns the chance that a needed segment outscores another one; ties count half.

    NaN where a weighted side is empty.
    """
    weights = np.ones(scores.size) if weights is None else weights
    _, groups = np.unique(scores, return_inverse=True)
    positive = np.bincount(groups, weights * labels)
    negative = np.bincount(groups, weights * ~labels)
    below = np.cumsum(negative) - negative / 2
    total = positive.sum() * negative.sum()
    return float((positive @ below) / total) if total else float("nan")


def survival(
    tasks: Sequence[LabelledTask], summarize: Callable[[Segment, str], str]
) -> dict[str, Interval]:
    """Returns by kind, and for "all", the share of demanded facts that a summary still states.

    Each fact is looked for in the summary of the first segment that states it. `summarize` takes
    the segment and the goal.
    """
    kept: dict[str, list[float]] = defaultdict(list)
    clusters: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        for fact in task.facts:
            found = float(fact.value in summarize(task.segments[fact.segments[0]], task.goal))
            for kind in (fact.kind, "all"):
                kept[kind].append(found)
                clusters[kind].append(task.cluster)
    return {kind: mean_interval(kept[kind], clusters[kind]) for kind in sorted(kept)}


def folded_success(tasks: Sequence[LabelledTask]) -> Interval:
    """Returns the share of tasks solved when all is folded once read, and nothing is fetched.

    A fold leaves the first and the last lines of a segment.
    """

    def readable(task: LabelledTask, fact: LabelledFact, place: int, request: int) -> bool:
        lines = task.segments[place].text.splitlines()
        outline = "\n".join(lines[:_OUTLINE_HEAD] + lines[-_OUTLINE_TAIL:])
        unread = task.arrivals[place] == request
        return unread or task.segments[place].pinned or fact.value in outline

    return _solved(tasks, readable)


def truncated_success(
    tasks: Sequence[LabelledTask], budget: int, count_tokens: Callable[[str], int]
) -> Interval:
    """Returns the share of tasks solved when only the newest `budget` tokens are kept.

    Pinned segments stay and count; nothing is fetched.
    """
    sizes = {id(task): [count_tokens(segment.text) for segment in task.segments] for task in tasks}

    def readable(task: LabelledTask, _: LabelledFact, place: int, request: int) -> bool:
        room, size = budget, sizes[id(task)]
        room -= sum(size[i] for i, segment in enumerate(task.segments) if segment.pinned)
        for other in range(len(size) - 1, place - 1, -1):
            if task.arrivals[other] <= request and not task.segments[other].pinned:
                room -= size[other]
        return room >= 0 or task.segments[place].pinned

    return _solved(tasks, readable)


def _solved(
    tasks: Sequence[LabelledTask],
    readable: Callable[[LabelledTask, LabelledFact, int, int], bool],
) -> Interval:
    """Returns the share of tasks whose every final fact is readable when it is asked for."""
    solved = []
    for task in tasks:
        asked = [
            (task.facts[fact], demand.request)
            for demand in task.demands
            if demand.final
            for fact in demand.facts
        ]
        solved.append(
            all(
                any(
                    readable(task, fact, place, request)
                    for place in fact.segments
                    if task.arrivals[place] <= request
                )
                for fact, request in asked
            )
        )
    return mean_interval(np.array(solved, dtype=float), [task.cluster for task in tasks])
