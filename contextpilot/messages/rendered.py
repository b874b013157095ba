"""A segment together with the form that it is shown in: what rendering starts from."""

from __future__ import annotations

from dataclasses import dataclass

from contextpilot.core.segment import Form, Segment
from contextpilot.errors import MessageFormatError


@dataclass(frozen=True, slots=True)
class RenderedSegment:
    """One visible segment.

    Attributes:
        segment: the original.
        form: how it is shown; never `Form.ABSENT`, absent segments are left out by the caller.
        text: shown instead of the content where form is STUB, OUTLINE or SUMMARY.
    """

    segment: Segment
    form: Form
    text: str | None = None

    def __post_init__(self) -> None:
        if self.form == Form.ABSENT:
            raise MessageFormatError(
                f"segment {self.segment.id} cannot be rendered. Received form ABSENT. "
                "Leave absent segments out of the list."
            )

    @property
    def shown_text(self) -> str:
        """What is read of the segment, whatever its form.

        Raises:
            MessageFormatError: when an edited form comes without its text.
        """
        if self.form == Form.FULL:
            return self.segment.text
        if self.text is None:
            raise MessageFormatError(
                f"segment {self.segment.id} has no text for its form. Received form "
                f"{self.form.name} with text None. Pass the text that the form shows."
            )
        return self.text
