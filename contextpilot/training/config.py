"""The schema of a training run. Hydra groups fill it; a misspelt key or a bad value fails at once.

Each dataclass is one group of `configs/`; YAML files only override these defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.config import POLICIES
from contextpilot.policies.catalog import RULES, TUNED_FILES
from contextpilot.rewards.weights import RewardWeights
from contextpilot.training.config_checks import at_least, known, positive, share

LARGEST_SEED = 2**32 - 1
CREDITS = ("terminal", "step", "hindsight")
READERS = ("ideal", "rot")
TEACHERS = ("best_rule", "reuse_predictor", "raw", "random", *RULES)
WANDB_MODES = ("disabled", "offline", "online")


@dataclass
class EnvConfig:
    """Group `env`: the window, the prices, the agent, and how many copies are played at once."""

    num_envs: int = 32
    """Episodes side by side."""

    context_slots: int = 48
    archive_slots: int = 16
    """The action layout's size; long sessions want 128 and 32."""

    max_edits: int = 16
    """K, edit steps a request; the K-th sends it."""

    budget_fraction: float | None = 0.5
    """Window as a share of the task's largest raw request; null: no limit."""

    max_context_tokens: int | None = None
    """Absolute window in tokens; overrides `budget_fraction`."""

    notice: str = "good"
    """How probably the agent notices what is missing: "perfect", "good" or "poor"."""

    prices: str = "default"
    """A price preset."""

    reload_output_tokens: int = 600
    """What the agent writes to ask for an original."""

    bill_prefix: bool = True
    """Whether system prompt and tool schemas of recorded runs are part of the bill."""

    def __post_init__(self) -> None:
        """Refuses sizes that no episode could be played with; presets are checked on use."""
        at_least(self, 1, "env.num_envs", "env.context_slots", "env.max_edits")
        at_least(self, 0, "env.archive_slots", "env.reload_output_tokens")


@dataclass
class TaskConfig:
    """Group `task`: what is trained on."""

    sources: list[str] = field(
        default_factory=lambda: ["docqa", "tools", "chat", "logs", "restock"]
    )  # fmt: skip
    """Task sources by name, each drawn equally often."""

    horizon: int = 20
    """Requests of generated tasks."""

    language: str = "en"
    """Of generated tasks: "en" or "zh"."""

    data: str | None = None
    """Folder of recorded runs; by default the variable CONTEXTPILOT_DATA."""

    augment: bool = True
    """Whether recorded runs are played as random windows of themselves, renamed and spliced."""

    inner_fold: float = 0.1
    """Share of the training tasks kept aside to choose the best checkpoint; never reported."""

    def __post_init__(self) -> None:
        """Refuses an empty list of sources and shares outside (0, 0.5]."""
        if not self.sources:
            raise ConfigurationError("`task.sources` must not be empty. Received [].")
        if not 0.0 < self.inner_fold <= 0.5:
            raise ConfigurationError(
                f"`task.inner_fold` must lie in (0, 0.5]. Received {self.inner_fold}."
            )
        known("task.language", self.language, ("en", "zh"))


@dataclass
class PolicyConfig:
    """Group `policy`: the size of the network."""

    width: int = 64
    layers: int = 2
    heads: int = 4
    backbone: str = "none"
    """What reads the segments' texts: "none" leaves the numeric features alone."""

    def __post_init__(self) -> None:
        """Refuses widths that the heads do not divide."""
        at_least(self, 1, "policy.width", "policy.layers", "policy.heads")
        if self.width % self.heads:
            raise ConfigurationError(
                f"`policy.width` must be a multiple of `policy.heads`. "
                f"Received {self.width} and {self.heads}."
            )
        known("policy.backbone", self.backbone, ("none",))


@dataclass
class ReaderConfig:
    """Group `reader`: what stands for the agent's model."""

    name: str = "ideal"
    """"ideal" reads whatever is visible; "rot" misses more in the middle of long contexts."""

    def __post_init__(self) -> None:
        """Refuses unknown readers."""
        known("reader.name", self.name, READERS)


