"""The ContextPilot environment."""
