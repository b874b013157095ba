"""What can be asked of the generator."""

from __future__ import annotations

from dataclasses import dataclass

from contextpilot.errors import ConfigurationError, did_you_mean

FAMILIES = ("docqa", "tools", "chat", "logs", "restock")
LANGUAGES = ("en", "zh")
SHORTEST_HORIZON = 8
LONGEST_HORIZON = 500
"""Beyond it the vocabularies run out of distinct subjects."""


@dataclass(frozen=True, slots=True)
class SyntheticConfig:
    """Parameters of one synthetic source. Together with a task's id they determine the task.

    Attributes:
        family: "docqa", "tools", "chat", "logs" or "restock".
        language: "en" or "zh".
        horizon: requests of the agent's model. Longer tasks have more filler, not more demands.
        demands: demands that the final answer consists of; the same at every horizon.
        distractor_share: share of the material that looks like what is needed but is about other
            things; the rest is circulars without facts, which anybody can tell apart.
        duplication: share of the material that repeats earlier material word for word.
        lag: least and greatest share of the horizon between a fact's arrival and its demand. What
            cannot be had (a lag of 0.9 for an early demand) is approached as far as possible.
        difficulty: 0 to 1: how often what is needed is named by one hop (an alias that another
            segment introduces), or has a near double (the same subject, another topic).
        segment_tokens: mean size of what arrives, in tokens; the sizes have a heavy tail.
    """

    family: str
    language: str = "en"
    horizon: int = 20
    demands: int = 4
    distractor_share: float = 0.95
    duplication: float = 0.1
    lag: tuple[float, float] = (0.05, 0.95)
    difficulty: float = 0.5
    segment_tokens: int = 260

    def __post_init__(self) -> None:
        """Raises `ConfigurationError` for anything that no task can be made from."""
        _check_name("family", self.family, FAMILIES)
        _check_name("language", self.language, LANGUAGES)
        _check_range("demands", self.demands, 1, 50)
        shortest = max(SHORTEST_HORIZON, 2 * self.demands)
        _check_range("horizon", self.horizon, shortest, LONGEST_HORIZON)
        _check_range("distractor_share", self.distractor_share, 0, 1)
        _check_range("duplication", self.duplication, 0, 0.5)
        _check_range("difficulty", self.difficulty, 0, 1)
        _check_range("segment_tokens", self.segment_tokens, 100, 20_000)
        if len(self.lag) != 2 or not 0 <= self.lag[0] <= self.lag[1] <= 1:
            raise ConfigurationError(
                "`lag` must be two shares of the horizon, least first, each from 0 to 1. "
                f"Received {self.lag!r}. For example: (0.05, 0.95)."
            )


def _check_name(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(
            f"`{field}` is unknown. Received {value!r}.{did_you_mean(str(value), known)}"
        )


def _check_range(field: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigurationError(
            f"`{field}` must be from {low} to {high}. Received {value!r}."
            + (" The horizon needs two requests for each demand." if field == "horizon" else "")
        )
