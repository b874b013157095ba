"""What every archive guarantees."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextpilot.archives import Archive, MemoryArchive, SqliteArchive
from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.errors import ArchiveError


@pytest.fixture(params=["memory", "sqlite"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    if request.param == "memory":
        yield MemoryArchive()
        return
    with SqliteArchive(tmp_path / "archive.sqlite") as opened:
        yield opened


def _segment(segment_id: str, text: str = "text", block: object = None) -> Segment:
    return Segment(
        segment_id,
        Role.ASSISTANT,
        Kind.TURN,
        (Part("text", text), Part("image", block=block)),
        Source.ASSISTANT,
        Trust.AGENT,
        exchange="e1",
        lineage=("s1", "s2"),
        position=(4, 1),
        metadata={"path": "a.py"},
    )


def test_gives_back_an_equal_segment(archive: Archive) -> None:
    segment = _segment("s1", "价格 \ud800", {"type": "image", "source": {"data": "iVBO"}})
    archive.put("a", segment)
    assert archive.get("a", "s1") == segment


def test_the_same_id_replaces_and_keeps_its_place(archive: Archive) -> None:
    for segment_id in ("s2", "s1", "s3"):
        archive.put("a", _segment(segment_id))
    archive.put("a", _segment("s2", "newer"))
    assert list(archive.ids("a")) == ["s2", "s1", "s3"]
    assert archive.get("a", "s2").text == "newer"


def test_a_missing_id_is_an_error_that_names_it(archive: Archive) -> None:
    archive.put("a", _segment("s1"))
    with pytest.raises(ArchiveError, match="'s9'"):
        archive.get("a", "s9")


def test_sessions_do_not_see_each_other(archive: Archive) -> None:
    archive.put("a", _segment("s1", "of a"))
    archive.put("b", _segment("s1", "of b"))
    assert archive.get("a", "s1").text == "of a"
    assert list(archive.ids("c")) == []
    with pytest.raises(ArchiveError):
        archive.get("c", "s1")


def test_purge_erases_one_session_only(archive: Archive) -> None:
    for session in ("a", "b"):
        for segment_id in ("s1", "s2"):
            archive.put(session, _segment(segment_id))
    assert archive.purge("a") == 2
    assert archive.purge("a") == 0
    assert list(archive.ids("a")) == []
    assert list(archive.ids("b")) == ["s1", "s2"]
    archive.put("a", _segment("s7"))
    assert list(archive.ids("a")) == ["s7"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "x" * 500, "", "名", "\ud800", "a\0b"])
def test_any_string_is_a_session_and_an_id(archive: Archive, name: str) -> None:
    archive.put(name, _segment(name))
    assert archive.get(name, name).id == name
    assert list(archive.ids(name)) == [name]


def test_later_changes_of_a_host_message_do_not_reach_it(archive: Archive) -> None:
    block = {"type": "text", "text": "as it was"}
    archive.put("a", _segment("s1", block=block))
    block["text"] = "changed"
    taken = archive.get("a", "s1").parts[1].block
    assert taken == {"type": "text", "text": "as it was"}
    taken["text"] = "changed too"
    assert archive.get("a", "s1").parts[1].block["text"] == "as it was"


def test_threads_can_share_it(archive: Archive) -> None:
    def write(worker: int) -> None:
        for number in range(20):
            archive.put(f"session-{worker % 2}", _segment(f"s{worker}-{number}"))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(archive.ids("session-0")) == sorted(
        f"s{w}-{n}" for w in (0, 2) for n in range(20)
    )
    assert len(archive.ids("session-1")) == 40
