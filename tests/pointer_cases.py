"""Observations with chosen slots in use, and distributions whose numbers fit on paper."""

from __future__ import annotations

import torch
from torch import Tensor

from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS, ActionCodec
from contextpilot.observations.features import ARCHIVE_FEATURES, SEGMENT_FEATURES, STATE_FEATURES
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.distribution import ActionDistribution
from contextpilot.policies.pointer.layout import Layout
from contextpilot.policies.pointer.network import PointerNetwork

P, Q = len(CONTEXT_PRESETS), len(ARCHIVE_PRESETS)

Observation = dict[str, Tensor]


def distribution(
    layout: Layout,
    op_logits: list[float],
    scores: dict[int, float],
    *,
    keep_legal: bool = True,
) -> ActionDistribution:
    """One row, in which keep and the given full actions are legal, with these scores.

    Everything illegal has scores far above, which must not matter.
    """
    context = torch.full((1, P, layout.context_slots), 50.0)
    archive = torch.full((1, Q, layout.archive_slots), 50.0)
    context_legal, archive_legal = context < 0, archive < 0
    start = ActionCodec(layout.context_slots, layout.archive_slots).archive_start
    for action, score in scores.items():
        values, legal, at = (
            (context, context_legal, action - 1) if action < start
            else (archive, archive_legal, action - start)
        )  # fmt: skip
        values.view(-1)[at], legal.view(-1)[at] = score, True
    s, m = layout.context_used, layout.archive_used
    return ActionDistribution(
        torch.tensor([op_logits], requires_grad=True),
        context[:, :, :s].requires_grad_(),
        archive[:, :, :m].requires_grad_(),
        keep_legal=torch.tensor([[keep_legal]]),
        context_legal=context_legal[:, :, :s],
        archive_legal=archive_legal[:, :, :m],
        layout=layout,
    )


def random_observation(
    rows: int = 6, slots: int = 8, archived: int = 3, *, used: int = 6, seed: int = 0
) -> Observation:
    """Rows with holes among their used slots; in the first row only keep is legal."""
    draw = torch.Generator().manual_seed(seed)

    def chance(probability: float, *shape: int) -> Tensor:
        return torch.rand(shape, generator=draw) < probability

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    visible = chance(0.7, rows, slots) & (torch.arange(slots) < used)
    gone = chance(0.6, rows, archived)
    context = chance(0.4, rows, P, slots) & visible[:, None]
    archive = chance(0.6, rows, Q, archived) & gone[:, None]
    keep = torch.ones(rows, 1, dtype=torch.bool)
    mask = torch.cat([keep, context.flatten(1), archive.flatten(1)], 1)
    mask[0, 1:] = False
    return {
        "segments": normal(rows, slots, len(SEGMENT_FEATURES)) * visible[..., None],
        "segment_mask": visible.to(torch.int8),
        "archive": normal(rows, archived, len(ARCHIVE_FEATURES)) * gone[..., None],
        "archive_mask": gone.to(torch.int8),
        "state": normal(rows, len(STATE_FEATURES)),
        "action_mask": mask.to(torch.int8),
    }


def padded(observation: Observation, slots: int, archived: int) -> Observation:
    """The same with more slots, all of them empty."""
    rows, s, _ = observation["segments"].shape
    m = observation["archive"].shape[1]

    def grown(array: Tensor, dim: int, size: int) -> Tensor:
        shape = list(array.shape)
        shape[dim] = size - shape[dim]
        return torch.cat([array, array.new_zeros(shape)], dim)

    mask = observation["action_mask"]
    context = grown(mask[:, 1 : 1 + P * s].reshape(rows, P, s), 2, slots)
    archive = grown(mask[:, 1 + P * s :].reshape(rows, Q, m), 2, archived)
    return {
        "segments": grown(observation["segments"], 1, slots),
        "segment_mask": grown(observation["segment_mask"], 1, slots),
        "archive": grown(observation["archive"], 1, archived),
        "archive_mask": grown(observation["archive_mask"], 1, archived),
        "state": observation["state"],
        "action_mask": torch.cat([mask[:, :1], context.flatten(1), archive.flatten(1)], 1),
    }


def network(seed: int = 0, *, sharp: float = 1.0, **size: int) -> PointerNetwork:
    """A small network; its policy heads are multiplied by `sharp`, to have opinions."""
    torch.manual_seed(seed)
    made = PointerNetwork(PointerConfig(**({"width": 16, "layers": 1, "heads": 2} | size)))
    with torch.no_grad():
        for head in (made.op_head, made.slot_head):
            head.weight *= sharp
    return made
