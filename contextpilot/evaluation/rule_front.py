"""Which settings of the rules a comparison plays again: the front that tuning found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.front import pareto
from contextpilot.evaluation.tuning import GridPoint
from contextpilot.policies.catalog import RULES, PolicySpec

MOST = 12
"""Points of a front that are played again."""


def front_specs(grid: Sequence[GridPoint]) -> list[PolicySpec]:
    """Returns the rules of a training grid that no other one beats, and the best by objective.

    Nothing but training tasks decides what is played: a front of the best settings on the very
    tasks that it is shown for would flatter the rules.

    Args:
        grid: one source's points, played on the same training tasks; those of policies that are no
            rule are left out.

    Returns:
        At most MOST specs by rising bill: the Pareto set of billed share against demand success,
        its two ends and the point of the highest objective always among them. A longer one is
        thinned, next the point that is farthest from all chosen ones (Gonzalez, 1985), with bill
        and success each on the scale of the front's own range.

    Raises:
        ConfigurationError: when the grid has no rule.
    """
    rules = [point for point in grid if point.policy in RULES]
    if not rules:
        raise ConfigurationError(
            "a front needs points of at least one rule. Received "
            f"{sorted({point.policy for point in grid})}. Known rules: {', '.join(RULES)}."
        )
    costs = np.array([point.billed_share for point in rules])
    successes = np.array([point.demand_success for point in rules])
    front = pareto(costs.tolist(), successes.tolist())
    best = max(range(len(rules)), key=lambda k: rules[k].objective)
    places = np.stack([costs, successes], axis=1)
    span = np.ptp(places[list(front)], axis=0)
    places = places / np.where(span > 0, span, 1.0)
    chosen = list(dict.fromkeys([front[0], front[-1], best]))
    rest = [k for k in front if k not in chosen]
    while rest and len(chosen) < MOST:
        gaps = np.linalg.norm(places[rest][:, None] - places[chosen][None], axis=2).min(axis=1)
        chosen.append(rest.pop(int(gaps.argmax())))
    chosen.sort(key=lambda k: (costs[k], successes[k]))
    return [PolicySpec(rules[k].policy, tuple(sorted(rules[k].params.items()))) for k in chosen]
