"""The simulator's settings: window, prices, what an agent notices, what a miss costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from contextpilot.core.prices import PRICE_PRESETS, Prices
from contextpilot.errors import ConfigurationError, did_you_mean
from contextpilot.readers.base import Reader


@dataclass(frozen=True, slots=True)
class Notice:
    """How probably an agent notices that a fact is missing, by what it sees in its place."""

    stub: float
    summary: float
    nothing: float
    stale: float

    def of(self, seen: str) -> float:
        """Returns the probability for "stub", "summary", "nothing" or "stale"."""
        return float(getattr(self, seen))


NOTICE_PRESETS: Mapping[str, Notice] = MappingProxyType(
    {
        # Assumptions, not measurements: results are shown under at least two presets.
        "perfect": Notice(1.0, 1.0, 1.0, 1.0),
        "good": Notice(0.95, 0.7, 0.5, 0.2),
        "poor": Notice(0.75, 0.5, 0.3, 0.0),
    }
)


@dataclass(frozen=True)
class SimulatorConfig:
    """Everything that an episode depends on besides task, actions and noise.

    Attributes:
        max_context_tokens: absolute window; overrides `budget_fraction`. None: not set.
        budget_fraction: window as a share of the task's largest raw request (reserved output
            comes on top); None for both: no limit.
        reserved_output_tokens: kept free for the answer.
        compression_threshold: share of the input limit from which on there is pressure.
        summarize_max_tokens: longest summary.
        max_edits: K, edit steps a request; the K-th sends it.
        notice: a name in NOTICE_PRESETS.
        reader: "ideal" reads whatever is visible; "rot" misses more in the middle of long ones;
            "model" asks `model`.
        model: what answers in the agent's place; None unless `reader` is "model". Whether a fact
            was read, and whether its absence was noticed, is then what the answer says.
        prices: a name in PRICE_PRESETS.
        reload_output_tokens: what the agent writes to ask for an original.
        max_reloads: forced reloads a request; a further one is a silent miss.
        miss_price_requests: a silent miss costs the raw price of this many requests.
        task_weight: subtracted from the objective when the task fails.
        bill_prefix: whether system prompt and tool schemas are part of the bill.
        bill_output: whether the agent's turns, which no edit changes, are part of the bill.
    """

    max_context_tokens: int | None = None
    budget_fraction: float | None = 0.5
    reserved_output_tokens: int = 0
    compression_threshold: float = 0.8
    summarize_max_tokens: int = 600
    max_edits: int = 16
    notice: str = "good"
    reader: str = "ideal"
    model: Reader | None = None
    prices: str = "default"
    reload_output_tokens: int = 600
    max_reloads: int = 2
    miss_price_requests: float = 5.0
    task_weight: float = 2.0
    bill_prefix: bool = True
    bill_output: bool = True
    price_table: Prices = field(init=False, repr=False)
    notice_table: Notice = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Resolves the presets and refuses what no episode could run with."""
        for name, known in (
            ("notice", NOTICE_PRESETS),
            ("prices", PRICE_PRESETS),
            ("reader", {"ideal": 0, "rot": 0, "model": 0}),
        ):
            value = getattr(self, name)
            if value not in known:
                raise ConfigurationError(
                    f"unknown `{name}` preset. Received {value!r}.{did_you_mean(str(value), known)}"
                )
        if (self.reader == "model") != (self.model is not None):
            raise ConfigurationError(
                '`model` is given exactly where `reader` is "model". '
                f"Received {self.reader!r} and {self.model!r}."
            )
        if self.budget_fraction is not None and not self.budget_fraction > 0:
            raise ConfigurationError(
                f"`budget_fraction` must be positive, or None. Received {self.budget_fraction}."
            )
        if self.max_context_tokens is not None and self.max_context_tokens <= 0:
            raise ConfigurationError(
                f"`max_context_tokens` must be positive, or None. "
                f"Received {self.max_context_tokens}."
            )
        for name in ("max_edits", "summarize_max_tokens"):
            if getattr(self, name) < 1:
                raise ConfigurationError(
                    f"`{name}` must be at least 1. Received {getattr(self, name)}."
                )
        for name in (
            "reserved_output_tokens", "reload_output_tokens", "max_reloads",
            "miss_price_requests", "task_weight",
        ):  # fmt: skip
            if getattr(self, name) < 0:
                raise ConfigurationError(
                    f"`{name}` must not be negative. Received {getattr(self, name)}."
                )
        object.__setattr__(self, "price_table", PRICE_PRESETS[self.prices])
        object.__setattr__(self, "notice_table", NOTICE_PRESETS[self.notice])
