"""What stands for the agent's model: does it read a fact that is visible in its context?"""

from __future__ import annotations

from contextpilot.core.context import Context


def unread_probability(reader: str, context: Context, index: int) -> float:
    """Returns how probably the agent overlooks a fact in a visible segment.

    "ideal" never does. "rot" does so with

        p(x, s) = s * (0.149 + 0.193 * 4 x (1 - x) + 0.150 x)

    where x in [0, 1] is the segment's place in the context by tokens and s the share of the
    context that is not this segment. The three numbers were fitted once, before any policy was
    trained, to Liu et al. (2023), "Lost in the Middle", appendix, GPT-3.5-Turbo on 20 documents
    answers 75.8, 57.2, 53.8, 55.4 and 63.2% with the answer in document 1, 5, 10, 15 and 20, and
    88.3% when it is the only document; p is the relative loss against the latter. The fit is
    within 0.07 of each point.

    Args:
        reader: "ideal" or "rot".
        context: the context as it is sent.
        index: a visible segment that states the fact.
    """
    if reader == "ideal" or context.total <= 0:
        return 0.0
    size = context.columns.size[index]
    middle = context.tokens_before(context.columns.rank[index]) + size / 2
    x = min(1.0, middle / context.total)
    irrelevant = 1.0 - size / context.total
    return irrelevant * (0.149 + 0.193 * 4 * x * (1 - x) + 0.150 * x)
