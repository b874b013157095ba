"""The seven edits: check, apply, undo, replay, and the action layout."""
