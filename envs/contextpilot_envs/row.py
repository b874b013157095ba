"""What an engine knows of each row besides its episode, and how a row is kept for later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.hindsight import Trace
from contextpilot_envs.potentials import PotentialTracker
from contextpilot_envs.simulator.episode import EpisodeSnapshot


@dataclass(slots=True)
class RowState:
    """What a row knows besides its episode: edit step, masked actions, and what follows it.

    Attributes:
        tracker: of the potentials, where a weighted term needs them.
        trace: of the steps, where hindsight is asked for.
    """

    step: int = 0
    invalid: int = 0
    tracker: PotentialTracker | None = None
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """One row, ready to be restored."""

    episode: EpisodeSnapshot
    task_id: str
    step: int
    invalid: int
    slots: NDArray[np.integer]
    archived: NDArray[np.integer]
    trace: Trace | None = None
