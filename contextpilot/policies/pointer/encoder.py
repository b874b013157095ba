"""Where a language model joins in: something that turns segments' texts into vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from torch import Tensor

from contextpilot.errors import ConfigurationError, did_you_mean

TEXT_INPUTS = ("segment_tokens", "archive_tokens", "goal_tokens")
"""The arrays of an observation that hold text."""

BACKBONES = ("none",)


class EncodedText(NamedTuple):
    """Vectors of texts: segments (B, S, E), archive (B, M, E), goal (B, E)."""

    segments: Tensor
    archive: Tensor
    goal: Tensor


class SegmentEncoder(Protocol):
    """Reads texts. One that is an `nn.Module` is trained and saved with its network."""

    @property
    def width(self) -> int:
        """E, the length of a vector."""
        ...

    def __call__(self, observation: Mapping[str, Tensor]) -> EncodedText:
        """Returns the vectors of an observation's slots; empty slots may have any."""
        ...


def segment_encoder(backbone: str) -> SegmentEncoder | None:
    """Returns the encoder that a backbone gives; none where only numeric features are read.

    Raises:
        ConfigurationError: for an unknown backbone, with the nearest known one.
    """
    if backbone not in BACKBONES:
        raise ConfigurationError(
            f"`backbone` has an unknown value. Received {backbone!r}."
            f"{did_you_mean(backbone, BACKBONES)}"
        )
    return None
