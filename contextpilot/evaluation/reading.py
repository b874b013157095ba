"""What the tables say, in sentences: what lost, where, and through which edit.

Every sentence is computed from the same intervals as the tables. "Better" and "worse" mean a paired
95% interval clear of 0; "equal" means shown to differ by less than the margin; "same" means one
value in every shared episode, from which no interval follows; "open" is none of these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from contextpilot.evaluation.horizon import HorizonCurve, explain_bend, find_bend, removed_by_edit
from contextpilot.evaluation.render import points
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.sensitivity import MISS_PRICES, best_by_price, price_measure
from contextpilot.evaluation.slices import SUCCESS, Group, Measure, ReportPlan, billed_share
from contextpilot.evaluation.statistics import Interval, equivalence
from contextpilot.evaluation.tables import Table

OBJECTIVE_MARGIN = 0.01
"""Differences in the objective below one percent of the raw bill do not matter."""


def verdict(
    group: Group, policy: str, plan: ReportPlan, measure: Measure, margin: float
) -> str | None:
    """Returns "worse", "better", "equal", "same" or "open", or None without shared episodes.

    A difference that is clear of 0 but shown to be within the margin is "equal": it is there, and
    does not matter.
    """
    ours, theirs = group.keyed(policy, measure), group.keyed(plan.reference, measure)
    shared = ours.keys() & theirs.keys()
    if not shared:
        return None
    if all(ours[key] == theirs[key] for key in shared):
        return "same"
    if equivalence(ours, theirs, group.clusters(policy), margin, plan.seed).equivalent:
        return "equal"
    difference = group.difference(policy, plan.reference, measure, plan.seed)
    if difference is None or not difference.clear_of_zero:
        return "open"
    return "worse" if difference.mean < 0 else "better"


def overview(groups: Sequence[Group], plan: ReportPlan) -> list[list[str]]:
    """Returns a grid of verdicts, "success / objective", policies by slices; headings first."""
    grid = [["policy", *(group.slice.title for group in groups)]]
    for policy in _others(plan):
        line = [policy]
        for group in groups:
            success = verdict(group, policy, plan, SUCCESS[plan.success], plan.margin)
            objective = verdict(group, policy, plan, lambda row: row.objective, OBJECTIVE_MARGIN)
            line.append("–" if success is None else f"{success} / {objective}")
        grid.append(line)
    return grid


def read_coverage(group: Group, plan: ReportPlan) -> list[str]:
    """Returns which policies lack rows, or have rows for other episodes than the reference."""
    total = len(group.of(plan.reference))
    sentences = []
    for policy in plan.policies:
        own, shared = len(group.of(policy)), len(group.shared(policy, plan.reference))
        if not own:
            sentences.append(f"`{policy}` was not evaluated here.")
        elif own != total or shared != total:
            sentences.append(
                f"`{policy}` has rows for {own} episodes, {shared} of them among the {total} of "
                f"`{plan.reference}`: its means are over its own, differences over the shared ones."
            )
    return sentences


def read_task_effect(group: Group, plan: ReportPlan) -> list[str]:
    """Returns which policies lose, equal or gain success and objective against the reference."""
    sentences = []
    for name, measure, margin in (
        (plan.success.replace("_", " "), SUCCESS[plan.success], plan.margin),
        ("objective", lambda row: row.objective, OBJECTIVE_MARGIN),
    ):
        found: dict[str, list[tuple[float, str]]] = {}
        for policy in _others(plan):
            difference = group.difference(policy, plan.reference, measure, plan.seed)
            outcome = verdict(group, policy, plan, measure, margin)
            if difference is None or outcome is None:
                continue
            shown = _amount(difference) if name == "objective" else points(difference)
            found.setdefault(outcome, []).append((difference.mean, f"`{policy}` ({shown})"))
        for outcome, words in (
            ("worse", f"Lower {name} than `{plan.reference}`"),
            ("better", f"Higher {name} than `{plan.reference}`"),
            ("equal", f"Equal {name}, within {_margin(name, margin)}"),
            ("same", f"The same {name} in every episode"),
            ("open", f"Not decided on {name}, neither different nor shown to be equal"),
        ):
            if outcome in found:
                listed = "; ".join(text for _, text in sorted(found[outcome]))
                sentences.append(f"{words}: {listed}.")
    return sentences


def read_efficiency(group: Group, plan: ReportPlan, matched: Table) -> list[str]:
    """Returns who is cheapest at matched success, and who pays more than raw or overflows."""
    sentences = []
    name = plan.success.replace("_", " ")
    for index, level in enumerate(plan.levels):
        aside = (level, plan.oracle)
        ratios = [(row.cells[index], row.policy) for row in matched.rows if row.policy not in aside]
        known = sorted((cell.mean, policy) for cell, policy in ratios if cell is not None)
        sentences.append(
            f"At the {name} of `{level}`, `{known[0][1]}` is the cheapest but for the oracle, at "
            f"{known[0][0]:.3f} of `{level}`'s bill."
            if known
            else f"But for the oracle, nothing else reaches the {name} of `{level}`."
        )
    for policy in plan.policies:
        share = group.interval(policy, billed_share, plan.seed)
        if share is not None and share.low > 1:
            sentences.append(f"`{policy}` is billed more than raw: {100 * share.mean:.1f}% of it.")
        rows = group.of(policy)
        refused = sum(row.overflows > 0 for row in rows)
        if refused:
            sentences.append(
                f"`{policy}` overflowed the budget in {refused} of {len(rows)} episodes."
            )
    every = [row for own in group.rows.values() for row in own]
    fixed = float(np.mean([1 - r.raw_without_prefix_tokens / r.raw_billed_tokens for r in every]))
    sentences.append(f"The fixed prefix, which no edit can save, is {100 * fixed:.1f}% of raw.")
    return sentences


def read_edit_quality(group: Group, plan: ReportPlan) -> list[str]:
    """Returns, policy by policy, how many facts were missed and which edits had removed them."""
    sentences = []
    for policy in plan.policies:
        rows = group.of(policy)
        missed = sum(row.silent_misses for row in rows)
        if missed:
            facts = "1 fact" if missed == 1 else f"{missed} facts"
            sentences.append(
                f"`{policy}` missed {facts} silently in {len(rows)} episodes: {_blame(rows)}"
            )
    return sentences or ["No policy missed a fact silently."]


def _blame(rows: Sequence[EvaluationRow]) -> str:
    facts = [fact for row in rows for fact in row.removed_facts]
    if not facts:
        return "the rows do not say which edit had removed them."
    kinds = Counter(fact.fact_kind for fact in facts).most_common(3)
    seen = Counter(fact.seen for fact in facts).most_common()
    return (
        f"removed by {_counts(removed_by_edit(facts))}; most often of kind {_counts(kinds)}; "
        f"seen in their place: {_counts(seen)}."
    )


def read_horizon(group: Group, plan: ReportPlan, curve: HorizonCurve) -> list[str]:
    """Returns where each policy's curve bends, and through which edits."""
    sentences, straight = [], []
    for policy, _ in curve.curves:
        rows = group.of(policy)
        bend = find_bend(rows, curve.horizons, curve.measure, plan.seed)
        if bend is None:
            straight.append(f"`{policy}`")
            continue
        why = explain_bend(rows, bend)
        text = (
            f"`{policy}` bends between {bend.before} and {bend.after} requests: "
            f"{curve.measure.replace('_', ' ')} falls by {_points(bend.drop)} (at a level "
            f"corrected for {len(curve.horizons) - 1} pairs of horizons)."
        )
        if why.facts:
            (op, kind, seen), count = why.facts[0]
            text += (
                f" In the {why.flipped + why.unmatched} tasks that fail only after it, facts were "
                f"removed by {_counts(why.by_edit())}; the most frequent case, {count} times: "
                f"{op} of a {kind}, with {seen} in its place."
            )
        if not math.isnan(why.lag):
            text += f" The edit came {why.lag:g} requests (median) before the need."
        if why.unmatched:
            text += f" {why.unmatched} of these tasks have no counterpart before the bend."
        sentences.append(text)
    if straight:
        sentences.append(f"No drop between neighbours is clear of 0 for {', '.join(straight)}.")
    return sentences


