"""Long document QA: repeated papers and key conclusions, several hundred lines apart.

Documents stand alone, so this is the family where order can be edited, where repetitions are to be
dropped and where paragraphs are worth a summary.
"""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.family import Family

DOCQA = Family("docqa", carriers=(0.0, 0.9, 0.1), revised=0.1, misled=0.0, announced=0.75)
