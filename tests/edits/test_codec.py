"""One integer, one action: in both directions, and nothing outside."""

import numpy as np
import pytest
from tiny_tasks import chain_task, engine_of

from contextpilot.core.edit import Op
from contextpilot.edits.codec import (
    ARCHIVE_PRESETS,
    CONTEXT_PRESETS,
    Action,
    ActionCodec,
    summary_limit,
    to_edit,
)
from contextpilot.errors import ConfigurationError, IllegalEditError


@pytest.mark.parametrize(("slots", "archived"), [(1, 0), (3, 2), (128, 32)])
def test_every_action_decodes_to_one_edit_and_back(slots, archived):
    codec = ActionCodec(slots, archived)
    assert codec.size == 1 + 14 * slots + 2 * archived
    actions = [codec.decode(number) for number in range(codec.size)]
    assert len(set(actions)) == codec.size
    for number, action in enumerate(actions):
        again = codec.encode(action.op, action.preset, action.slot, archived=action.archived)
        assert again == number


def test_the_layout_is_fixed():
    """Checkpoints carry it by `ACTION_VERSION`: a change here is a new version."""
    codec = ActionCodec(10, 4)
    assert codec.decode(0) == Action(Op.KEEP, "", -1)
    assert codec.encode(Op.SUMMARIZE, "this", 0) == 1
    assert codec.encode(Op.FOLD, "stub", 3) == 24
    assert codec.encode(Op.REORDER, "end", 9) == 140
    assert codec.encode(Op.RELOAD, "in_place", 0, archived=True) == 141 == codec.archive_start
    assert codec.encode(Op.RELOAD, "at_end", 3, archived=True) == 148
    assert len(CONTEXT_PRESETS) == 14
    assert len(ARCHIVE_PRESETS) == 2


@pytest.mark.parametrize("number", [-1, 149, 10**9])
def test_an_integer_outside_is_refused(number):
    with pytest.raises(ConfigurationError, match=rf"\[0, 149\)\. Received {number}\."):
        ActionCodec(10, 4).decode(number)


@pytest.mark.parametrize(
    ("op", "preset", "slot", "archived"),
    [
        (Op.FOLD, "sideways", 0, False),
        (Op.FOLD, "stub", 10, False),
        (Op.FOLD, "stub", -1, False),
        (Op.RELOAD, "in_place", 4, True),
        (Op.FOLD, "stub", 0, True),
        (Op.DROP, "this", 0, True),
    ],
)
def test_an_action_that_the_layout_does_not_have_is_refused(op, preset, slot, archived):
    with pytest.raises(ConfigurationError, match=f"no action {op.name.lower()} with preset"):
        ActionCodec(10, 4).encode(op, preset, slot, archived=archived)


@pytest.mark.parametrize(("slots", "archived"), [(0, 4), (-1, 4), (4, -1)])
def test_impossible_layouts_are_refused(slots, archived):
    with pytest.raises(ConfigurationError, match=rf"Received {slots} and {archived}\."):
        ActionCodec(slots, archived)


def test_an_empty_slot_has_no_edit():
    context = engine_of(chain_task(4)).episodes[0].context
    for number in range(1, 1 + 14 * 4 + 2 * 2):
        action = ActionCodec(4, 2).decode(number)
        with pytest.raises(IllegalEditError, match=f"slot {action.slot} is empty"):
            to_edit(context, action, -1)


@pytest.mark.parametrize(
    ("tokens", "largest", "expected"),
    [(4000, 600, 600), (1000, 600, 250), (100, 600, 48), (4000, 20, 48)],
)
def test_a_summary_may_have_a_quarter_within_the_limit(tokens, largest, expected):
    assert summary_limit(tokens, largest) == expected


def test_the_mask_has_one_entry_an_action():
    engine = engine_of(chain_task(4), slots=7, archived=3)
    assert engine.encoder.action_mask.shape == (1, engine.codec.size)
    assert np.flatnonzero(engine.encoder.action_mask[0]).tolist() == [0]  # all is unread
