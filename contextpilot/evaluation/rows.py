"""One row per evaluated episode. `storage` keeps rows in a file, every table and plot reads them.

A row is checked when it is made, so that an evaluation stops at its first wrong number and not
after its last episode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NoReturn

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError, did_you_mean

OPS = tuple(op.name.lower() for op in Op)
SEEN = ("stub", "summary", "nothing", "stale")
MISS_PRICE = 5.0
"""Default price of a silent miss, in raw requests at the point where it happens."""
TASK_WEIGHT = 2.0
"""What a failed task costs: more than the largest possible saving, which is 1."""


def objective_value(
    billed_tokens: float,
    raw_billed_tokens: float,
    miss_cost_tokens: float,
    failed: bool,
    miss_price: float = MISS_PRICE,
    task_weight: float = TASK_WEIGHT,
) -> float:
    """Returns `J = -(bill + miss_price * misses) / raw_bill - task_weight * [task failed]`.

    `miss_cost_tokens` is the misses' cost at a price of one raw request each, in billed tokens.
    """
    bill = billed_tokens + miss_price * miss_cost_tokens
    return -bill / raw_billed_tokens - task_weight * failed


@dataclass(frozen=True, slots=True)
class RemovedFact:
    """A fact that was missed silently, and the edit that had taken it away.

    Attributes:
        request: 0-based request at which it was needed.
        fact_kind: the key fact's kind, such as "number" or "negation".
        removed_by: the edit's name, or "none" where no edit had removed it.
        removed_at: 0-based request of that edit; -1 for "none".
        seen: what the reader had in its place: "stub", "summary", "nothing" or "stale".
    """

    request: int
    fact_kind: str
    removed_by: str
    removed_at: int
    seen: str

    def __post_init__(self) -> None:
        _check_types(self)
        if self.removed_by not in (*OPS, "none"):
            _reject("removed_by", self.removed_by, did_you_mean(self.removed_by, (*OPS, "none")))
        if self.seen not in SEEN:
            _reject("seen", self.seen, did_you_mean(self.seen, SEEN))
        if self.request < 0:
            _reject("request", self.request, " It counts from 0.")
        if self.removed_at < -1:
            _reject("removed_at", self.removed_at, " It counts from 0; -1 stands for no edit.")


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """What one policy did on one task with one seed. Tokens are billed-token equivalents or counts.

    Attributes:
        policy, source, split, notice, horizon, task_id, seed: what the row is about; unique
            together. `notice` names the preset of the reader's chances to notice a missing fact,
            `horizon` is the task's number of requests, `seed` that of the reader's noise.
        objective: `objective_value` at the default miss price and task weight.
        demand_success: share of demands that were met without a silent miss, in [0, 1]; 1 where
            there were none.
        task_success: the final answer has every key point; for replays, no silent miss at all.
        silent_misses, forced_reloads: how often in the episode.
        billed_tokens: the whole bill at the configured prices: fixed prefix, output, summarizer
            calls and forced reloads included. `raw_billed_tokens` is the same task's unedited.
        mean_request_tokens, peak_tokens: input tokens of a request, mean and largest.
        edits: edits that were applied; `keep` is not one.
        overflows: requests that were refused because they did not fit the budget.
        key_facts_kept: share of the demanded facts readable where they were needed, in [0, 1].
        seconds: wall-clock time of the episode.
        cluster: what is resampled together in intervals, such as a session or a generator seed.
        language: of the task's texts, such as "en".
        requests, demands: how many the episode had.
        miss_cost_tokens: the silent misses at a price of one raw request each: the sum of the raw
            request prices at the points where they happened.
        failed: what the objective's task weight is charged for.
        edits_by_op: edit name -> how often; may count `keep` too.
        revisits: forced and voluntary reloads: how often an original was looked at again.
        billed_without_prefix_tokens, raw_without_prefix_tokens: both bills without the fixed
            prefix of system prompt and tool schemas, which no edit can change.
        removed_facts: for each silent miss, which fact was removed by which edit.
    """

    policy: str
    source: str
    split: str
    notice: str
    horizon: int
    task_id: str
    seed: int
    objective: float
    demand_success: float
    task_success: bool
    silent_misses: int
    forced_reloads: int
    billed_tokens: float
    raw_billed_tokens: float
    mean_request_tokens: float
    peak_tokens: int
    edits: int
    overflows: int
    key_facts_kept: float
    seconds: float
    cluster: str
    language: str
    requests: int
    demands: int
    miss_cost_tokens: float
    failed: bool
    edits_by_op: Mapping[str, int] = field(hash=False)
    revisits: int
    billed_without_prefix_tokens: float
    raw_without_prefix_tokens: float
    removed_facts: tuple[RemovedFact, ...]

    def __post_init__(self) -> None:
        _check_types(self)
        for name in _NUMBERS:
            if getattr(self, name) < 0:
                _reject(name, getattr(self, name), " It must not be negative.")
        for name in ("demand_success", "key_facts_kept"):
            if getattr(self, name) > 1:
                _reject(name, getattr(self, name), " It is a share in [0, 1].")
        for name in ("horizon", "requests", "raw_billed_tokens", "raw_without_prefix_tokens"):
            if getattr(self, name) <= 0:
                _reject(name, getattr(self, name), " It must be above 0.")
        self._check_relations()

    def _check_relations(self) -> None:
        """Checks what must hold between fields."""
        for whole in ("billed", "raw"):
            name = f"{whole}_without_prefix_tokens"
            part, total = getattr(self, name), getattr(self, _WHOLE[whole])
            if part > total * (1 + 1e-9):
                _reject(name, part, f" It is part of {_WHOLE[whole]}, {total}.")
        if self.failed and self.task_success:
            _reject("failed", True, " A task that failed has no task_success; set one of them.")
        if self.revisits < self.forced_reloads:
            _reject("revisits", self.revisits, f" Count all {self.forced_reloads} forced reloads.")
        counted = sum(number for op, number in self.edits_by_op.items() if op != "keep")
        if self.edits != counted:
            _reject("edits", self.edits, f" edits_by_op holds {counted}, `keep` not counted.")
        expected = objective_value(
            self.billed_tokens, self.raw_billed_tokens, self.miss_cost_tokens, self.failed
        )
        if not math.isclose(self.objective, expected, rel_tol=1e-6, abs_tol=1e-6):
            _reject("objective", self.objective, f" `objective_value` gives {expected}; use it.")


_WHOLE = {"billed": "billed_tokens", "raw": "raw_billed_tokens"}
_NUMBERS = tuple(
    f.name for f in fields(EvaluationRow) if f.type in ("int", "float") and f.name != "objective"
)


def _reject(name: str, received: object, remedy: str) -> NoReturn:
    raise ConfigurationError(f"`{name}` is not valid. Received {received!r}.{remedy}")


def _check_types(record: EvaluationRow | RemovedFact) -> None:
    """Checks each field against its annotation, by name, as strict JSON readers would."""
    for f in fields(record):
        value = getattr(record, f.name)
        match f.type:
            case "str":
                valid, remedy = isinstance(value, str) and value != "", "a string, not empty"
            case "bool":
                valid, remedy = isinstance(value, bool), "true or false"
            case "int":
                valid, remedy = type(value) is int, "a whole number (a Python int)"
            case "float":
                number = isinstance(value, int | float) and not isinstance(value, bool)
                valid, remedy = number and math.isfinite(value), "a finite number"
            case "Mapping[str, int]":
                valid, remedy = _is_op_counts(value), f"counts from 0 by edit: {', '.join(OPS)}"
            case _:
                valid = isinstance(value, tuple) and all(isinstance(x, RemovedFact) for x in value)
                remedy = "a tuple of RemovedFact"
        if not valid:
            _reject(f.name, value, f" Give {remedy}.")


def _is_op_counts(value: object) -> bool:
    return isinstance(value, dict) and all(
        op in OPS and type(count) is int and count >= 0 for op, count in value.items()
    )
