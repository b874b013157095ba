"""Recorded runs of agents, in the formats that the agents write."""

from contextpilot_envs.tasks.transcripts.base import ReadResult, Skipped, Transcript, Usage
from contextpilot_envs.tasks.transcripts.read import read_transcript, read_transcripts

__all__ = [
    "ReadResult",
    "Skipped",
    "Transcript",
    "Usage",
    "read_transcript",
    "read_transcripts",
]
