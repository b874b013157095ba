"""Examples run, and so do the manual's code blocks."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_agent_loop_folds_and_reloads() -> None:
    ran = subprocess.run(
        [sys.executable, "examples/agent_loop.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "The first file ends with: part_0.py:199" in ran.stdout
    assert "fold s4" in ran.stdout
    assert "reload s4" in ran.stdout


def test_the_loop_retries_after_an_overflow_and_no_other_error() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "agent_loop.py"))
    from contextpilot.core.budget import TokenBudget
    from contextpilot.manager import ContextManager

    class Refusing(example["StandIn"]):  # type: ignore[misc, name-defined]
        error = "prompt is too long: 9000 tokens > 6000 maximum"

        def _create(self, **named: object) -> object:
            if len(self.sizes) == 5 and self.error:
                error, self.error = self.error, ""
                raise RuntimeError(error)
            return super()._create(**named)

    def answer(error: str) -> str:
        manager = ContextManager("openai", budget=TokenBudget(12_000, 500), reload_tool=True)
        client = Refusing(files=8)
        client.error = error
        messages = [{"role": "user", "content": "Read all parts."}]
        functions = {"read_file": example["read_file"]}
        found: str = example["run"](
            manager.session(), client, messages, [example["READ_FILE"]], functions
        )
        return found

    assert "part_0.py:199" in answer(Refusing.error)
    with pytest.raises(RuntimeError, match="no such model"):
        answer("no such model")


def test_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "manager.md").read_text(encoding="utf-8")
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": "manual"}
    for match in blocks:
        padded = "\n" * text[: match.start(1)].count("\n") + match.group(1)
        exec(compile(padded, "docs/manager.md", "exec"), namespace)
    assert str(namespace["request"].status) == "edited"  # type: ignore[attr-defined]
    namespace["folder"].cleanup()  # type: ignore[attr-defined]
