"""Where recorded runs and reported cases are, and the skip of tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("CONTEXTPILOT_DATA", "/nonexistent"))
CASES = Path(os.environ.get("CONTEXTPILOT_CASES", "/nonexistent"))

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="CONTEXTPILOT_DATA is not set")
needs_cases = pytest.mark.skipif(not CASES.is_file(), reason="CONTEXTPILOT_CASES is not set")
