import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contextpilot.errors import ConfigurationError, TranscriptError, UnknownTaskError
from contextpilot_envs.tasks.base import TaskSource
from contextpilot_envs.tasks.replay_source import DATA_VARIABLE, NAMES, ReplaySource
from contextpilot_envs.tasks.splits import SPLITS, Splits, hashed_split

DATA = Path(os.environ.get("CONTEXTPILOT_DATA", "/nonexistent"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="CONTEXTPILOT_DATA is not set")
KNOWN = [name for name in NAMES if name not in ("sample", "transcripts")]


def write_session(path: Path, requests: int) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "count"}]
    for number in range(requests):
        messages.append({"role": "assistant", "content": f"{number}"})
        messages.append({"role": "user", "content": "on"})
    path.write_text(json.dumps(messages))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(30):
        write_session(tmp_path / f"session-{number}.json", 10)
    write_session(tmp_path / "short.json", 3)
    return tmp_path


def test_hashed_splits_never_change() -> None:
    assert [hashed_split(f"session-{n}") for n in range(8)] == [
        "validation", "validation", "train", "train", "train", "validation", "train", "train"
    ]  # fmt: skip
    counts = Counter(hashed_split(str(n)) for n in range(3000))
    assert counts["validation"] == pytest.approx(1000, abs=80)


def test_a_users_folder_is_split_by_session(folder: Path) -> None:
    source = ReplaySource("transcripts", folder)
    train, validation = source.ids("train"), source.ids("validation")
    assert len(train) + len(validation) == 30
    assert 4 <= len(validation) <= 16
    assert not set(train) & set(validation)
    (skipped,) = source.skipped
    assert "short#0 has 3 requests" in skipped.reason
    task = source.load(validation[0])
    assert task.id == validation[0]
    assert task.requests == 10


def test_windows_are_for_training_and_stay_in_their_split(folder: Path) -> None:
    whole = ReplaySource("transcripts", folder)
    cut = ReplaySource("transcripts", folder, window=5)
    assert cut.ids("validation") == whole.ids("validation")
    assert cut.ids("train") == [
        f"{task_id}@{window}" for task_id in whole.ids("train") for window in ("0-5", "5-10")
    ]
    task = cut.load(cut.ids("train")[1])
    assert task.id == cut.ids("train")[1]
    assert task.requests == 5


def test_a_split_file_of_ones_own(folder: Path, tmp_path: Path) -> None:
    fixed = {"transcripts": {f"session-{n}": "validation" for n in range(30)}}
    split_file = tmp_path / "my-splits.cfg"
    split_file.write_text(json.dumps(fixed))
    source = ReplaySource("transcripts", folder, split_file=split_file)
    assert source.ids("train") == []
    assert len(source.ids("validation")) == 30


@pytest.mark.parametrize("content", ["[]", "{", '{"a": []}', '{"a": {"s": "test"}}', None], ids=str)
def test_bad_split_files_are_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "splits.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"splits\.json.*Write JSON"):
        Splits.load(path)


def test_unknown_names_ids_and_splits_come_with_a_suggestion(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'claude_code'"):
        ReplaySource("claude-code")
    source = ReplaySource("transcripts", folder)
    with pytest.raises(UnknownTaskError, match="Did you mean 'transcripts/session-7#0'"):
        source.load("transcripts/session-7")
    with pytest.raises(ConfigurationError, match="Did you mean 'validation'"):
        source.ids("valid")
    with pytest.raises(ConfigurationError, match="at least 4"):
        ReplaySource("transcripts", folder, window=2)


def test_missing_data_names_the_folder_and_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(TranscriptError, match="Set CONTEXTPILOT_DATA"):
        ReplaySource("codex")
    with pytest.raises(TranscriptError, match=r"tau_bench'.*CONTEXTPILOT_DATA"):
        ReplaySource("tau_bench", tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(TranscriptError, match=str(tmp_path)):
        ReplaySource("codex")
    with pytest.raises(TranscriptError, match="Pass path"):
        ReplaySource("transcripts")
    with pytest.raises(TranscriptError, match="nowhere"):
        ReplaySource("transcripts", tmp_path / "nowhere").ids("train")


def test_a_folder_without_a_usable_run_is_an_error(tmp_path: Path) -> None:
    write_session(tmp_path / "short.json", 2)
    with pytest.raises(TranscriptError, match=r"The first of 1 problems: .*2 requests"):
        ReplaySource("transcripts", tmp_path).ids("train")


def test_the_sample_needs_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    source: TaskSource = ReplaySource("sample")
    train, validation = source.ids("train"), source.ids("validation")
    assert len(train) > len(validation) > 3
    assert source.load(train[0]) == ReplaySource("sample").load(train[0])
    assert source.load(validation[0]).source == "sample"


@needs_data
@pytest.mark.parametrize("name", KNOWN)
def test_every_known_session_has_a_fixed_split(name: str) -> None:
    source = ReplaySource(name, DATA)
    train, validation = source.ids("train"), source.ids("validation")
    shipped = json.loads(
        (Path(__file__).parents[3] / "envs/contextpilot_envs/tasks/splits.json").read_text()
    )[name]
    clusters = {}
    for split, ids in zip(SPLITS, (train, validation), strict=True):
        for task_id in (*ids[:4], *ids[-4:]):
            task = source.load(task_id)
            assert task.id == task_id
            clusters[task.cluster] = split
            assert shipped[task.cluster.removeprefix(f"{name}/")] == split
    shares = Counter(shipped.values())
    if len(shipped) > 2:
        assert 0.25 <= shares["validation"] / len(shipped) <= 0.4


@needs_data
def test_all_trials_of_a_task_and_all_parts_of_a_session_are_on_one_side() -> None:
    tau = ReplaySource("tau_bench", DATA)
    sides = [{i.split("#")[1].split(".")[0] for i in tau.ids(split)} for split in SPLITS]
    assert not sides[0] & sides[1]
    assert len(tau.ids("train")) + len(tau.ids("validation")) == 140
    claude = ReplaySource("claude_code", DATA)
    stems = [{i.split("#")[0].split("/")[1] for i in claude.ids(split)} for split in SPLITS]
    assert not stems[0] & stems[1]
