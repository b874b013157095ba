"""The file behind an archive: durable, private, and honest about damage."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contextpilot.archives import SqliteArchive
from contextpilot.core.segment import Kind, Role, Segment, Source, Trust, text_segment
from contextpilot.errors import ArchiveError

WRITER = """
import sys
from contextpilot.archives import SqliteArchive
from contextpilot.core.segment import Kind, Role, Source, Trust, text_segment

archive = SqliteArchive(sys.argv[1])
for number in range(100_000):
    segment = text_segment(
        f"s{number}", Role.TOOL, Kind.RESULT, f"line {number} " * 200,
        source=Source.TOOL, trust=Trust.UNTRUSTED,
    )
    archive.put("session", segment)
    print(number, flush=True)
"""


def _segment(segment_id: str, text: str = "text") -> Segment:
    return text_segment(
        segment_id, Role.TOOL, Kind.RESULT, text, source=Source.TOOL, trust=Trust.UNTRUSTED
    )


def _read_all(path: Path) -> None:
    with SqliteArchive(path) as archive:
        for segment_id in archive.ids("a"):
            archive.get("a", segment_id)


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
        assert writer.wait() == -signal.SIGKILL
    with SqliteArchive(path) as archive:
        assert set(archive.ids("session")) >= {f"s{number}" for number in acknowledged}
        for number in acknowledged:
            assert archive.get("session", f"s{number}").text == f"line {number} " * 200
        archive.put("session", _segment("after"))
        assert archive.ids("session")[-1] == "after"


def test_another_opening_sees_what_was_put(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with SqliteArchive(path) as writer, SqliteArchive(path) as reader:
        writer.put("a", _segment("s1"))
        assert reader.get("a", "s1") == _segment("s1")


def test_its_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    before = os.umask(0)
    try:
        with SqliteArchive(path) as archive:
            archive.put("a", _segment("s1"))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes["archive.sqlite"] == 0o600
    assert modes["archive.sqlite-wal"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    path.touch(0o644)
    with SqliteArchive(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_file_is_named_after_a_session_or_an_id(tmp_path: Path) -> None:
    with SqliteArchive(tmp_path / "archive.sqlite") as archive:
        archive.put("../session", _segment("../escaped"))
    assert [file.name for file in tmp_path.iterdir()] == ["archive.sqlite"]
    assert not (tmp_path.parent / "escaped").exists()


def test_purged_text_is_not_left_in_the_files(tmp_path: Path) -> None:
    secret = "correct horse battery staple"
    with SqliteArchive(tmp_path / "archive.sqlite") as archive:
        archive.put("a", _segment("s1", secret * 500))
        archive.put("b", _segment("s1", "other"))
        archive.purge("a")
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert secret.encode() not in content
        assert archive.get("b", "s1").text == "other"


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be read" * 40, b"\0" * 5000]
)
def test_a_file_of_something_else_names_the_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "archive.sqlite"
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="move it away") as error:
        SqliteArchive(path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE segments (something)")
    other.close()
    with pytest.raises(ArchiveError, match="another program"):
        SqliteArchive(path)


def test_damage_inside_the_file_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with SqliteArchive(path) as archive:
        for number in range(50):
            archive.put("a", _segment(f"s{number}", "text " * 500))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_000)
    with pytest.raises(ArchiveError, match="damaged"):
        _read_all(path)


def test_a_damaged_row_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with SqliteArchive(path) as archive:
        archive.put("a", _segment("s1"))
        vandal = sqlite3.connect(path)
        vandal.execute("UPDATE segments SET body = 7")
        vandal.commit()
        vandal.close()
        with pytest.raises(ArchiveError, match="damaged"):
            archive.get("a", "s1")


def test_a_missing_folder_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="existing folder"):
        SqliteArchive(tmp_path / "nowhere" / "archive.sqlite")


def test_a_closed_archive_says_so(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "archive.sqlite")
    archive.close()
    archive.close()
    with pytest.raises(ArchiveError, match="open it again"):
        archive.put("a", _segment("s1"))


def test_a_path_is_only_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteArchive(":memory:") as archive:
        archive.put("a", _segment("s1"))
    with SqliteArchive(":memory:") as archive:
        assert list(archive.ids("a")) == ["s1"]
