"""The Gymnasium spaces of an observation and of the action layout."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from contextpilot.edits.codec import ActionCodec
from contextpilot.observations.features import (
    ARCHIVE_FEATURES,
    SEGMENT_FEATURES,
    STATE_FEATURES,
)
from contextpilot.observations.text import (
    GOAL_TEXT_TOKENS,
    SEGMENT_TEXT_TOKENS,
    TEXT_VOCABULARY,
)


def observation_space(codec: ActionCodec) -> spaces.Dict:
    """Returns the space of one observation; shapes as in `ObservationEncoder`, without B."""

    def floats(*shape: int) -> spaces.Box:
        return spaces.Box(-2.0, 4.0, shape, np.float32)

    def tokens(*shape: int) -> spaces.Box:
        return spaces.Box(0, TEXT_VOCABULARY - 1, shape, np.int16)

    def mask(*shape: int) -> spaces.Box:
        return spaces.Box(0, 1, shape, np.int8)

    slots, archived = codec.context_slots, codec.archive_slots
    return spaces.Dict(
        {
            "segments": floats(slots, len(SEGMENT_FEATURES)),
            "segment_tokens": tokens(slots, SEGMENT_TEXT_TOKENS),
            "segment_mask": mask(slots),
            "archive": floats(archived, len(ARCHIVE_FEATURES)),
            "archive_tokens": tokens(archived, SEGMENT_TEXT_TOKENS),
            "archive_mask": mask(archived),
            "goal_tokens": tokens(GOAL_TEXT_TOKENS),
            "state": floats(len(STATE_FEATURES)),
            "action_mask": mask(codec.size),
        }
    )


def action_space(codec: ActionCodec) -> spaces.Discrete:
    """Returns the space of actions, `Discrete(A)`."""
    return spaces.Discrete(codec.size)
