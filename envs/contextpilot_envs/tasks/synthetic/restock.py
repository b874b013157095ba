"""Restocking, the prototype: product papers with price, stock and reviews; what to reorder."""

from __future__ import annotations

from contextpilot_envs.tasks.synthetic.family import Family

RESTOCK = Family("restock", carriers=(0.4, 0.5, 0.1), revised=0.15, misled=0.0, announced=0.75)
