"""An observation as policies see it: arrays, and a readable view of the same facts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.edit import Op
from contextpilot.core.segment import Form, Kind
from contextpilot.edits.codec import ARCHIVE_PRESETS, CONTEXT_PRESETS, ActionCodec
from contextpilot.observations.features import (
    AGE_SCALE,
    ARCHIVE_INDEX,
    SEGMENT_INDEX,
    STATE_INDEX,
    TOKEN_SCALE,
)

_START = {(p.op, p.name): i for i, p in enumerate(CONTEXT_PRESETS)}
_KINDS = slice(SEGMENT_INDEX["kind_text"], SEGMENT_INDEX["kind_text"] + len(Kind))
_FORMS = slice(SEGMENT_INDEX["form_full"], SEGMENT_INDEX["form_full"] + len(Form) - 1)


class Observation:
    """One decision's arrays with the names and shapes of `ObservationEncoder`, without B.

    Attributes:
        arrays: the arrays themselves, not copied.
        codec: the action layout that `action_mask` has.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], codec: ActionCodec) -> None:
        self.arrays, self.codec = arrays, codec

    def feature(self, name: str) -> NDArray[np.float32]:
        """Returns a segment feature, (S,)."""
        column: NDArray[np.float32] = self.arrays["segments"][:, SEGMENT_INDEX[name]]
        return column

    def tokens(self, name: str) -> NDArray[np.int64]:
        """Returns a token feature ("size", "full", "stub", "tokens_behind") in tokens, (S,)."""
        exact = np.expm1(self.feature(name).astype(np.float64) * TOKEN_SCALE)
        return np.rint(exact).astype(np.int64)

    def requests(self, name: str) -> NDArray[np.int64]:
        """Returns an age feature in requests, (S,)."""
        exact = np.expm1(self.feature(name).astype(np.float64) * AGE_SCALE)
        return np.rint(exact).astype(np.int64)

    def state(self, name: str) -> float:
        """Returns a state feature."""
        return float(self.arrays["state"][STATE_INDEX[name]])

    def state_tokens(self, name: str) -> int:
        """Returns a state feature in tokens."""
        return round(float(np.expm1(self.state(name) * TOKEN_SCALE)))

    @cached_property
    def visible(self) -> NDArray[np.bool_]:
        """Which slots hold something visible, (S,)."""
        return np.asarray(self.arrays["segment_mask"], bool)

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """The kind of each slot's segment, (S,); meaningless where a slot is empty."""
        return np.asarray(self.arrays["segments"][:, _KINDS].argmax(axis=1), np.int64)

    @cached_property
    def forms(self) -> NDArray[np.int64]:
        """The form of each slot's segment, (S,); 0 where a slot is empty."""
        shown = self.arrays["segments"][:, _FORMS]
        return np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, 0)

    def allowed(self, op: Op, preset: str) -> NDArray[np.bool_]:
        """Returns on which context slots an operation is legal, (S,)."""
        slots = self.codec.context_slots
        start = 1 + _START[op, preset] * slots
        return np.asarray(self.arrays["action_mask"][start : start + slots], bool)

    def archive_allowed(self, preset: str) -> NDArray[np.bool_]:
        """Returns from which archive slots a reload is legal, (M,)."""
        slots = self.codec.archive_slots
        names = [p.name for p in ARCHIVE_PRESETS]
        start = self.codec.archive_start + names.index(preset) * slots
        return np.asarray(self.arrays["action_mask"][start : start + slots], bool)

    def action(self, op: Op, preset: str, slot: int) -> int:
        """Returns the action of an operation on a context slot."""
        return self.codec.encode(op, preset, int(slot))

    def readable(self) -> dict[str, Any]:
        """Returns the same facts as a dict: what is visible, what is archived, the budget."""
        sizes, full, ages = self.tokens("size"), self.tokens("full"), self.requests("age")
        active = [
            {
                "slot": int(s),
                "kind": Kind(int(self.kinds[s])).name.lower(),
                "form": Form(int(self.forms[s])).name.lower(),
                "tokens": int(sizes[s]),
                "full_tokens": int(full[s]),
                "age_requests": int(ages[s]),
                "pinned": bool(self.feature("pinned")[s]),
                "marked": bool(self.feature("marked")[s]),
                "goal_relevance": round(float(self.feature("goal_relevance")[s]), 3),
            }
            for s in np.nonzero(self.visible)[0]
        ]
        archive = self.arrays["archive"]
        archived = [
            {
                "slot": int(m),
                "full_tokens": round(
                    float(np.expm1(archive[m, ARCHIVE_INDEX["full"]] * TOKEN_SCALE))
                ),
                "covered_by_summary": bool(archive[m, ARCHIVE_INDEX["covered"]]),
            }
            for m in np.nonzero(self.arrays["archive_mask"])[0]
        ]
        last = [self.state(f"last_op_{i}") for i in range(4)]
        return {
            "active_context": active,
            "summary_index": archived,
            "used_tokens": self.state_tokens("used_tokens"),
            "max_tokens": self.state_tokens("limit_tokens"),
            "last_actions": [Op(round(op * 6)).name.lower() for op in last if op >= 0],
        }
