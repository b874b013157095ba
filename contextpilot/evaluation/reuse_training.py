"""Fits the reuse predictor's network on labelled segments (needs the extra `tune`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextpilot.errors import ConfigurationError
from contextpilot.policies.reuse import ReuseModel

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledSegments:
    """One line per segment and request.

    Attributes:
        features: (n, F) as `reuse_features` gives them.
        needed: (n,) whether that request or a later one needs the segment.
        weight: (n,) so that every source counts the same.
    """

    features: Floats
    needed: NDArray[np.bool_]
    weight: Floats


def fit_reuse(
    data: LabelledSegments, *, text: bool, hidden: int = 32, alpha: float = 0.1, seed: int = 0
) -> ReuseModel:
    """Returns a network of one hidden layer that estimates need.

    Lines are drawn by weight, since scikit-learn's network takes no weights itself.

    Raises:
        ConfigurationError: when the extra `tune` is not installed.
    """
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise ConfigurationError(
            "fitting the reuse predictor needs scikit-learn: pip install 'contextpilot-rl[tune]'."
        ) from error
    rng = np.random.default_rng(seed)
    p = data.weight / data.weight.sum()
    chosen = rng.choice(len(p), size=min(len(p), 120_000), p=p)
    x, y = data.features[chosen], data.needed[chosen]
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-3
    network = MLPClassifier(
        (hidden,), activation="tanh", alpha=alpha, batch_size=512, learning_rate_init=2e-3,
        max_iter=40, early_stopping=True, n_iter_no_change=4, random_state=seed,
    )  # fmt: skip
    network.fit((x - mean) / scale, y)
    (w1, w2), (b1, b2) = network.coefs_, network.intercepts_
    return ReuseModel(mean, scale, w1, b1, w2[:, 0], float(b2[0]), text)


def auc(scores: Floats, needed: NDArray[np.bool_]) -> float:
    """Returns the area under the ROC curve (Mann-Whitney U / (n+ n-)), ties counted half."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    _, inverse = np.unique(scores, return_inverse=True)
    sums = np.bincount(inverse, weights=ranks)
    ranks = (sums / np.bincount(inverse))[inverse]
    positive = int(needed.sum())
    negative = len(needed) - positive
    if not positive or not negative:
        return float("nan")
    return float((ranks[needed].sum() - positive * (positive + 1) / 2) / (positive * negative))