@dataclass
class CreditConfig:
    """Group `credit`: what an edit is paid; see `contextpilot.training.credit`."""

    name: str = "step"
    """"terminal", "step" or "hindsight"."""

    gae_lambda: float = 0.95
    """Lambda of `step` across requests."""

    within_lambda: float = 1.0
    """Lambda of `step` within a request. Below 1 an edit is paid less for the other edits of its
    request; but where the future costs something, idle edits then seem to put it off."""

    worth_limit: float | None = 0.3
    """What an edit of `hindsight` counts for at most, either way, as a share of the raw bill; null:
    no limit. One that tipped the scale between a refused request and none is worth several raw
    bills, and would drown all others."""

    def __post_init__(self) -> None:
        """Refuses unknown estimators."""
        known("credit.name", self.name, CREDITS)
        share(self, "credit.gae_lambda", "credit.within_lambda")
        if self.worth_limit is not None:
            positive(self, "credit.worth_limit")


@dataclass
class PPOConfig:
    """Group `algorithm`, choice `ppo`."""

    iterations: int = 100
    episodes: int = 64
    """Whole episodes per iteration."""

    epochs: int = 3
    minibatch: int = 512
    """Steps per gradient step."""

    learning_rate: float = 1e-3
    anneal: bool = True
    """Whether the learning rate falls linearly to a tenth."""

    clip: float = 0.2
    value_coefficient: float = 0.5
    value_warmup: int = 2
    """Iterations after a warm start whose loss has no policy part. The trunk is shared, so the
    policy still moves a little, and `target_kl` bounds that too."""

    entropy_coefficient: float = 0.003
    target_kl: float = 0.03
    """An iteration's epochs end once the policy has moved so far from where it collected."""

    anchor_coefficient: float = 0.0
    """Weight of the KL divergence from the warm-start policy."""

    max_grad_norm: float = 0.5
    normalize_advantages: bool = True

    name: str = "ppo"
    """Always "ppo"; says in a saved configuration which algorithm its settings are of."""

    def __post_init__(self) -> None:
        """Refuses what no update could be made with."""
        known("algorithm.name", self.name, ("ppo",))
        for name in ("iterations", "episodes", "epochs", "minibatch"):
            at_least(self, 1, f"algorithm.{name}")
        for name in (
            "value_coefficient", "value_warmup", "entropy_coefficient", "anchor_coefficient",
        ):  # fmt: skip
            at_least(self, 0, f"algorithm.{name}")
        for name in ("learning_rate", "clip", "target_kl", "max_grad_norm"):
            positive(self, f"algorithm.{name}")


@dataclass
class GRPOConfig:
    """Group `algorithm`, choice `grpo`."""

    iterations: int = 100
    groups: int = 8
    """Tasks per iteration."""

    group_size: int = 8
    """G, episodes of the same task from the same start under the same noise."""

    epochs: int = 2
    minibatch: int = 512
    learning_rate: float = 1e-3
    anneal: bool = True
    clip: float = 0.2
    entropy_coefficient: float = 0.003
    target_kl: float = 0.03
    anchor_coefficient: float = 0.0
    max_grad_norm: float = 0.5
    scale: str = "mean"
    """"mean" only subtracts the baseline; "std" also divides by the group's deviation, which is
    known to drive success to zero where rewards are dense."""

    name: str = "grpo"
    """Always "grpo"; says in a saved configuration which algorithm its settings are of."""

    def __post_init__(self) -> None:
        """Refuses groups that have no baseline, and unknown scalings."""
        known("algorithm.name", self.name, ("grpo",))
        for name in ("iterations", "groups", "epochs", "minibatch"):
            at_least(self, 1, f"algorithm.{name}")
        at_least(self, 2, "algorithm.group_size")
        for name in ("entropy_coefficient", "anchor_coefficient"):
            at_least(self, 0, f"algorithm.{name}")
        for name in ("learning_rate", "clip", "target_kl", "max_grad_norm"):
            positive(self, f"algorithm.{name}")
        known("algorithm.scale", self.scale, ("mean", "std"))


ALGORITHMS: Mapping[str, type] = MappingProxyType({"ppo": PPOConfig, "grpo": GRPOConfig})
"""The choices of the group `algorithm`."""

if TYPE_CHECKING:
    AlgorithmConfig: TypeAlias = PPOConfig | GRPOConfig
else:
    # OmegaConf has no unions of dataclasses: which one it is, the group's choice decides.
    AlgorithmConfig = Any


