"""Where the time of collecting and updating goes: cProfile's figures, grouped."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

Place = tuple[str, str]
"""(end of a file's path, function) whose time, callees included, belongs to one group. The places
of a phase never call one another."""

_ENVIRONMENT: tuple[Place, ...] = (
    ("gymnasium/vector/sync_vector_env.py", "step"),
    ("gymnasium/vector/sync_vector_env.py", "reset"),
)
COLLECT: Mapping[str, tuple[Place, ...]] = MappingProxyType(
    {
        "environment": _ENVIRONMENT,
        "policy forward": (
            ("training/rollout.py", "act"),
            ("training/rollout.py", "value"),
            ("common/maskable/policies.py", "forward"),
            ("common/maskable/policies.py", "predict_values"),
        ),
    }
)
UPDATE: Mapping[str, tuple[Place, ...]] = MappingProxyType(
    {
        "update backward": (("torch/_tensor.py", "backward"),),
        "update optimiser": (
            ("torch/optim/adam.py", "step"),
            ("torch/optim/optimizer.py", "zero_grad"),
            ("torch/nn/utils/clip_grad.py", "clip_grad_norm_"),
        ),
        "bookkeeping": (
            ("training/rollout.py", "tensors"),
            ("training/metrics.py", "add"),
            ("training/ppo.py", "<dictcomp>"),
            ("common/maskable/buffers.py", "_get_samples"),
            ("common/maskable/buffers.py", "swap_and_flatten"),
            ("common/buffers.py", "swap_and_flatten"),
        ),
    }
)
_REST_OF_COLLECT, _REST_OF_UPDATE = "bookkeeping", "update forward"
GROUPS = (
    "environment", "policy forward", "update forward", "update backward", "update optimiser",
    "bookkeeping",
)  # fmt: skip
SHOWN = 15


@dataclass(frozen=True, slots=True)
class Function:
    """A function's figures: calls, seconds of its own, seconds with all that it calls."""

    name: str
    calls: int
    own: float
    cumulative: float


@dataclass(frozen=True, slots=True)
class Profile:
    """A learner's profile; seconds under cProfile, which slows Python down but not PyTorch.

    Attributes:
        groups: seconds of each of `GROUPS`. Losses count to "update forward".
        by_own, by_cumulative: the functions that take longest.
    """

    groups: dict[str, float]
    by_own: tuple[Function, ...]
    by_cumulative: tuple[Function, ...]

    def to_json(self) -> dict[str, object]:
        """Returns the fields as JSON knows them."""
        return asdict(self)


class Profiler:
    """Profiles collecting and updating apart, so that a function that both call is told apart."""

    def __init__(self) -> None:
        self._collect, self._update = cProfile.Profile(), cProfile.Profile()

    def run(self, iteration: Callable[[AbstractContextManager[object]], object]) -> None:
        """Runs an iteration; it makes its update inside the context that it is given."""
        self._collect.enable()
        try:
            iteration(_Switch(self._collect, self._update))
        finally:
            self._collect.disable()

    def profile(self) -> Profile:
        """Returns what was found."""
        phases = [
            (pstats.Stats(self._collect), COLLECT, _REST_OF_COLLECT),
            (pstats.Stats(self._update), UPDATE, _REST_OF_UPDATE),
        ]
        groups = dict.fromkeys(GROUPS, 0.0)
        for stats, places, rest in phases:
            left = float(stats.total_tt)  # type: ignore[attr-defined]
            for group, members in places.items():
                seconds = _cumulative(stats, members)
                groups[group] += seconds
                left -= seconds
            groups[rest] += left
        functions = _functions(pstats.Stats(self._collect, self._update))
        return Profile(
            groups,
            tuple(sorted(functions, key=lambda f: -f.own)[:SHOWN]),
            tuple(sorted(functions, key=lambda f: -f.cumulative)[:SHOWN]),
        )


class _Switch(AbstractContextManager[object]):
    """Profiles with the second profiler inside, with the first one outside."""

    def __init__(self, outside: cProfile.Profile, inside: cProfile.Profile) -> None:
        self._outside, self._inside = outside, inside

    def __enter__(self) -> None:
        self._outside.disable()
        self._inside.enable()

    def __exit__(self, *_error: object) -> None:
        self._inside.disable()
        self._outside.enable()


def _cumulative(stats: pstats.Stats, places: Sequence[Place]) -> float:
    return sum(
        row[3]
        for (file, _, function), row in stats.stats.items()  # type: ignore[attr-defined]
        if any(file.endswith(end) and function == name for end, name in places)
    )


def _functions(stats: pstats.Stats) -> list[Function]:
    return [
        Function(_shown(file, line, name), calls, own, cumulative)
        for (file, line, name), (_, calls, own, cumulative, _) in stats.stats.items()  # type: ignore[attr-defined]
    ]


def _shown(file: str, line: int, name: str) -> str:
    """Returns "folder/file.py:line function": no path of the machine it ran on."""
    if file == "~":
        return name
    return f"{'/'.join(Path(file).parts[-2:])}:{line} {name}"
