"""Leaving out unused slots: what is cut, and that actions keep their meaning."""

from __future__ import annotations

import pytest
import torch
from pointer_cases import padded, random_observation

from contextpilot.core.edit import Op
from contextpilot.edits.codec import ActionCodec
from contextpilot.policies.pointer.layout import Layout, action_tables, trim
from contextpilot.policies.pointer.packing import pack


@pytest.mark.parametrize(
    "layout", [Layout(5, 3, 2, 1), Layout(5, 3, 5, 3), Layout(4, 0, 1, 0), Layout(4, 2, 0, 0)]
)
def test_tables_agree_with_the_codecs(layout: Layout) -> None:
    full = ActionCodec(layout.context_slots, layout.archive_slots)
    tables = action_tables(layout, torch.device("cpu"))
    kept = [
        action
        for action in range(full.size)
        for meant in [full.decode(action)]
        if meant.slot < (layout.archive_used if meant.archived else layout.context_used)
    ]
    assert tables.full.tolist() == kept  # the order of actions is the same in both layouts
    assert [full.decode(action).op for action in kept] == tables.op.tolist()
    assert tables.used[tables.full].tolist() == list(range(len(kept)))
    assert (tables.used < 0).sum().item() == full.size - len(kept)


def test_the_last_used_slot_of_any_row_stays() -> None:
    view = trim(padded(random_observation(used=5), 12, 7))
    assert view.layout == Layout(12, 7, 5, 3)
    assert view.observation["segments"].shape[1] == view.observation["segment_mask"].shape[1] == 5
    assert view.observation["archive"].shape[1] == 3


def test_a_hidden_segment_that_may_return_is_in_use() -> None:
    observation = padded(random_observation(rows=2, slots=3, archived=0, used=3), 6, 2)
    action = ActionCodec(6, 2).encode(Op.RELOAD, "in_place", 4)
    observation["action_mask"][1, action] = 1
    view = trim(observation)
    assert view.layout.context_used == 5
    assert view.context[1, 4]
    assert not view.context[0, 4]


def test_packing_puts_every_token_in_its_place_and_back() -> None:
    present = torch.rand(70, 9, generator=torch.Generator().manual_seed(1)) < 0.5
    present[:, 0] = True
    packing = pack(present)
    values = torch.arange(70 * 9).view(-1, 1).float()
    tokens = values[packing.token]
    assert sorted(packing.token.tolist()) == present.flatten().nonzero()[:, 0].tolist()
    assert packing.token[packing.first].tolist() == list(range(0, 70 * 9, 9))
    assert sum(group.rows for group in packing.groups) == 70
    parts = torch.split(tokens, [group.tokens for group in packing.groups])
    for part, group in zip(parts, packing.groups, strict=True):
        desk = group.pad(part)
        assert torch.equal(group.unpad(desk), part)
        rows = desk[..., 0] // 9  # every place holds a token of its own row, or nothing
        held = (
            group.mask[:, 0, 0] if group.mask is not None else torch.ones_like(rows, dtype=bool)
        )  # fmt: skip
        assert torch.equal(torch.where(held, rows, rows[:, :1]), rows[:, :1].expand_as(rows))
        assert not desk[..., 0][~held].any()


def test_full_rows_need_no_padding() -> None:
    (group,) = pack(torch.ones(3, 4, dtype=torch.bool)).groups
    assert group.mask is None
    assert (group.rows, group.length, group.tokens) == (3, 4, 12)
