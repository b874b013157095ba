"""Leaves out slots that no row of a batch uses, and names actions in both layouts.

What remains is the layout of an `ActionCodec` with fewer slots: "used" actions (B, A') beside the
"full" ones (B, A). Slots are filled from the front, so all beyond the last used one are dropped;
an unused slot before it is only masked.

Shapes: S and M slots as received, S' and M' as used, P context presets, Q archive presets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS, ActionCodec

_P, _Q = len(CONTEXT_PRESETS), len(ARCHIVE_PRESETS)


@dataclass(frozen=True, slots=True)
class Layout:
    """How many slots there are, and how many of them are used."""

    context_slots: int
    archive_slots: int
    context_used: int
    archive_used: int

    @property
    def size(self) -> int:
        """A, of the full layout."""
        return 1 + _P * self.context_slots + _Q * self.archive_slots


class ActionTables(NamedTuple):
    """Lookups between layouts.

    Attributes:
        full: (A',) the full action of each used one.
        used: (A,) the used action of each full one; -1: its slot was left out.
        op: (A',) the operation of each used action.
    """

    full: Tensor
    used: Tensor
    op: Tensor


@lru_cache(maxsize=1024)
@torch.inference_mode(False)  # whoever asks first: autograd refuses what inference mode made
def action_tables(layout: Layout, device: torch.device) -> ActionTables:
    """Returns a layout's lookups, on a device; made once."""
    s, m = layout.context_slots, layout.archive_slots
    context = 1 + torch.arange(_P)[:, None] * s + torch.arange(layout.context_used)
    archive = 1 + _P * s + torch.arange(_Q)[:, None] * m + torch.arange(layout.archive_used)
    full = torch.cat([torch.zeros(1, dtype=torch.int64), context.flatten(), archive.flatten()])
    used = torch.full((layout.size,), -1)
    used[full] = torch.arange(len(full))
    codec = ActionCodec(s, m)
    op = torch.tensor([int(codec.decode(action).op) for action in full.tolist()])
    return ActionTables(full.to(device), used.to(device), op.to(device))


class Trimmed(NamedTuple):
    """An observation without its unused slots.

    Attributes:
        observation: the arrays that were given, those of slots cut.
        context, archive: (B, S') and (B, M') bool, the slots that hold something: what is
            visible, and what may be brought back.
        keep_legal: (B, 1) bool; context_legal: (B, P, S'); archive_legal: (B, Q, M').
    """

    observation: Mapping[str, Tensor]
    context: Tensor
    archive: Tensor
    keep_legal: Tensor
    context_legal: Tensor
    archive_legal: Tensor
    layout: Layout


def trim(observation: Mapping[str, Tensor]) -> Trimmed:
    """Leaves out the slots behind the last one that any row uses."""
    s, m = observation["segment_mask"].shape[1], observation["archive_mask"].shape[1]
    legal = observation["action_mask"] != 0
    archive_start = 1 + _P * s
    context_legal = legal[:, 1:archive_start].view(len(legal), _P, s)
    archive_legal = legal[:, archive_start:].view(len(legal), _Q, m)
    context = (observation["segment_mask"] != 0) | context_legal.any(1)
    archive = (observation["archive_mask"] != 0) | archive_legal.any(1)
    s_used, m_used = _last_used(context), _last_used(archive)
    ends = {"segment": s_used, "archive": m_used}
    cut = {
        name: array[:, : ends[kind]] if (kind := name.split("_")[0].rstrip("s")) in ends else array
        for name, array in observation.items()
    }
    return Trimmed(
        cut,
        context[:, :s_used],
        archive[:, :m_used],
        legal[:, :1],
        context_legal[:, :, :s_used],
        archive_legal[:, :, :m_used],
        Layout(s, m, s_used, m_used),
    )


def _last_used(occupied: Tensor) -> int:
    used = occupied.any(0).nonzero()
    return int(used[-1, 0]) + 1 if len(used) else 0
