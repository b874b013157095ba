"""Supervised labels for the reuse predictor: which segments a later request needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contextpilot_envs.simulator.prepared import PreparedTask


def last_needed(prepared: PreparedTask) -> NDArray[np.int64]:
    """Returns per segment the last request that needs a fact of it; -1 for none, (N,).

    Facts that a pinned segment states are needed of no other. Where several segments state a fact,
    all of them count: the agent could use any.
    """
    task = prepared.task
    last = np.full(len(task.segments), -1, np.int64)
    for demand in task.demands:
        for fact_id in demand.facts:
            holders = task.facts[fact_id].segments
            if any(task.segments[i].pinned for i in holders):
                continue
            for i in holders:
                if task.arrivals[i] <= demand.request:
                    last[i] = max(last[i], demand.request)
    return last
