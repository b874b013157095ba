"""ContextPilot: the context of an LLM agent as a decision problem.

Importing this loads nothing heavy; import what you need from where it lives:

- `contextpilot.core`: segments, contexts, budgets, the seven edits and the log of them.
- `contextpilot.messages`: OpenAI and Anthropic message lists to segments and back.
- `contextpilot.edits`: `apply_edit`, undo, and the action layout.
- `contextpilot.observations`: a context as arrays, and a readable view of them.
- `contextpilot.policies`: the policy protocol and the baselines by name.
- `contextpilot.evaluation`: play policies on tasks, compare them, write a report.
- `contextpilot.errors`: everything that is raised on purpose.

The environment is a package of its own, `contextpilot_envs`.
"""

__version__ = "0.1.0"
