"""Labelled segments for the reuse predictor, gathered by playing training tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.edit import Op
from contextpilot.observations.observation import Observation
from contextpilot_envs.engine import Engine
from contextpilot_envs.labels import last_needed

FOLD_EVERY = 7
"""Every so many requests some results are folded, so that stubs and copies are seen, too."""


def labelled_segments(
    engine: Engine,
    task_ids: Sequence[str],
    features: Callable[[Observation, NDArray[np.integer]], NDArray[np.float64]],
    seed: int = 0,
    most_per_task: int = 1500,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Returns (features (n, F), needed now or later (n,), number of the task (n,)).

    Args:
        engine: an engine of one row.
        task_ids: training tasks.
        features: encodes the slots of an observation.
        seed: of which results are folded and which lines are kept.
        most_per_task: lines kept of each task.
    """
    rng = np.random.default_rng(seed)
    lines, labels, groups = [], [], []
    for number, task_id in enumerate(task_ids):
        x, y = _of_task(engine, task_id, features, rng)
        kept = rng.permutation(len(x))[:most_per_task]
        lines.append(x[kept])
        labels.append(y[kept])
        groups.append(np.full(len(kept), number))
    return np.concatenate(lines), np.concatenate(labels), np.concatenate(groups)


def _of_task(
    engine: Engine,
    task_id: str,
    features: Callable[[Observation, NDArray[np.integer]], NDArray[np.float64]],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    engine.begin(0, task_id, 0)
    engine.observe([0])
    episode = engine.episodes[0]
    last = last_needed(episode.prepared)
    lines, labels = [], []
    while not episode.ended:
        view = Observation({k: a[0] for k, a in engine.arrays().items()}, engine.codec)
        allowed = view.allowed(Op.FOLD, "stub")
        slots = np.nonzero(allowed)[0]
        index = engine.encoder.slot_index[0, slots]
        native = index < len(last)
        slots, index = slots[native], index[native]
        if engine.states[0].step == 0 and len(slots):
            lines.append(features(view, slots))
            labels.append(last[index] >= episode.context.request)
        fold = len(slots) and rng.random() < 1 / FOLD_EVERY
        action = view.action(Op.FOLD, "stub", int(rng.choice(slots))) if fold else 0
        engine.step([action], [0])
    if not lines:
        width = features(view, np.zeros(0, np.intp)).shape[1]
        return np.zeros((0, width)), np.zeros(0, bool)
    return np.concatenate(lines), np.concatenate(labels)
