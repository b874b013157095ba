"""The reuse predictor: what will be needed, by supervised learning, and cost arithmetic.

The control that asks whether reinforcement learning is needed at all. A small network estimates
for every segment the probability that a later request needs it; prices then say what hiding it
now would save and what it risks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextpilot.core.edit import Op
from contextpilot.errors import ConfigurationError
from contextpilot.observations.features import OBSERVATION_VERSION, SEGMENT_FEATURES
from contextpilot.observations.observation import Observation
from contextpilot.policies.rules import MAX_STEPS, first

Floats = NDArray[np.float64]

TEXT_BUCKETS = 48
_SHIPPED = Path(__file__).with_name("reuse_model.json")


def reuse_features(observation: Observation, slots: NDArray[np.integer], *, text: bool) -> Floats:
    """Returns the model's input for some slots, (n, F).

    Metadata: the segment features. With text also how many of the segment's hashed words the goal
    has, and a bag of its words in TEXT_BUCKETS buckets.
    """
    meta: Floats = observation.arrays["segments"][slots].astype(np.float64)
    if not text:
        return meta
    tokens = observation.arrays["segment_tokens"][slots].astype(np.int64)
    goal = observation.arrays["goal_tokens"]
    shared = (np.isin(tokens, goal[goal > 0]) & (tokens > 0)).sum(axis=1, keepdims=True) / 4
    bag = np.zeros((len(tokens), TEXT_BUCKETS))
    rows = np.repeat(np.arange(len(tokens)), tokens.shape[1])
    buckets = tokens.ravel() % TEXT_BUCKETS
    np.add.at(bag, (rows, buckets), (tokens.ravel() > 0) / 4)
    return np.concatenate([meta, shared, bag], axis=1)


@dataclass(frozen=True)
class ReuseModel:
    """A network with one hidden layer: p = sigmoid(tanh((x - mean) / scale @ w1 + b1) @ w2 + b2).

    Attributes:
        mean, scale: (F,); w1: (F, H); b1: (H,); w2: (H,); b2: scalar.
        text: whether its input has the text part.
    """

    mean: Floats
    scale: Floats
    w1: Floats
    b1: Floats
    w2: Floats
    b2: float
    text: bool

    def probability(self, features: Floats) -> Floats:
        """Returns the probability that each segment will be needed, (n,)."""
        hidden = np.tanh((features - self.mean) / self.scale @ self.w1 + self.b1)
        return np.asarray(1 / (1 + np.exp(-(hidden @ self.w2 + self.b2))), np.float64)

    def save(self, path: Path) -> None:
        """Writes the model as JSON."""
        arrays = {
            name: np.round(getattr(self, name), 5).tolist()
            for name in ("mean", "scale", "w1", "b1", "w2")
        }
        document = {
            "observation_version": OBSERVATION_VERSION,
            "features": list(SEGMENT_FEATURES),
            "text": self.text,
            "b2": round(self.b2, 5),
            **arrays,
        }
        path.write_text(json.dumps(document) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path = _SHIPPED) -> ReuseModel:
        """Reads a model; without a path the one that ships in the package.

        Raises:
            ConfigurationError: for another observation version, or a file that is no model.
        """
        try:
            document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            version = document["observation_version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{path} is not a reuse model ({error}). Train one with scripts/tune_baselines.py."
            ) from error
        if version != OBSERVATION_VERSION:
            raise ConfigurationError(
                f"{path} was trained on observation version {version}; this is version "
                f"{OBSERVATION_VERSION}. Train it again with scripts/tune_baselines.py."
            )
        arrays = {
            n: np.asarray(document[n], np.float64) for n in ("mean", "scale", "w1", "b1", "w2")
        }
        return cls(**arrays, b2=float(document["b2"]), text=bool(document["text"]))


@dataclass(frozen=True)
class ReusePolicy:
    """Folds what is worth more hidden than shown, whenever a batch pays for its prefix break.

    Attributes:
        model: estimates need.
        remaining_factor: expected remaining requests, as a multiple of the requests so far.
        miss_price: what an unnoticed miss costs, in raw requests of the present size, times the
            probability of not noticing.
        margin: a batch must save this many times what its prefix break costs.
    """

    model: ReuseModel
    remaining_factor: float = 0.7
    miss_price: float = 0.5
    margin: float = 1.0
    name: str = "reuse_predictor"

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns the next fold of the best batch, or keep."""
        allowed = observation.allowed(Op.FOLD, "stub")
        marked = observation.feature("marked") > 0
        flush = observation.allowed(Op.FOLD, "flush") & marked
        if observation.state("step") > 0 and flush.any() and self._just_marked(observation):
            return self._continue(observation, flush)
        slots = np.nonzero(allowed)[0]
        if not len(slots):
            return 0
        batch = self._batch(observation, slots)
        if not len(batch):
            return 0
        steps_left = MAX_STEPS - round(observation.state("step") * MAX_STEPS)
        if len(batch) <= steps_left:
            return observation.action(Op.FOLD, "stub", int(batch[0]))
        unmarked = batch[observation.allowed(Op.EXPIRE, "0")[batch]]
        if len(unmarked) and steps_left > 1:
            return observation.action(Op.EXPIRE, "0", int(unmarked[0]))
        return observation.action(Op.FOLD, "flush", first(flush)) if flush.any() else 0

    def _just_marked(self, observation: Observation) -> bool:
        return round(observation.state("last_op_0") * 6) == Op.EXPIRE

    def _continue(self, observation: Observation, flush: NDArray[np.bool_]) -> int:
        """Goes on marking a batch that has begun, and flushes it with the last step."""
        steps_left = MAX_STEPS - round(observation.state("step") * MAX_STEPS)
        slots = np.nonzero(observation.allowed(Op.FOLD, "stub"))[0]
        batch = self._batch(observation, slots)
        unmarked = batch[observation.allowed(Op.EXPIRE, "0")[batch]]
        if len(unmarked) and steps_left > 1:
            return observation.action(Op.EXPIRE, "0", int(unmarked[0]))
        return observation.action(Op.FOLD, "flush", first(flush))

    def _batch(self, observation: Observation, slots: NDArray[np.integer]) -> NDArray[np.integer]:
        """Returns the slots to fold: all that pay behind the cut that pays most."""
        value = self._value(observation, slots)
        cost = self._break_cost(observation, slots)
        order = np.argsort(-slots)  # from the end to the front
        gains = np.cumsum(np.maximum(value[order], 0.0))
        net = gains - self.margin * cost[order]
        best = int(net.argmax())
        if net[best] <= 0:
            return slots[:0]
        chosen = order[: best + 1]
        return np.sort(slots[chosen[value[chosen] > 0]])

    def _value(self, observation: Observation, slots: NDArray[np.integer]) -> Floats:
        """Returns what hiding each segment now is expected to save, in input tokens."""
        p = self.model.probability(reuse_features(observation, slots, text=self.model.text))
        size = observation.tokens("size")[slots]
        saved = size - observation.tokens("stub")[slots]
        cached, write = observation.state("price_cached"), observation.state("price_write")
        output = observation.state("price_output") * 10
        request = np.expm1(observation.state("request") * 6.0)
        remaining = self.remaining_factor * (request + 4)
        used = observation.state_tokens("used_tokens")
        asking = observation.state_tokens("reload_output_tokens")
        reload = output * asking + cached * used + write * size
        miss = self.miss_price * cached * used
        return np.asarray(cached * saved * remaining - p * (reload + miss), np.float64)

    def _break_cost(self, observation: Observation, slots: NDArray[np.integer]) -> Floats:
        """Returns what losing the cached prefix at each slot costs, in input tokens."""
        cached, write = observation.state("price_cached"), observation.state("price_write")
        behind = observation.tokens("tokens_behind")[slots].astype(np.float64)
        lost = np.where(observation.feature("behind_break")[slots] > 0, 0.0, behind)
        if observation.state("pending_break") > 0:
            already = observation.state_tokens("break_tokens_behind")
            lost = np.maximum(0.0, lost - already)
        return lost * (write - cached) * (observation.state("cold") == 0)
