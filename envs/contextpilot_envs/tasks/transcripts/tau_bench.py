"""tau-bench result files: a JSON list of runs, each with its chat messages under `traj`."""

from __future__ import annotations

from contextpilot_envs.tasks.transcripts.base import Entry, Episode
from contextpilot_envs.tasks.transcripts.plain import conversation


def matches(entry: Entry) -> bool:
    """True for one run."""
    return isinstance(entry.get("traj"), list)


def read(entry: Entry) -> Episode:
    """Returns a run as an episode. Its session is the task: all its trials stay in one split."""
    episode = conversation(entry["traj"], agent="tau_bench")
    task, trial = str(entry.get("task_id", "")), str(entry.get("trial", ""))
    if task:
        episode.name = f"{task}.{trial}" if trial else task
        episode.metadata["session"] = f"task-{task}"
    if "reward" in entry:
        episode.metadata["reward"] = str(entry["reward"])
    return episode
