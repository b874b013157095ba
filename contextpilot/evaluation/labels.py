"""Where the names of points go so that none covers another. Pure geometry, in pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.float64]
_ANGLES = np.deg2rad([0, 180, 90, 270, 45, 135, 315, 225, 22, 158, 338, 202, 67, 113, 247, 293])
_REACHES = (0.5, 1.0, 1.7, 2.6, 3.8, 5.2, 7.0, 9.0, 11.0, 13.0, 15.0)
_FORBIDDEN = 1e6


def place(
    anchors: Pixels, sizes: Pixels, frame: Pixels, obstacles: Pixels, weights: Pixels
) -> Pixels:
    """Returns label centres `(N, 2)` beside their anchors `(N, 2)`, none upon another.

    Greedy, the most crowded anchor first: of positions around the anchor, nearest first, the one
    that covers least.

    Args:
        anchors: the labelled points.
        sizes: width and height of each label.
        frame: left, bottom, right, top that labels must stay in.
        obstacles: boxes `(K, 4)` that labels should not cover, as left, bottom, right, top.
        weights: `(K,)` how bad it is to cover each, per square pixel; a label is forbidden.
    """
    distances = np.linalg.norm(anchors[:, None] - anchors[None], axis=-1)
    crowding = np.sum(1.0 / (distances + sizes[:, :1].mean()), axis=1)
    boxes, costs = obstacles, weights
    centres = np.zeros_like(anchors)
    for index in np.argsort(-crowding, kind="stable"):
        options = _options(anchors[index], sizes[index])
        candidates = np.hstack((options - sizes[index] / 2, options + sizes[index] / 2))
        away = np.linalg.norm(options - anchors[index], axis=1) - sizes[index][0] / 2
        outside = np.clip(frame[:2] - candidates[:, :2], 0, None).sum(axis=1)
        outside += np.clip(candidates[:, 2:] - frame[2:], 0, None).sum(axis=1)
        covered = _overlap(candidates, boxes) @ costs
        best = int(np.argmin(covered + _FORBIDDEN * outside + away))
        centres[index] = options[best]
        boxes = np.vstack((boxes, candidates[best]))
        costs = np.append(costs, _FORBIDDEN)
    return centres


def _options(anchor: Pixels, size: Pixels) -> Pixels:
    """Returns label centres `(O, 2)` in rings around an anchor, the nearest ring first."""
    unit = np.stack((np.cos(_ANGLES), np.sin(_ANGLES)), axis=1)
    height = size[1]
    rings = [unit * (size / 2 + height * reach) for reach in _REACHES]
    options: Pixels = anchor + np.concatenate(rings)
    return options


def _overlap(first: Pixels, second: Pixels) -> Pixels:
    """Returns the common area `(A, B)` of boxes `(A, 4)` and `(B, 4)`."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    area: Pixels = np.prod(np.clip(high - low, 0, None), axis=-1)
    return area
