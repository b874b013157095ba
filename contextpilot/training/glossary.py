"""What every logged number means. A key that is not explained here is refused by the log.

`python -m contextpilot.training.glossary > docs/metrics.md` writes the table for readers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.rewards.terms import TERMS

OPS = tuple(op.name.lower() for op in Op)


@dataclass(frozen=True, slots=True)
class Entry:
    """One metric, or a family of metrics that differ in a name.

    Attributes:
        pattern: the key; <term> stands for a reward term, <op> for an edit.
        unit: what it counts in.
        meaning: one sentence.
    """

    pattern: str
    unit: str
    meaning: str

    def keys(self) -> Iterator[str]:
        """Yields the keys that the pattern stands for."""
        for term in TERMS if "<term>" in self.pattern else ("",):
            for op in OPS if "<op>" in self.pattern else ("",):
                yield self.pattern.replace("<term>", term).replace("<op>", op)


_OUTCOMES = (
    ("objective", "J", "Minus (bill + price of misses) / raw bill, minus 2 where the task failed"),
    ("demand_success", "share", "Demands met without a silent miss"),
    ("task_success", "share", "Tasks that succeeded"),
    ("billed_share", "share", "Bill as a share of what raw would be billed for the same task"),
    ("peak_tokens", "tokens", "Largest request of an episode"),
    ("silent_misses", "per episode", "Facts that were needed, unreadable, and not noticed"),
    ("forced_reloads", "per episode", "Originals that the agent noticed missing, and fetched"),
    ("edits", "per episode", "Edits other than keep that were made"),
)

ENTRIES: tuple[Entry, ...] = (
    Entry("episode/return", "reward", "Sum of rewards of an episode"),
    Entry("episode/length", "steps", "Edit steps of an episode"),
    *(
        Entry(f"episode/{name}", unit, f"{text}; sampled play on training tasks")
        for name, unit, text in _OUTCOMES
    ),
    Entry("reward/<term>/raw", "per episode", "A reward term before its weight"),
    Entry("reward/<term>/weighted", "reward per episode", "The term times its weight"),
    Entry(
        "reward/<term>/<op>", "reward per episode",
        "The weighted term, from steps with this edit; absent where the term paid nothing",
    ),
    Entry("actions/<op>", "share", "Steps whose action is this edit"),
    Entry("loss/policy", "loss", "Clipped surrogate, averaged over gradient steps"),
    Entry("loss/value", "loss", "Half the squared error of the value head, before its coefficient"),
    Entry("loss/entropy", "nats", "Entropy of the masked joint action distribution"),
    Entry("loss/anchor_kl", "nats", "KL divergence of the policy from its warm start"),
    Entry("update/kl", "nats", "How far the policy moved from where it collected (k3 estimate)"),
    Entry("update/clip_fraction", "share", "Steps whose probability ratio was clipped"),
    Entry(
        "update/explained_variance", "share", "Variance of the returns that the values explain"
    ),
    Entry("update/learning_rate", "1", "Learning rate of the iteration"),
    Entry("update/gradient_norm", "1", "Norm of the gradient before clipping"),
    Entry("update/epochs", "passes", "Passes over the data that were begun"),
    Entry("speed/steps_per_second", "1/s", "Edit steps by the seconds of the whole iteration"),
    Entry("speed/env_steps_per_second", "1/s", "Edit steps by the environment's own seconds"),
    Entry("speed/policy_steps_per_second", "1/s", "Edit steps by the policy's own seconds"),
    Entry("speed/update_steps_per_second", "1/s", "Steps learnt from, by the update's seconds"),
    Entry("speed/seconds", "s", "Length of the iteration"),
    Entry("evaluation/return", "reward", "Sum of rewards of an episode; greedy, inner fold"),
    *(
        Entry(f"evaluation/{name}", unit, f"{text}; greedy play on the inner fold")
        for name, unit, text in _OUTCOMES
    ),
    Entry("warm_start/loss", "nats", "Negative log-probability of the teachers' actions"),
    Entry("warm_start/accuracy", "share", "Steps at which greedy play does as the teachers did"),
)  # fmt: skip
"""In the order of the table."""

_BY_KEY: Mapping[str, Entry] = MappingProxyType(
    {key: entry for entry in ENTRIES for key in entry.keys()}  # noqa: SIM118
)


def describe(key: str) -> Entry:
    """Returns what a metric means.

    Raises:
        ConfigurationError: for a key that is not explained.
    """
    entry = _BY_KEY.get(key)
    if entry is None:
        near = did_you_mean(key, _BY_KEY)
        hint = near if near.startswith(" Did") else ""  # not a list of two hundred names
        raise ConfigurationError(
            f"the glossary has no metric of this name. Received {key!r}.{hint} "
            "Explain new ones in contextpilot/training/glossary.py."
        )
    return entry


def table() -> str:
    """Returns docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "What `metrics.jsonl` and W&B hold, one row an iteration (the warm start is iteration -1).",
        "Generated by `python -m contextpilot.training.glossary > docs/metrics.md`.",
        "",
        f"`<term>`: {', '.join(f'`{term}`' for term in TERMS)}.",
        "",
        f"`<op>`: {', '.join(f'`{op}`' for op in OPS)}.",
        "",
        "| metric | unit | meaning |",
        "|---|---|---|",
        "| `iteration` | count | Iterations before this one |",
        "| `environment_steps` | steps | Edit steps played so far; the x axis in W&B |",
        *(f"| `{e.pattern}` | {e.unit} | {e.meaning} |" for e in ENTRIES),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
