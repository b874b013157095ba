"""How a family plays: what carries its material, and which traps it sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """The traits in which the families differ beside their texts.

    Attributes:
        name: as in `SyntheticConfig.family`.
        carriers: share of the material that comes as tool results, documents and user texts.
        revised: share of the subjects whose facts are corrected by a later paper.
        misled: share of the papers about which a later turn of the agent claims something wrong.
        announced: share of the demands that a user text announces one request ahead.
        long: share of the papers that are several times longer than the others.
        long_factor: how many times longer, at least and at most.
        quotes_in_calls: the agent uses what it looked up as arguments of its next call, and not
            in its text.
    """

    name: str
    carriers: tuple[float, float, float]
    revised: float
    misled: float
    announced: float
    long: float = 0.04
    long_factor: tuple[float, float] = (5.0, 10.0)
    quotes_in_calls: bool = False
