"""The pointer policy: a small transformer over the segments points at (operation, preset, slot)."""
