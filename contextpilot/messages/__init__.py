"""Host message lists to segments and back, without losing a byte; and what makes a list valid."""
