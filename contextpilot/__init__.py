"""ContextPilot: the context of an LLM agent as a decision problem."""

__version__ = "0.1.0"
