"""Very long error logs, each with a root cause in the middle, and symptoms everywhere."""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.family import Family

LOGS = Family(
    "logs",
    carriers=(0.9, 0.0, 0.1),
    revised=0.05,
    misled=0.1,
    announced=0.5,
    long=0.08,
    long_factor=(10.0, 25.0),
)
