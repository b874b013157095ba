"""What training brought: trained policies over several seeds against their warm start, and rules.

A trained policy is a list of names, one per training seed. Differences are paired by task, noise
and training seed, and resampled by task, so that seeds of one task are never taken for independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.front import cost_at
from contextpilot.evaluation.rows import OPS, EvaluationRow
from contextpilot.evaluation.slices import Measure, billed_share, demand_success
from contextpilot.evaluation.statistics import (
    FloatArray,
    Interval,
    interval_of,
    mean_interval,
    paired_difference,
    resampled_means,
)

Episode = tuple[str, int]
"""Task and noise seed."""


@dataclass(frozen=True)
class Played:
    """The rows of one source and notice preset, by policy and episode."""

    rows: Mapping[str, Mapping[Episode, EvaluationRow]]

    @classmethod
    def of(cls, rows: Sequence[EvaluationRow]) -> Played:
        """Groups rows by policy."""
        found: dict[str, dict[Episode, EvaluationRow]] = defaultdict(dict)
        for row in rows:
            found[row.policy][row.task_id, row.seed] = row
        return cls(found)

    def mean(self, policies: Sequence[str], measure: Measure) -> Interval:
        """Returns the mean over episodes and training seeds."""
        rows = [row for policy in policies for row in self.rows[policy].values()]
        return mean_interval([measure(row) for row in rows], [row.cluster for row in rows])

    def gain(self, treated: Sequence[str], controls: Sequence[str], measure: Measure) -> Interval:
        """Returns how much more the k-th treated policy has than the k-th control, over all k.

        One control may stand for all: then each treated policy is compared with it.

        Raises:
            ConfigurationError: when the two lists do not pair.
        """
        if len(controls) == 1:
            controls = [*controls] * len(treated)
        if len(treated) != len(controls):
            raise ConfigurationError(
                "each treated policy needs its control. "
                f"Received {len(treated)} and {len(controls)} policies."
            )
        a, b, clusters = {}, {}, {}
        for k, (one, other) in enumerate(zip(treated, controls, strict=True)):
            for episode, row in self.rows[one].items():
                a[episode, k], clusters[episode, k] = measure(row), row.cluster
            for episode, row in self.rows[other].items():
                b[episode, k] = measure(row)
        return paired_difference(a, b, clusters)

    def front_ratio(self, policies: Sequence[str], rules: Sequence[str]) -> Interval:
        """Returns the policies' mean bill over that of the rules' front at the same success.

        At most 1: on or above the front. 0 where no rule of the front succeeds as often. The
        front is found anew in each resample.
        """
        episodes = [
            e for e in self.rows[policies[0]]
            if all(e in self.rows[name] for name in (*policies, *rules))
        ]  # fmt: skip
        columns, clusters = [], []
        for e in episodes:
            own = [self.rows[name][e] for name in policies]
            columns.append(
                [
                    number
                    for name in rules
                    for number in (
                        billed_share(self.rows[name][e]), demand_success(self.rows[name][e])
                    )
                ]
                + [
                    float(np.mean([billed_share(row) for row in own])),
                    float(np.mean([demand_success(row) for row in own])),
                ]
            )  # fmt: skip
            clusters.append(own[0].cluster)
        values = np.array(columns)
        draws = resampled_means(values, clusters)
        ratios = np.array([_over_front(draw) for draw in draws])
        return interval_of(_over_front(values.mean(axis=0)), ratios, len(set(clusters)))

    def edits_per_request(self, policies: Sequence[str]) -> dict[str, float]:
        """Returns how often each edit is made."""
        rows = [row for policy in policies for row in self.rows[policy].values()]
        requests = sum(row.requests for row in rows)
        return {
            op: sum(row.edits_by_op.get(op, 0) for row in rows) / requests
            for op in OPS
            if op != "keep"
        }


def _over_front(means: FloatArray) -> float:
    cost, success = float(means[-2]), float(means[-1])
    front = cost_at(means[:-2:2], means[1:-2:2], success)
    return cost / front


def by_slice(rows: Sequence[EvaluationRow]) -> dict[tuple[str, str], Played]:
    """Returns the rows of each (source, notice preset)."""
    found: dict[tuple[str, str], list[EvaluationRow]] = defaultdict(list)
    for row in rows:
        found[row.source, row.notice].append(row)
    return {key: Played.of(group) for key, group in found.items()}
