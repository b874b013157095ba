import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import (
    CLAUDE,
    COMPACTED,
    DATA,
    TAU_MESSAGES,
    claude_user,
    needs_data,
    result,
    text,
    use,
    write_lines,
)

from contextpilot.errors import TranscriptError
from contextpilot_envs.tasks.transcripts import Usage, read_transcript, read_transcripts

# --- plain messages ------------------------------------------------------------------------------

ANTHROPIC_MESSAGES = [
    {"role": "user", "content": "read a"},
    {"role": "assistant", "content": [use("c1")], "usage": {"input_tokens": 9, "output_tokens": 2}},
    {"role": "user", "content": [result("c1")]},
    {"role": "assistant", "content": [text("It is short.")]},
]


@pytest.mark.parametrize(
    "messages", [TAU_MESSAGES, ANTHROPIC_MESSAGES], ids=["openai", "anthropic"]
)
@pytest.mark.parametrize("layout", ["list", "object", "message lines", "conversation lines"])
def test_plain_conversations_in_every_layout(tmp_path: Path, messages: Any, layout: str) -> None:
    path = tmp_path / "c.data.json"
    count = 1
    if layout == "list":
        path.write_text(json.dumps(messages, indent=2))
    elif layout == "object":
        path.write_text(json.dumps({"messages": messages}))
    elif layout == "message lines":
        write_lines(path, messages)
    else:
        count = 3
        write_lines(path, [{"messages": messages}, messages, {"messages": messages}])
    transcripts = read_transcript(path)
    assert len(transcripts) == count
    assert len({t.session for t in transcripts}) == count
    expected = tuple({k: v for k, v in m.items() if k != "usage"} for m in messages)
    for transcript in transcripts:
        assert transcript.messages == expected
        assert transcript.requests == 2
        assert transcript.format == ("anthropic" if messages is ANTHROPIC_MESSAGES else "openai")
    if messages is ANTHROPIC_MESSAGES:
        assert transcripts[0].usage == (Usage(9, 0, 2), None)


# --- what goes wrong -----------------------------------------------------------------------------


@given(st.integers(0, len(CLAUDE)), st.sampled_from(['{"type": "user', "[1, 2]", "nonsense", "7"]))
def test_one_broken_line_costs_that_line_only(
    tmp_path_factory: pytest.TempPathFactory, place: int, broken: str
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    whole = [json.dumps(entry) for entry in CLAUDE]
    (folder / "a.jsonl").write_text("\n".join(whole))
    (folder / "b.jsonl").write_text("\n".join([*whole[:place], broken, *whole[place:]]))
    read = read_transcripts(folder)
    first, second = read.transcripts
    assert first.messages == second.messages
    (skipped,) = read.skipped
    assert (Path(skipped.file).name, skipped.line) == ("b.jsonl", place + 1)
    assert skipped.remedy
    with pytest.raises(TranscriptError, match=rf"b\.jsonl:{place + 1}: .*export"):
        read_transcript(folder / "b.jsonl")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 0, "empty"),
        ('{\n "history": [\n  {"role": "user" "content": ""}\n ]\n}', 3, "no valid JSON"),
        ('{"model": "x", "patch": "y"}\n' * 3, 0, "no known transcript format"),
        ("[1, 2, 3]", 0, "no known transcript format"),
        ('{"messages": [{"role": "user", "content": "a"}, 5]}', 1, "no run or conversation"),
        ("\xff\xfe{".encode("latin-1"), 0, "no valid JSON"),
        ("[" * 100_000, 0, "no valid JSON"),
    ],
    ids=["empty", "broken", "unknown", "numbers", "bad message", "not UTF-8", "deep"],
)
def test_unreadable_files_are_skipped_with_a_reason(
    tmp_path: Path, content: str | bytes, line: int, reason: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(content if isinstance(content, bytes) else content.encode())
    write_lines(tmp_path / "good.jsonl", CLAUDE)
    read = read_transcripts(tmp_path)
    assert [t.id for t in read.transcripts] == ["good#0"]
    (skipped,) = read.skipped
    assert reason in skipped.reason
    if line:
        assert skipped.line == line
    with pytest.raises(TranscriptError, match="bad"):
        read_transcript(bad)


def test_missing_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"no file or folder .*nowhere"):
        read_transcripts(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(TranscriptError, match="holds no transcripts"):
        read_transcripts(tmp_path)
    with pytest.raises(TranscriptError, match="Expected a file"):
        read_transcript(tmp_path)


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(entry) for entry in [*CLAUDE, claude_user("half \ud83d"), *COMPACTED[2:]]]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    (transcript,) = read_transcript(path)
    assert text("half \ud83d") in transcript.messages[-2]["content"]


def test_files_of_one_stem_keep_distinct_ids(tmp_path: Path) -> None:
    for suffix in ("json", "jsonl"):
        write_lines(tmp_path / f"s.{suffix}", CLAUDE)
    assert [t.id for t in read_transcripts(tmp_path).transcripts] == ["s.json#0", "s.jsonl#0"]


# --- real recordings -----------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    "readme", sorted(DATA.glob("agent_sessions/*/README.md")), ids=lambda p: p.parent.name
)
def test_real_sessions_have_the_requests_and_calls_that_their_notes_say(readme: Path) -> None:
    read = read_transcripts(readme.parent)
    assert not read.skipped
    rows = re.findall(r"^\| (\S+)\.jsonl \| \d+ \| (\d+) \| (\d+) \|", readme.read_text(), re.M)
    assert rows
    for stem, calls, requests in rows:
        parts = [t for t in read.transcripts if t.session == stem]
        # an aborted or empty attempt is counted there, and no request here
        assert 0 <= int(requests) - sum(t.requests for t in parts) <= 1
        assert sum(len(calls_of(t.messages)) for t in parts) == int(calls)
        for transcript in parts:
            answered = results_of(transcript.messages)
            assert set(answered) <= set(calls_of(transcript.messages))
            assert len(answered) == len(set(answered))


def calls_of(messages: Iterable[dict[str, Any]]) -> list[str]:
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    anthropic = [b["id"] for b in blocks if b["type"] == "tool_use"]
    return anthropic + [c["id"] for m in messages for c in m.get("tool_calls", ())]


def results_of(messages: Iterable[dict[str, Any]]) -> list[str]:
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    anthropic = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
    return anthropic + [m["tool_call_id"] for m in messages if m["role"] == "tool"]


@needs_data
def test_every_other_real_recording_is_read_or_accounted_for() -> None:
    claude = read_transcripts(DATA / "claude_code")
    assert sum(t.metadata.get("compacted_at_tokens") is not None for t in claude.transcripts) == 3
    assert all("acompact" in s.file for s in claude.skipped)
    tau = read_transcripts(DATA / "tau_bench")
    assert len(tau.transcripts) == 140
    assert len({t.session for t in tau.transcripts}) == 35
    assert not tau.skipped
    swe = read_transcripts(DATA / "swe_agent")
    assert len(swe.transcripts) == len(list((DATA / "swe_agent").rglob("*.traj")))
    assert [Path(s.file).name for s in swe.skipped] == ["all_preds.jsonl"]
