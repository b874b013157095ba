"""How large a pointer network is; written into its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from contextpilot.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class PointerConfig:
    """Size of a pointer network, and the action layout that it was trained in.

    Attributes:
        width: of every token, a multiple of `heads`.
        layers, heads: of the transformer.
        backbone: what reads the segments' texts; "none": numeric features alone.
        context_slots, archive_slots: of training. The network itself takes any number.
    """

    width: int = 64
    layers: int = 2
    heads: int = 4
    backbone: str = "none"
    context_slots: int = 32
    archive_slots: int = 8

    def __post_init__(self) -> None:
        """Refuses sizes that no network has.

        Raises:
            ConfigurationError: naming the field and what was received.
        """
        least = {"width": 1, "layers": 1, "heads": 1, "context_slots": 1, "archive_slots": 0}
        for name, minimum in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
                raise ConfigurationError(
                    f"`{name}` must be an integer of at least {minimum}. Received {value!r}."
                )
        if self.width % self.heads:
            raise ConfigurationError(
                f"`width` must be a multiple of `heads`. Received {self.width} and {self.heads}."
            )
