"""Two thousand random histories through sessions; `scripts/soak.py` drives many more of them."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from contextpilot.archives import MemoryArchive
from contextpilot.core.segment import Segment
from contextpilot.errors import ArchiveError
from contextpilot.manager import Session
from contextpilot.messages.validate import problems

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")
CHUNKS, COUNT = 8, 250
LONGEST = 60
"""Most histories are that short anyway; a run of the script has the long ones."""


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("soak_sessions")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_breaks_and_every_edit_has_its_share(soak: ModuleType, chunk: int) -> None:
    total = soak.Tally()
    for number in range(chunk * COUNT, (chunk + 1) * COUNT):
        total.add(soak.Drive(7, number, LONGEST).run())
    assert total.violations == []
    assert total.counts["histories"] == COUNT
    assert total.counts["requests"] >= 3 * COUNT
    assert total.edited_share >= 0.5
    assert set(total.shares()) == {"summarize", "fold", "expire", "drop", "reload", "reorder"}
    assert min(total.shares().values()) >= 0.05, total.shares()
    assert total.counts["unreachable"] > 0


def test_histories_are_valid_and_have_what_hosts_send(soak: ModuleType) -> None:
    histories = importlib.import_module("soak_histories")
    for format in histories.FORMATS:
        written = ""
        for seed in range(20):
            made = histories.history(format, Random(seed), 40)
            assert 40 <= len(made.messages) < 60
            assert made.points == sorted(set(made.points))
            for point in made.points:
                assert problems(format, made.messages[:point]) == ()
            written += json.dumps(made.messages)
        # images, lone surrogates, Chinese, empty results, reasoning
        image = {"openai": "image_url", "anthropic": "base64", "responses": "input_image"}[format]
        for part in (image, "\\ud83d of", "\\u6c34", '""', "because"):
            assert part in written, part


# ---- each check notices what it is for -----------------------------------------------------------


class Forgetful(MemoryArchive):
    def get(self, session: str, segment_id: str) -> Segment:
        raise ArchiveError(segment_id)


def violations(soak: ModuleType, numbers: range = range(12)) -> str:
    found = [soak.Drive(7, number, 30).run().violations for number in numbers]
    return "\n".join(violation for each in found for violation in each)


def broken_requests(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    prepare = Session.prepare

    def changed(self: Session, *given: Any, **named: Any) -> Any:
        request = prepare(self, *given, **named)
        change(request, given[0])
        return request

    monkeypatch.setattr(Session, "prepare", changed)


def drop_a_result(request: Any, host: Any) -> None:
    answers = [i for i, m in enumerate(request.messages) if "call_" in str(m.get("tool_call_id"))]
    if answers:
        del request.messages[answers[0]]


def rewrite_the_host(request: Any, host: Any) -> None:
    host[0]["content"] = "something else"


def copy_all(request: Any, host: Any) -> None:
    request.messages[:] = copy.deepcopy(request.messages)


def say_less(request: Any, host: Any) -> None:
    request.messages[:] = request.messages[:1]


def allow_less(request: Any, host: Any) -> None:
    object.__setattr__(request.report, "input_limit", 50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (allow_less, "over budget: "),
        (drop_a_result, "invalid: "),
        (rewrite_the_host, "the host's list was changed"),
        (copy_all, "not the host's own objects"),
        (say_less, "latest user text not verbatim"),
        (say_less, "is another request"),
    ],
)
def test_a_broken_request_is_noticed(
    soak: ModuleType, monkeypatch: pytest.MonkeyPatch, change: Any, message: str
) -> None:
    broken_requests(monkeypatch, change)
    assert message in violations(soak)


def test_an_archive_that_forgets_is_noticed(
    soak: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "MemoryArchive", Forgetful)
    assert "is hidden and not archived" in violations(soak)


# ---- the script ----------------------------------------------------------------------------------


def test_the_script_writes_what_it_counted(soak: ModuleType, tmp_path: Path) -> None:
    script = importlib.import_module("soak")
    path = tmp_path / "made" / "soak.json"
    asked = ["--count", "9", "--first", "90", "--longest", "30", "--output", str(path)]
    assert script.main([*asked, "--seed", "7"]) == 0
    one = json.loads(path.read_text(encoding="utf-8"))
    assert (one["histories"], one["violations"]) == (9, [])
    assert [each.name for each in path.parent.iterdir()] == ["soak.json"]
    assert script.main([*asked, "--seed", "7", "--workers", "2"]) == 0
    two = json.loads(path.read_text(encoding="utf-8"))
    assert {**one, "workers": 0, "seconds": 0} == {**two, "workers": 0, "seconds": 0}


def test_a_violation_is_printed_with_its_reproduction(
    soak: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    script = importlib.import_module("soak")
    monkeypatch.setattr(soak, "MemoryArchive", Forgetful)
    path = tmp_path / "soak.json"
    asked = ["--first", "3", "--count", "6", "--longest", "30", "--output", str(path)]
    assert script.main([*asked, "--seed", "7"]) == 1
    printed = capsys.readouterr().out
    assert "hidden and not archived" in printed
    assert "python scripts/soak.py --seed 7 --first 4 --count 1 --longest 30" in printed
    assert json.loads(path.read_text(encoding="utf-8"))["violations"]
    with pytest.raises(SystemExit):
        script.main(["--count", "0"])
