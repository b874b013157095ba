"""A small pre-norm transformer over the context's segments, the archive's, and one global token.

There is no positional embedding: the feature `position` says where a segment stands. So the network
is equivariant to a permutation of slots (pointer networks: Vinyals et al. 2015; sets: Zaheer et
al. 2017), and takes any number of them.

Shapes: B rows, N tokens of all rows, D width; otherwise as in `layout`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contextpilot.core.edit import Op
from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS
from contextpilot.errors import ConfigurationError
from contextpilot.observations.features import ARCHIVE_FEATURES, SEGMENT_FEATURES, STATE_FEATURES
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.distribution import ActionDistribution
from contextpilot.policies.pointer.encoder import TEXT_INPUTS, SegmentEncoder
from contextpilot.policies.pointer.layout import Trimmed, trim
from contextpilot.policies.pointer.packing import Group, pack

NUMERIC_INPUTS = ("segments", "segment_mask", "archive", "archive_mask", "state", "action_mask")

_HEAD_SCALE = 0.01
"""Of the policy heads' first weights: all legal operations begin nearly equally likely."""

_CONTEXT_SCORES = len(CONTEXT_PRESETS)

_EXPANSION = 2
"""Width of a block's hidden layer, relative to its tokens'."""


class PointerOutput(NamedTuple):
    """What the network says: a distribution over actions, and the value (B,)."""

    distribution: ActionDistribution
    value: Tensor


class Reading(NamedTuple):
    """What the transformer makes of a batch of observations.

    Attributes:
        view: the observations without their unused slots.
        summary: (B, D), the global token.
        context_scores, archive_scores: (B, P, S') and (B, Q, M'), the pointers at used slots.
    """

    view: Trimmed
    summary: Tensor
    context_scores: Tensor
    archive_scores: Tensor


class Block(nn.Module):
    """Attention and a hidden layer, each behind a normalisation and beside a residual path."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.hidden_norm = nn.LayerNorm(width)
        self.hidden_in = nn.Linear(width, _EXPANSION * width)
        self.hidden_out = nn.Linear(_EXPANSION * width, width)

    def forward(self, tokens: Tensor, groups: Sequence[Group]) -> Tensor:
        """Maps (N, D) to (N, D); tokens of the same row look at each other."""
        qkv = self.queries_keys_values(self.attention_norm(tokens))
        parts = torch.split(qkv, [group.tokens for group in groups])
        seen = [self._attend(part, group) for part, group in zip(parts, groups, strict=True)]
        tokens = tokens + self.attention_out(torch.cat(seen))
        hidden = F.relu(self.hidden_in(self.hidden_norm(tokens)))
        out: Tensor = tokens + self.hidden_out(hidden)
        return out

    def _attend(self, qkv: Tensor, group: Group) -> Tensor:
        """Maps a group's (tokens, 3 D) to (tokens, D)."""
        split = group.pad(qkv).view(group.rows, group.length, 3, self.heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=group.mask)
        return group.unpad(seen.transpose(1, 2).flatten(2))


class PointerNetwork(nn.Module):
    """Maps observations to distributions over actions and to values.

    Attributes:
        inputs: the arrays of an observation that it reads.
    """

    def __init__(self, config: PointerConfig, encoder: SegmentEncoder | None = None) -> None:
        super().__init__()
        if (config.backbone == "none") != (encoder is None):
            raise ConfigurationError(
                "a network has a text encoder exactly where its config names a backbone. "
                f"Received backbone {config.backbone!r} and the encoder {encoder!r}."
            )
        width = config.width
        self.config, self.encoder = config, encoder
        self.inputs = NUMERIC_INPUTS if encoder is None else NUMERIC_INPUTS + TEXT_INPUTS
        self.segment_in = nn.Linear(len(SEGMENT_FEATURES), width)
        self.archive_in = nn.Linear(len(ARCHIVE_FEATURES), width)
        self.state_in = nn.Linear(len(STATE_FEATURES), width)
        if encoder is not None:
            self.segment_text_in = nn.Linear(encoder.width, width, bias=False)
            self.archive_text_in = nn.Linear(encoder.width, width, bias=False)
            self.goal_text_in = nn.Linear(encoder.width, width, bias=False)
        self.blocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.op_head = nn.Linear(width, len(Op))
        # One product for both kinds of slot; each reads its own columns.
        self.slot_head = nn.Linear(width, _CONTEXT_SCORES + len(ARCHIVE_PRESETS))
        self.value_head = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )  # fmt: skip
        for head in (self.op_head, self.slot_head):
            nn.init.normal_(head.weight, std=_HEAD_SCALE)
            nn.init.zeros_(head.bias)

    def forward(self, observation: Mapping[str, Tensor]) -> PointerOutput:
        """Reads the arrays of `ObservationEncoder` named by `inputs`, each with a leading B."""
        view, summary, context_scores, archive_scores = self.read(observation)
        distribution = ActionDistribution(
            self.op_head(summary),
            context_scores,
            archive_scores,
            keep_legal=view.keep_legal,
            context_legal=view.context_legal,
            archive_legal=view.archive_legal,
            layout=view.layout,
        )
        return PointerOutput(distribution, self.value_head(summary)[:, 0])

    def read(self, observation: Mapping[str, Tensor]) -> Reading:
        """Returns what the heads of operations and values, and the distribution, work with."""
        view = trim(observation)
        present = torch.cat([torch.ones_like(view.keep_legal), view.context, view.archive], 1)
        packing = pack(present)
        tokens = self._tokens(view).flatten(0, 1).index_select(0, packing.token)
        for block in self.blocks:
            tokens = block(tokens, packing.groups)
        tokens = self.norm(tokens)
        packed = self.slot_head(tokens)
        scores = packed.new_zeros(present.numel(), packed.shape[1])
        scores = scores.index_copy(0, packing.token, packed).view(*present.shape, -1)
        split = 1 + view.layout.context_used
        return Reading(
            view,
            tokens.index_select(0, packing.first),
            scores[:, 1:split, :_CONTEXT_SCORES].transpose(1, 2),
            scores[:, split:, _CONTEXT_SCORES:].transpose(1, 2),
        )

    def _tokens(self, view: Trimmed) -> Tensor:
        """Returns (B, 1 + S' + M', D): the global token, the context's and the archive's."""
        arrays = view.observation
        segments: Tensor = self.segment_in(arrays["segments"])
        archive: Tensor = self.archive_in(arrays["archive"])
        state: Tensor = self.state_in(arrays["state"])
        if self.encoder is not None:
            text = self.encoder(arrays)
            segments = segments + self.segment_text_in(text.segments)
            archive = archive + self.archive_text_in(text.archive)
            state = state + self.goal_text_in(text.goal)
        return torch.cat([state[:, None], segments, archive], 1)
