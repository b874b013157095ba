"""The settings of `scripts/study_training.py`: several seeds of an experiment, and their tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from contextpilot.errors import ConfigurationError
from contextpilot.training.config import ALGORITHMS
from contextpilot.training.config_checks import at_least, known


@dataclass
class StudyConfig:
    """Settings of `scripts/study_training.py`."""

    recipe: str = "quickstart"
    """The experiment that is trained; a file in configs/experiment."""

    algorithms: list[str] = field(default_factory=lambda: ["ppo", "grpo"])
    """One arm each."""

    seeds: list[int] = field(default_factory=lambda: [0, 1, 2, 3, 4])
    """Training seeds."""

    overrides: list[str] = field(default_factory=list)
    """Further settings of training, as on its command line."""

    tasks: int = 40
    """Validation tasks per source."""

    first: int = 0
    """The first of them; those before it are left out, as where they have been looked at before."""

    notice: list[str] = field(default_factory=lambda: ["good", "poor"])
    """Presets of how probably the agent notices what is missing."""

    noise_seeds: list[int] = field(default_factory=lambda: [0])
    """Of what the agent notices; shared by all policies."""

    front: str | None = "results/tuning_half"
    """Folder of tuning grids whose fronts are played beside the policies; null: none."""

    masked: bool = True
    """Whether each trained policy is also played with each edit masked, under the first preset."""

    workers: int = 2
    """Runs, and then evaluations, at the same time; one core each."""

    output: str = "runs/study_training"

    def __post_init__(self) -> None:
        """Refuses empty lists and unknown algorithms."""
        at_least(self, 1, "tasks", "workers")
        at_least(self, 0, "first")
        for name in ("algorithms", "seeds", "notice", "noise_seeds"):
            if not getattr(self, name):
                raise ConfigurationError(f"`{name}` must not be empty. Received [].")
        for algorithm in self.algorithms:
            known("algorithms", algorithm, tuple(ALGORITHMS))
