"""How rows are grouped and compared: what one table is about, and what is paired with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.statistics import Interval, mean_interval, paired_difference

Measure = Callable[[EvaluationRow], float]
PairKey = tuple[str, int, int]
"""Task, horizon and seed: what two policies of a slice share where they are compared."""


def demand_success(row: EvaluationRow) -> float:
    """Returns the share of demands met without a silent miss."""
    return row.demand_success


def task_success(row: EvaluationRow) -> float:
    """Returns 1 for a task that succeeded, else 0."""
    return float(row.task_success)


def billed_share(row: EvaluationRow) -> float:
    """Returns the bill as a share of raw's, for the same task."""
    return row.billed_tokens / row.raw_billed_tokens


SUCCESS: Mapping[str, Measure] = {"demand_success": demand_success, "task_success": task_success}


@dataclass(frozen=True, slots=True)
class Slice:
    """What one table is about: episodes of one source and split under one notice preset."""

    source: str
    split: str
    notice: str

    @property
    def title(self) -> str:
        """The slice in words, for headings."""
        return f"{self.source}, {self.split}, notice {self.notice}"


@dataclass(frozen=True)
class ReportPlan:
    """What is compared with what, the same in every table, plot and sentence.

    Attributes:
        policies: in the order of the tables; one without rows is shown as dashes.
        reference: the policy that differences and ratios are taken against; one of `policies`.
        matched: policies at whose success the others' bills are compared; without any, the
            reference alone.
        oracle: the policy that reads the labels, where there is one; drawn as such.
        families: family name -> its policies over a grid of settings, whose whole
            cost-against-success front is drawn. They need not be in `policies`.
        success: "demand_success" or "task_success": what fronts and matched success mean by it.
        margin: largest difference in success that does not matter; 0.005 is half a point.
        seed: of the bootstrap.
    """

    policies: tuple[str, ...]
    reference: str
    matched: tuple[str, ...] = ()
    oracle: str = "oracle"
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    success: str = "demand_success"
    margin: float = 0.005
    seed: int = 0

    def __post_init__(self) -> None:
        for name, policy in (
            ("reference", self.reference),
            *(("matched", p) for p in self.matched),
        ):
            if policy not in self.policies:
                raise ConfigurationError(
                    f"`{name}` must name one of the policies. "
                    f"Received {policy!r}.{did_you_mean(policy, self.policies)}"
                )
        if len(set(self.policies)) < len(self.policies):
            raise ConfigurationError(
                f"`policies` names one twice. Received {self.policies}. Leave out the second."
            )
        if self.success not in SUCCESS:
            raise ConfigurationError(
                "`success` names no measure. "
                f"Received {self.success!r}.{did_you_mean(self.success, SUCCESS)}"
            )
        if not self.margin > 0:
            raise ConfigurationError(
                f"`margin` must be above 0. Received {self.margin!r}. Half a point is 0.005."
            )

    @property
    def levels(self) -> tuple[str, ...]:
        """The policies at whose success bills are compared."""
        return self.matched or (self.reference,)


@dataclass(frozen=True)
class Group:
    """The rows of one slice, by policy, with the comparisons that every part of a report makes."""

    slice: Slice
    rows: Mapping[str, tuple[EvaluationRow, ...]] = field(hash=False)

    def of(self, policy: str) -> tuple[EvaluationRow, ...]:
        """Returns the policy's rows; none where it was not evaluated."""
        return self.rows.get(policy, ())

    def interval(self, policy: str, measure: Measure, seed: int = 0) -> Interval | None:
        """Returns the measure's mean over episodes, or None without rows."""
        rows = self.of(policy)
        if not rows:
            return None
        return mean_interval([measure(row) for row in rows], [row.cluster for row in rows], seed)

    def shared(self, policy: str, reference: str) -> tuple[EvaluationRow, ...]:
        """Returns the policy's rows about episodes that the reference was evaluated on too."""
        known = {pair_key(row) for row in self.of(reference)}
        return tuple(row for row in self.of(policy) if pair_key(row) in known)

    def keyed(self, policy: str, measure: Measure) -> dict[PairKey, float]:
        """Returns the measure of each episode by what it can be paired on."""
        return {pair_key(row): measure(row) for row in self.of(policy)}

    def clusters(self, policy: str) -> dict[PairKey, str]:
        """Returns the cluster of each episode by what it can be paired on."""
        return {pair_key(row): row.cluster for row in self.of(policy)}

    def difference(
        self, policy: str, reference: str, measure: Measure, seed: int = 0
    ) -> Interval | None:
        """Returns the paired difference `policy - reference`, or None without a common episode."""
        ours, theirs = self.keyed(policy, measure), self.keyed(reference, measure)
        if not ours.keys() & theirs.keys():
            return None
        return paired_difference(ours, theirs, self.clusters(policy), seed)


def pair_key(row: EvaluationRow) -> PairKey:
    """Returns what an episode is paired on within its slice."""
    return row.task_id, row.horizon, row.seed


def group_rows(rows: Sequence[EvaluationRow]) -> tuple[Group, ...]:
    """Returns one group per slice, in the order in which slices first appear."""
    grouped: dict[Slice, dict[str, list[EvaluationRow]]] = {}
    for row in rows:
        by_policy = grouped.setdefault(Slice(row.source, row.split, row.notice), {})
        by_policy.setdefault(row.policy, []).append(row)
    return tuple(
        Group(key, {policy: tuple(own) for policy, own in by_policy.items()})
        for key, by_policy in grouped.items()
    )
