"""Segments, contexts, edits and their log. Standard library only."""