def read_sensitivity(group: Group, plan: ReportPlan, table: Table) -> list[str]:
    """Returns who is best at each miss price, and whose verdict depends on the price."""
    best = [name for name in best_by_price(table, plan.oracle) if name is not None]
    prices = ", ".join(f"{price:g}" for price in MISS_PRICES)
    sentences = []
    if best:
        names = ", ".join(f"`{name}`" for name in best)
        sentences.append(
            f"Of all but the oracle, `{best[0]}` has the best mean objective at every miss price."
            if len(set(best)) == 1
            else f"Best mean objective, the oracle aside, at miss prices {prices}: {names}."
        )
    for policy in _others(plan):
        outcomes = [
            verdict(group, policy, plan, price_measure(price), OBJECTIVE_MARGIN)
            for price in MISS_PRICES
        ]
        if len(set(outcomes)) > 1:
            listed = ", ".join(str(outcome) for outcome in outcomes)
            sentences.append(
                f"`{policy}` against `{plan.reference}` depends on the price: {listed} at {prices}."
            )
    return sentences


def _others(plan: ReportPlan) -> tuple[str, ...]:
    return tuple(policy for policy in plan.policies if policy != plan.reference)


def _counts(entries: Iterable[tuple[str, int]]) -> str:
    named = (("no edit" if name == "none" else name, count) for name, count in entries)
    return ", ".join(f"{name} ({count})" for name, count in named)


def _margin(name: str, margin: float) -> str:
    return f"{margin:g}" if name == "objective" else f"{100 * margin:g} points"


def _amount(interval: Interval) -> str:
    if math.isnan(interval.low):
        return f"{interval.mean:+.3f}"
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def _points(interval: Interval) -> str:
    return points(interval).replace("+", "")
