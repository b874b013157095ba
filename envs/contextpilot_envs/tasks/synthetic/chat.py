"""Long conversations whose early facts matter.

The traps: a turn of the agent that states something wrong, corrections that supersede what was said
before, and failed attempts that are repeated when their record is lost.
"""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.family import Family

CHAT = Family("chat", carriers=(0.2, 0.1, 0.7), revised=0.2, misled=0.25, announced=0.75)
