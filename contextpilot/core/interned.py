"""A segment with what every context computes of it once: tokens and text per form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from contextpilot.core.segment import Form, Kind, Segment


class Renderer(Protocol):
    """What makes the forms of segments."""

    def render(self, segment: Segment, form: Form) -> tuple[str, int]:
        """Returns the text that a form shows and its tokens."""
        ...


# Plain integers: the live state holds forms as numbers, and enumeration look-ups are slow.
_ABSENT, _FULL, _STUB = int(Form.ABSENT), int(Form.FULL), int(Form.STUB)
_COPY, _TURN = int(Kind.COPY), int(Kind.TURN)


class Interned:
    """One segment, shared by all contexts of a task; forms are rendered when first asked for.

    Attributes:
        segment: the original.
        id: its id.
        kind, has_reasoning: the segment's own, as the columns hold them.
        origin: for a copy, the index of what it shows once more; else -1.
        leader: index of the exchange's turn, or the segment's own index.
        resource: what a result is a reading of (a path, a query); "" where unknown.
        references: indices of earlier segments whose distinctive strings this one repeats.
        text_tokens: the agent's tokens of the text alone; -1 until they are counted.
        goal_relevance: BM25 against the goal as a share of the largest possible score, in [0, 1].
    """

    __slots__ = (
        "_rendered",
        "_renderer",
        "foldable",
        "full_tokens",
        "goal_relevance",
        "has_reasoning",
        "id",
        "kind",
        "leader",
        "origin",
        "references",
        "resource",
        "segment",
        "stub_tokens",
        "text_tokens",
    )

    def __init__(
        self,
        segment: Segment,
        renderer: Renderer,
        *,
        leader: int,
        full_tokens: int,
        stub_tokens: int,
        resource: str = "",
        references: tuple[int, ...] = (),
        goal_relevance: float = 0.0,
    ) -> None:
        self.segment, self.id = segment, segment.id
        self.kind = int(segment.kind)
        self.has_reasoning = segment.has_reasoning
        self.origin = self.text_tokens = -1
        self.leader = leader
        self.full_tokens = full_tokens
        self.stub_tokens = stub_tokens
        self.foldable = stub_tokens < full_tokens
        self.resource = resource
        self.references = references
        self.goal_relevance = goal_relevance
        self._renderer = renderer
        self._rendered: dict[int, tuple[str, int]] = {}

    def tokens(self, form: int) -> int:
        """Returns what showing the segment in a form costs."""
        if form == _FULL:
            return self.full_tokens
        if form == _ABSENT:
            return 0
        if form == _STUB:
            return self.stub_tokens
        return self._show(form)[1]

    def text(self, form: int) -> str:
        """Returns what the agent's model reads of the segment in a form."""
        if form == _FULL:
            return self.segment.text
        return "" if form == _ABSENT else self._show(form)[0]

    def set_summary(self, text: str, tokens: int) -> None:
        """Keeps a summary that a summarizer made, so that replays show the same one."""
        self._rendered[int(Form.SUMMARY)] = (text, tokens)

    def _show(self, form: int) -> tuple[str, int]:
        shown = self._rendered.get(form)
        if shown is None:
            shown = self._rendered[form] = self._renderer.render(self.segment, Form(form))
        return shown


class InternedCopy(Interned):
    """A copy of an interned original. Most copies are never read, so its segment is made late."""

    __slots__ = ("_make", "_original")

    def __init__(
        self, original: Interned, make: Callable[[Segment, str], Segment], segment_id: str, *,
        origin: int, leader: int, stub_tokens: int,
    ) -> None:  # fmt: skip
        """Takes what it shows, what makes its segment of that and of an id, and the id."""
        self.id, self.kind = segment_id, _COPY
        # A turn's copy shows its calls as text.
        self.text_tokens = -1 if original.kind == _TURN else original.text_tokens
        self.has_reasoning = original.has_reasoning
        self.origin = origin
        self.leader = leader
        self.full_tokens = original.full_tokens
        self.stub_tokens = stub_tokens
        self.foldable = stub_tokens < original.full_tokens
        self.resource = ""
        self.references = ()
        self.goal_relevance = original.goal_relevance
        self._renderer = original._renderer
        self._rendered = {}
        self._make, self._original = make, original

    def text(self, form: int) -> str:
        """Returns what the agent's model reads of the copy in a form."""
        if form == _FULL and self._original.kind != _TURN:
            return self._original.segment.text
        return super().text(form)

    def __getattr__(self, name: str) -> Segment:
        """Makes the segment when it is first asked for; no other attribute is ever missing."""
        if name != "segment":
            raise AttributeError(name)
        self.segment = self._make(self._original.segment, self.id)
        return self.segment
