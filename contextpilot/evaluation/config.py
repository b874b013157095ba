"""What an evaluation plays. The dataclass is the schema; configs/evaluate.yaml overrides it."""

from __future__ import annotations

from dataclasses import dataclass, field

from contextpilot.errors import ConfigurationError, did_you_mean

GENERATED = ("docqa", "tools", "chat", "logs", "restock")
POLICIES = (
    "raw", "truncation", "fixed_summary", "rolling_summary", "clear_old_results",
    "threshold_fold", "goal_selection", "best_rule", "reuse_predictor", "random", "oracle",
)  # fmt: skip
LANGUAGES = ("en", "zh")
READERS = ("ideal", "rot", "chat", "hf")
SPLITS = ("train", "validation")


@dataclass
class EvaluateConfig:
    """Settings of `scripts/evaluate.py`."""

    sources: list[str] = field(default_factory=list)
    """Task sources by name. Empty: all generated families, and real transcripts where they are
    (a generated sample session otherwise)."""

    policies: list[str] = field(
        default_factory=lambda: [
            "raw", "truncation", "fixed_summary", "rolling_summary", "clear_old_results",
            "threshold_fold", "goal_selection", "reuse_predictor", "oracle",
        ]
    )  # fmt: skip
    """Policies by name, in the order of the tables."""

    horizons: list[int] = field(default_factory=lambda: [10, 30, 100])
    """Numbers of requests of generated tasks; recorded runs have their own."""

    tasks: int = 6
    """Generated tasks per family and horizon."""

    replays: int = 5
    """Recorded runs per source, at most."""

    seeds: list[int] = field(default_factory=lambda: [0])
    """Of what the agent notices; shared by all policies."""

    notice: list[str] = field(default_factory=lambda: ["good", "poor"])
    """Presets of how probably an agent notices what is missing."""

    split: str = "validation"
    """"train" or "validation"."""

    language: str = "en"
    """Of generated tasks: "en" or "zh"."""

    data: str | None = None
    """Folder of recorded runs; by default the variable CONTEXTPILOT_DATA. For the source
    "transcripts" the folder or file of your own."""

    window_tokens: int = 6000
    """The agent's window on generated tasks, the same at every horizon."""

    budget_fraction: float | None = 1.0
    """The window on recorded runs, as a share of the largest raw request: at 1 raw just fits, and
    rules that act from a share of the window on act relative to it; null: no limit."""

    prices: str = "default"
    """A price preset."""

    reader: str = "ideal"
    """"ideal" or "rot"; "chat": a model behind an OpenAI-compatible endpoint; "hf": a local one."""

    reader_model: str = ""
    """The model's name for the reader "chat", its folder for "hf"."""

    reader_url: str = ""
    """Of the reader "chat", up to and with /v1; by default the provider's own. The key is read from
    OPENAI_API_KEY."""

    reload_output_tokens: int = 600
    """What the agent writes to ask for an original."""

    bill_prefix: bool = True
    """Whether system prompt and tool schemas of recorded runs are part of the bill."""

    quotes: bool = True
    """Whether values that a recorded agent quotes in its text are demanded too."""

    reference: str = "raw"
    """What differences and ratios are taken against."""

    workers: int = 2
    """Processes."""

    output: str = "runs/evaluate"
    """Folder of the report."""

    def __post_init__(self) -> None:
        """Refuses what could not be played, before anything is."""
        for policy in self.policies:
            _known("policies", policy, POLICIES)
        _known("language", self.language, LANGUAGES)
        _known("split", self.split, SPLITS)
        _known("reader", self.reader, READERS)
        if (self.reader in ("chat", "hf")) != bool(self.reader_model):
            raise ConfigurationError(
                "`reader_model` names the model of the readers 'chat' and 'hf', and of no other. "
                f"Received reader={self.reader} and {self.reader_model!r}."
            )
        for name in ("policies", "horizons", "seeds", "notice"):
            if not getattr(self, name):
                raise ConfigurationError(f"`{name}` must not be empty. Received [].")
        for name in ("tasks", "replays", "workers", "window_tokens"):
            if getattr(self, name) < 1:
                raise ConfigurationError(
                    f"`{name}` must be at least 1. Received {getattr(self, name)}."
                )
        if "transcripts" in self.sources and not self.data:
            raise ConfigurationError(
                "the source 'transcripts' is a folder of your own, and `data` says which. Received "
                "none. Add data=/path/to/your/transcripts."
            )
        if self.reference not in self.policies:
            raise ConfigurationError(
                f"`reference` must be one of `policies` ({', '.join(self.policies)}). "
                f"Received {self.reference!r}."
            )


def _known(field_name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(
            f"`{field_name}` has an unknown name. Received {value!r}.{did_you_mean(value, known)}"
        )
