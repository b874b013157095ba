"""Multi-tool chains: the arguments of later calls are values from much earlier results."""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.family import Family

TOOLS = Family(
    "tools",
    carriers=(0.9, 0.0, 0.1),
    revised=0.1,
    misled=0.0,
    announced=0.75,
    quotes_in_calls=True,
)
