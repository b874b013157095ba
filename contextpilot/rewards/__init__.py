"""Reward terms by name: what a step is paid for, raw and weighted."""
