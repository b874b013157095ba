"""How fast our PPO trains, against sb3-contrib's MaskablePPO in the same run.

    python scripts/benchmark_training.py [--output results/benchmark_training.json] [--quick]

All learners step a Gymnasium SyncVectorEnv of the same environments, one PyTorch thread, the same
observations, minibatches, epochs and learning rate, networks with the same number of parameters,
and begin each round from fresh weights. What is counted is steps that are trained on, per second
of process time (and of wall time), for collecting and updating together. They take turns, so that
whatever else the machine does weighs on all. Needs the extra `dev`.

MaskablePPO is met twice: with PyTorch's transformer layers over all slots, and with the pointer
network's own code, where no more than the libraries' loops differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import reduce
from importlib import metadata
from operator import add
from pathlib import Path

import torch
from benchmark_learners import Learner, Own, Sample, Settings
from benchmark_profile import Function, Profile, Profiler

from contextpilot.errors import ConfigurationError
from contextpilot.training.versions import versions
from contextpilot_envs.benchmark import Ratio

OUTPUT = Path("results/benchmark_training.json")
TARGET = "at least 1.5"
QUICK = Settings(copies=2, episodes=4, iterations=1, rounds=2, tasks=4, horizon=8, minibatch=64)
AGREEMENT = 0.1
"""How far steps per iteration may differ."""

Samples = Mapping[str, Sequence[Sample]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, profiles, prints, saves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help=f"by default {OUTPUT}; with --quick nowhere")
    parser.add_argument("--quick", action="store_true", help="a few steps, which measure nothing")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    settings = QUICK if given.quick else Settings()
    try:
        learners = make_learners(settings)
    except ConfigurationError as error:
        parser.exit(1, f"{error}\n")
    samples = take_turns(learners, settings)
    ratios = compare(samples)
    profiles = {learner.name: profile(learner, settings) for learner in learners}
    print_measured(learners, samples, ratios)
    for name, found in profiles.items():
        print_profile(name, found)
    output = given.output or (None if given.quick else OUTPUT)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        saved = document(settings, learners, samples, ratios, profiles)
        output.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
        print(f"\nsaved: {output}")


def make_learners(settings: Settings) -> list[Learner]:
    """Returns our own PPO, and opponents that take as many steps per iteration as it does.

    Raises:
        ConfigurationError: without sb3-contrib.
    """
    try:
        from benchmark_opponents import Opponent
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"this benchmark compares with sb3-contrib. Received: {error}. "
            'Install the extra "dev": pip install "contextpilot-rl[dev]".'
        ) from error
    own = Own(settings)
    steps = _round(own, settings).steps / settings.iterations
    return [own, *(Opponent(settings, steps, packed=packed) for packed in (False, True))]


def take_turns(learners: Sequence[Learner], settings: Settings) -> dict[str, list[Sample]]:
    """Returns each learner's rounds; every other round they come in reverse."""
    samples: dict[str, list[Sample]] = {learner.name: [] for learner in learners}
    for learner in learners[1:]:
        _round(learner, settings)  # as our own has done already
    for number in range(settings.rounds):
        for learner in learners if number % 2 == 0 else learners[::-1]:
            samples[learner.name].append(_round(learner, settings))
    return samples


def _round(learner: Learner, settings: Settings) -> Sample:
    learner.begin()
    return reduce(add, (learner.iterate(nullcontext()) for _ in range(settings.iterations)))


def compare(samples: Samples) -> list[Ratio]:
    """Returns our steps per second over each opponent's, in process time and in wall time."""
    own, *others = samples
    return [
        _ratio(f"{own} / {other}, {clock} time", samples[own], samples[other], clock)
        for other in others
        for clock in ("process", "wall")
    ]


def _ratio(name: str, ours: Sequence[Sample], theirs: Sequence[Sample], clock: str) -> Ratio:
    speeds = [[s.steps / getattr(s, clock) for s in each] for each in (ours, theirs)]
    ratios = sorted(a / b for a, b in zip(*speeds, strict=True))
    first, second = (sorted(each)[len(each) // 2] for each in speeds)
    return Ratio(name, first, second, ratios[len(ratios) // 2], ratios[0], ratios[-1], TARGET)


def profile(learner: Learner, settings: Settings) -> Profile:
    """Returns the profile of a further round, which is not among the measured ones."""
    profiler = Profiler()
    learner.begin()
    for _ in range(settings.iterations):
        profiler.run(learner.iterate)
    return profiler.profile()


def print_measured(learners: Sequence[Learner], samples: Samples, ratios: Sequence[Ratio]) -> None:
    """Prints what each learner did and took, and the ratios."""
    rounds = len(samples[learners[0].name])
    print(f"Milliseconds of wall time per trained step, {rounds} rounds in turn; one thread")
    print(f"{'':30}{'parameters':>11}{'steps':>7}{'length':>8}{'unused':>8}", end="")
    print(f"{'env':>8}{'policy':>8}{'update':>8}{'other':>8}{'all':>8}")
    totals = {name: reduce(add, taken) for name, taken in samples.items()}
    for learner in learners:
        total = totals[learner.name]
        parts = (total.environment, total.policy, total.update, total.bookkeeping, total.wall)
        unused = 1 - total.steps / total.played
        print(
            f"{learner.name:30}{learner.parameters:11}{total.steps // rounds:7}"
            f"{total.steps / max(1, total.episodes):8.1f}{unused:8.1%}"
            + "".join(f"{1000 * part / total.steps:8.3f}" for part in parts)
        )
    print("steps: trained on per round; length: of an episode; unused: played, not trained on\n")
    steps = [total.steps for total in totals.values()]
    if max(steps) > (1 + AGREEMENT) * min(steps):
        print(f"WARNING: steps per round differ by more than {AGREEMENT:.0%}: {steps}")
    for ratio in ratios:
        print(
            f"{ratio.name}: {ratio.ratio:.2f} [{ratio.least:.2f}, {ratio.largest:.2f}] "
            f"({ratio.ours:.0f} / {ratio.theirs:.0f} steps per second; {ratio.target})"
        )


def print_profile(name: str, found: Profile) -> None:
    """Prints the shares of the groups, and the functions that take longest."""
    total = sum(found.groups.values())
    print(f"\n{name}: profile of a round, {total:.2f} s under cProfile")
    for group, seconds in found.groups.items():
        print(f"  {group:18}{seconds:8.2f} s {seconds / total:6.1%}")
    _print_functions("own time", found.by_own)
    _print_functions("cumulative time", found.by_cumulative)


def _print_functions(title: str, functions: Sequence[Function]) -> None:
    print(f"  by {title}: calls, seconds of its own, cumulative")
    for f in functions:
        print(f"    {f.calls:9}{f.own:8.2f}{f.cumulative:8.2f}  {f.name}")


def document(
    settings: Settings,
    learners: Sequence[Learner],
    samples: Samples,
    ratios: Sequence[Ratio],
    profiles: Mapping[str, Profile],
) -> dict[str, object]:
    """Returns everything as JSON knows it, with versions and the command line."""
    others = {name: metadata.version(name) for name in ("stable-baselines3", "sb3-contrib")}
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "versions": {**versions(), "opponents": others},
        "settings": asdict(settings),
        "network": asdict(settings.network),
        "parameters": {learner.name: learner.parameters for learner in learners},
        "ratios": [ratio.to_json() for ratio in ratios],
        "rounds": {name: [asdict(s) for s in taken] for name, taken in samples.items()},
        "profiles": {name: found.to_json() for name, found in profiles.items()},
    }


if __name__ == "__main__":
    main()