@dataclass
class WarmStartConfig:
    """Imitation of baselines before reinforcement learning."""

    teachers: list[str] = field(default_factory=lambda: ["best_rule", "reuse_predictor"])
    """Baselines by name; each task is imitated from whichever did best on it."""

    tasks: int = 0
    """Training tasks that the teachers play; 0: no warm start."""

    epochs: int = 4
    minibatch: int = 512
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        """Refuses unknown teachers."""
        at_least(self, 0, "warm_start.tasks")
        at_least(self, 1, "warm_start.epochs", "warm_start.minibatch")
        positive(self, "warm_start.learning_rate")
        if self.tasks and not self.teachers:
            raise ConfigurationError(
                "`warm_start.teachers` must not be empty. Received []. "
                "Name one, or set warm_start.tasks=0."
            )
        for teacher in self.teachers:
            known("warm_start.teachers", teacher, TEACHERS)


@dataclass
class LoggerConfig:
    """Group `logger`. metrics.jsonl is always written."""

    wandb: str = "disabled"
    """"disabled", "offline" (no network is touched) or "online"."""

    project: str = "contextpilot"
    entity: str | None = None
    tags: list[str] = field(default_factory=list)

    sampled_episodes: int = 4
    """Episodes with their edit log in W&B's table, at each evaluation."""

    progress: bool = True
    """Whether a progress bar is drawn."""

    def __post_init__(self) -> None:
        """Refuses unknown modes."""
        known("logger.wandb", self.wandb, WANDB_MODES)
        at_least(self, 0, "logger.sampled_episodes")


@dataclass
class ComparisonConfig:
    """What is played at the end, on the validation split."""

    policies: list[str] = field(
        default_factory=lambda: [
            "raw", "truncation", "fixed_summary", "best_rule", "reuse_predictor", "oracle",
        ]
    )  # fmt: skip
    """Beside the warm start and the trained policy."""

    tasks: int = 8
    """Tasks per source; 0: no comparison."""

    notice: list[str] = field(default_factory=lambda: ["good"])
    """Presets of how probably the agent notices what is missing; a table each."""

    seeds: list[int] = field(default_factory=lambda: [0])
    """Of what the agent notices; shared by all policies."""

    workers: int = 2
    """Processes."""

    def __post_init__(self) -> None:
        """Refuses unknown policies, empty lists and negative seeds."""
        at_least(self, 0, "comparison.tasks")
        at_least(self, 1, "comparison.workers")
        for policy in self.policies:
            known("comparison.policies", policy, POLICIES)
        for name in ("notice", "seeds"):
            if not getattr(self, name):
                raise ConfigurationError(f"`comparison.{name}` must not be empty. Received [].")
        for seed in self.seeds:
            if seed < 0:
                raise ConfigurationError(f"`comparison.seeds` must be at least 0. Received {seed}.")


@dataclass
class TrainConfig:
    """Settings of `scripts/train.py`."""

    seed: int = 0
    env: EnvConfig = field(default_factory=EnvConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    algorithm: AlgorithmConfig = field(default_factory=PPOConfig)
    credit: CreditConfig = field(default_factory=CreditConfig)
    reward: RewardWeights = field(default_factory=RewardWeights)
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    warm_start: WarmStartConfig = field(default_factory=WarmStartConfig)
    comparison: ComparisonConfig = field(default_factory=ComparisonConfig)

    tuned: str = "tuned"
    """Which setting the baselines were tuned in, teachers included: "tuned" (a window of 6,000
    tokens; recorded runs that raw just fits) or "tuned_half" (half of the peak raw request)."""

    evaluate_every: int = 10
    """Iterations between evaluations on the inner fold, which choose the best checkpoint."""

    evaluation_tasks: int = 20
    """Tasks of the inner fold, per evaluation."""

    checkpoint_every: int = 5
    """Iterations between checkpoints to resume from."""

    threads: int = 1
    """Of PyTorch."""

    name: str = "train"
    """Of the run; the experiment's name."""

    output: str = "runs/train"
    """Folder of run folders."""

    resume: str | None = None
    """A run folder to go on with; its own settings hold, and none may be given beside it."""

    def __post_init__(self) -> None:
        """Refuses cadences below 1, negative seeds, unknown tunings, and paths as names."""
        known("tuned", self.tuned, tuple(TUNED_FILES))
        at_least(self, 0, "seed")
        if self.seed > LARGEST_SEED:
            raise ConfigurationError(
                f"`seed` must be at most {LARGEST_SEED}. Received {self.seed}."
            )
        if not self.name or "/" in self.name:
            raise ConfigurationError(
                f"`name` must be one part of a path. Received {self.name!r}. "
                "Set output=FOLDER for where runs go."
            )
        at_least(self, 1, "evaluate_every", "evaluation_tasks", "checkpoint_every", "threads")
