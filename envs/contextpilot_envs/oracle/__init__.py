"""The hindsight oracle: reads the labels, plans an episode's edits, and bounds what is possible."""
