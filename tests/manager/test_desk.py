"""A context that grew is the one that its history and its log make anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager.histories import ALWAYS, FORMATS, Stubborn, history, manager, requests_of
from strategies import examples, seeds

from contextpilot.core.budget import TokenBudget
from contextpilot.manager import Session


def seen(session: Session) -> dict[str, object]:
    session._desk.refresh()
    arrays = dict(session.observe().arrays)
    context = session._desk.context
    numbers = (context.total, context.request, context.length, context.latest_user)
    pending = context.break_at if context.has_pending_break else -1
    order = [context.entries[i].id for i in context.columns.order[: context.length]]
    unread = sorted(set(context.unread))
    return {**arrays, "numbers": (*numbers, pending, context.arrived_tokens, order, unread)}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("budget", [ALWAYS, TokenBudget(8_000, 500, 0.5)], ids=["roomy", "tight"])
@examples(6)
@given(seed=seeds, reasoning=st.booleans())
def test_a_grown_context_is_the_rebuilt_one(
    format: str, budget: TokenBudget, seed: int, reasoning: bool
) -> None:
    session = manager(format, Stubborn(), budget).session(str(seed))
    for host in requests_of(history(format, seed, 12, reasoning)):
        session.prepare(host)
        grown = seen(session)
        session._desk._rebuild()
        session._desk._pin()
        rebuilt = seen(session)
        assert session._desk.asleep == frozenset()
        for name, value in grown.items():
            assert (
                np.array_equal(value, rebuilt[name])
                if name != "numbers"
                else (value == rebuilt[name])
            ), name


@examples(10)
@given(seeds, st.integers(0, 10**6))
def test_an_undone_edit_leaves_no_trace(seed: int, choice: int) -> None:
    """What was undone is as if it had never been: the others, replayed, give the same."""
    session = manager("openai", Stubborn(), ALWAYS).session(str(seed))
    for host in requests_of(history("openai", seed, 8)):
        session.prepare(host)
    live = list(session.log.live_since(-1))
    if not live:
        return
    record = live[choice % len(live)]
    undone = session.undo(record.id)
    assert undone[-1] == record.id
    assert not session.log.is_live(session.log[record.id])
    session.prepare(host)
    for other in live:
        if other.id in undone:
            assert not session.log.is_live(session.log[other.id])
        else:
            assert session.log.is_live(session.log[other.id])
    assert set(session.undo_all()) == {r.id for r in live} - set(undone)
    assert session.prepare(host).messages == host  # the policy is not asked about the same again
