"""pi(op) * pi(preset, slot | op) over the legal actions.

Inside, what is illegal has the finite log probability `_NEVER`: its exponential is exactly 0 and
every gradient through it is 0, where -inf would give NaN (0 * inf). Outside it is -inf.
"""

from __future__ import annotations

from itertools import groupby

import torch
from torch import Tensor

from contextpilot.core.edit import Op
from contextpilot.edits.codec import CONTEXT_PRESETS
from contextpilot.errors import ConfigurationError
from contextpilot.policies.pointer.layout import Layout, action_tables

_NEVER = -1e30
_INFINITY = float("inf")

_GROUPS = tuple(
    (op, len(list(presets))) for op, presets in groupby(preset.op for preset in CONTEXT_PRESETS)
)
"""(operation, its number of presets) in the order of the codec, where they lie together."""

_WIDTHS = [width for _, width in _GROUPS]
_ORDER = [int(op) for op, _ in _GROUPS]
assert [int(Op.KEEP), *_ORDER] == list(range(len(Op)))  # columns of operations need no sorting
_RELOAD = _ORDER.index(Op.RELOAD)


class ActionDistribution:
    """A distribution over actions for each of B rows; every row has a legal action.

    Args:
        op_logits: (B, 7).
        context_scores, context_legal: (B, P, S'), archive_scores, archive_legal: (B, Q, M') for
            the used slots. Each operation's scores are normalised over all that it may do.
        keep_legal: (B, 1) bool.
        layout: the used and the full action layout.

    Raises:
        ConfigurationError: when a row has no legal action.
    """

    def __init__(
        self,
        op_logits: Tensor,
        context_scores: Tensor,
        archive_scores: Tensor,
        *,
        keep_legal: Tensor,
        context_legal: Tensor,
        archive_legal: Tensor,
        layout: Layout,
    ) -> None:
        self.layout = layout
        self._tables = action_tables(layout, op_logits.device)
        scores = _by_op(context_scores, archive_scores)
        legal = _by_op(context_legal, archive_legal)
        self._legal = [keep_legal, *legal]
        self._op_legal = torch.cat([ok.any(1, keepdim=True) for ok in self._legal], 1)
        if not self._op_legal.any(1).all():
            empty = (~self._op_legal.any(1)).nonzero()[:, 0].tolist()
            raise ConfigurationError(
                "every row needs a legal action; keep always is one. "
                f"Received an `action_mask` without any in the rows {empty}."
            )
        self._op = op_logits.masked_fill(~self._op_legal, _NEVER).log_softmax(1)
        self._joint = self._joint_log_probs(
            [own.masked_fill(~ok, _NEVER) for own, ok in zip(scores, legal, strict=True)]
        )

    @property
    def op_log_probs(self) -> Tensor:
        """Log pi(op), (B, 7); -inf where no action of the operation is legal."""
        return self._op.masked_fill(~self._op_legal, -_INFINITY)

    @property
    def log_probs(self) -> Tensor:
        """Log pi(action), (B, A) in the full layout; -inf where illegal."""
        legal = torch.cat(_in_codec_order(self._legal, self.layout), 1)
        used = self._joint.masked_fill(~legal, -_INFINITY)
        full = used.new_full((len(used), self.layout.size), -_INFINITY)
        return full.index_copy(1, self._tables.full, used)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draws actions, (B,). One number is drawn per row, whatever slots are used.

        Inverse transform sampling in float64: what is illegal adds nothing to the cumulated
        probabilities, so it is never the first to exceed the number drawn.
        """
        with torch.no_grad():
            cumulated = self._probabilities().cumsum(1, dtype=torch.float64)
            shape = (len(cumulated), 1)
            drawn = torch.rand(
                shape, dtype=torch.float64, device=cumulated.device, generator=generator
            )
            found = torch.searchsorted(cumulated, drawn * cumulated[:, -1:], right=True)
            return self._tables.full[found[:, 0]]

    def mode(self) -> Tensor:
        """Returns the likeliest operation's likeliest action, (B,).

        The likeliest action of all would almost always be keep, which needs no slot.
        """
        with torch.no_grad():
            other = self._tables.op != self._op.argmax(1, keepdim=True)
            best = self._joint.masked_fill(other, -_INFINITY).argmax(1)
            return self._tables.full[best]

    def log_prob(self, actions: Tensor) -> Tensor:
        """Returns log pi of full actions (B,), (B,); -inf where illegal."""
        used = self._tables.used[actions]
        found = self._joint.gather(1, used.clamp(min=0)[:, None])[:, 0]
        return found.masked_fill((used < 0) | (found < _NEVER / 2), -_INFINITY)

    def entropy(self) -> Tensor:
        """Returns the entropy of the joint distribution in nats, (B,)."""
        return -(self._probabilities() * self._joint).sum(1)

    def kl(self, other: ActionDistribution) -> Tensor:
        """Returns KL(self || other) in nats, (B,); both are of the same observations.

        Raises:
            ConfigurationError: when the action layouts differ.
        """
        if self.layout != other.layout:
            raise ConfigurationError(
                "a divergence compares distributions of the same observations. "
                f"Received the layouts {self.layout} and {other.layout}."
            )
        return (self._probabilities() * (self._joint - other._joint)).sum(1)

    def _joint_log_probs(self, scores: list[Tensor]) -> Tensor:
        """Log pi of the used actions, (B, A'); at most `_NEVER` / 2 where illegal."""
        keep, *ops = torch.split(self._op, 1, 1)
        parts = [keep]
        for op, own in zip(ops, scores, strict=True):
            parts.append(op + own.log_softmax(1) if own.shape[1] else own)
        return torch.cat(_in_codec_order(parts, self.layout), 1)

    def _probabilities(self) -> Tensor:
        """The exponential of `_joint`, by what is several times faster far below 0."""
        return self._joint.softmax(1)


def _by_op(context: Tensor, archive: Tensor) -> list[Tensor]:
    """Cuts (B, P, S') and (B, Q, M') into what each operation but keep may do, (B, n) each."""
    parts = [part.flatten(1) for part in torch.split(context, _WIDTHS, 1)]
    parts[_RELOAD] = torch.cat([parts[_RELOAD], archive.flatten(1)], 1)
    return parts


def _in_codec_order(parts: list[Tensor], layout: Layout) -> list[Tensor]:
    """Moves what concerns the archive, which belongs to reload, to the end."""
    cut = _WIDTHS[_RELOAD] * layout.context_used
    reload = parts[1 + _RELOAD]
    return [
        *parts[: 1 + _RELOAD], reload[:, :cut], *parts[2 + _RELOAD :], reload[:, cut:]
    ]  # fmt: skip
