import json
from pathlib import Path
from typing import Any

from recordings import (
    CLAUDE,
    COMPACTED,
    TAU_MESSAGES,
    claude_turn,
    claude_user,
    result,
    text,
    use,
    write_lines,
)

from contextpilot_envs.tasks.transcripts import Usage, read_transcript, read_transcripts

# --- Claude Code ---------------------------------------------------------------------------------


def test_claude_code_merges_lines_into_messages(tmp_path: Path) -> None:
    (transcript,) = read_transcript(write_lines(tmp_path / "s.jsonl", CLAUDE))
    assert transcript.format == "anthropic"
    assert transcript.agent == "claude_code"
    assert transcript.messages == (
        {
            "role": "user",
            "content": [text("[a reminder of the program]"), text("Fix the build")],
        },
        {"role": "assistant", "content": [text("Looking."), use("c1"), use("c2")]},
        {"role": "user", "content": [result("c1"), result("c2"), text("also check the tests")]},
        {"role": "assistant", "content": [text("Done.")]},
    )
    assert transcript.usage == (Usage(143, 100, 1), Usage(143, 100, 1))
    assert transcript.metadata["goal"] == "Fix the build"


def test_a_compaction_makes_two_episodes_of_one_session(tmp_path: Path) -> None:
    first, second = read_transcript(write_lines(tmp_path / "s.jsonl", CLAUDE + COMPACTED))
    assert (first.id, second.id) == ("s#0", "s#1")
    assert first.session == second.session == "s"
    assert first.metadata["compacted_at_tokens"] == "9"
    assert second.messages == (
        {"role": "user", "content": [text("Summary of before")]},
        {"role": "assistant", "content": [text("Going on.")]},
    )
    assert second.metadata["goal"] == "Fix the build"


def test_messages_that_the_program_made_up_are_no_requests(tmp_path: Path) -> None:
    made_up = claude_turn("x", text("No response requested."))
    made_up["message"]["model"] = "<synthetic>"
    error = claude_turn("y", text("API Error: 500"), isApiErrorMessage=True)
    entries = [*CLAUDE, made_up, claude_user("go on"), error, claude_turn("m9", text("Fine."))]
    (transcript,) = read_transcript(write_lines(tmp_path / "s.jsonl", entries))
    assert transcript.requests == 3
    assert [m["role"] for m in transcript.messages][-2:] == ["user", "assistant"]


def test_sub_agents_are_transcripts_of_their_own_and_compaction_calls_are_skipped(
    tmp_path: Path,
) -> None:
    write_lines(tmp_path / "s.jsonl", CLAUDE)
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    agent = [claude_user("explore", isSidechain=True, agentId="a1")]
    agent.append(claude_turn("m1", text("ok"), isSidechain=True, agentId="a1"))
    write_lines(folder / "agent-a1.jsonl", agent)
    side_call = [claude_user("summarize", isSidechain=True, agentId="acompact-7")]
    write_lines(folder / "agent-acompact-7.jsonl", side_call)
    read = read_transcripts(tmp_path)
    assert [t.id for t in read.transcripts] == ["s/subagents/agent-a1#0", "s#0"]
    assert {t.session for t in read.transcripts} == {"s"}
    (skipped,) = read.skipped
    assert skipped.file.endswith("agent-acompact-7.jsonl")
    assert "side call" in skipped.reason


# --- Codex ---------------------------------------------------------------------------------------


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def said(role: str, value: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": value}])


def tokens(total: int) -> dict[str, Any]:
    usage = {"input_tokens": total, "cached_input_tokens": 2, "output_tokens": 5}
    return {"type": "event_msg", "payload": {"type": "token_count", "last_token_usage": usage}}


CODEX = [
    {"type": "session_meta", "payload": {"id": "x"}},
    said("developer", "rules"),
    said("user", "# AGENTS.md instructions"),
    said("user", "make it fast"),
    item("reasoning", summary=[{"type": "summary_text", "text": "thinking"}]),
    said("assistant", "First."),
    item("web_search_call", action={"type": "search", "query": "fast sort"}),
    item("function_call", call_id="c1", name="exec_command", arguments='{"cmd": "ls"}'),
    item("custom_tool_call", call_id="c2", name="exec", input="const x = 1;"),
    item("function_call_output", call_id="c1", output="a.py"),
    item("custom_tool_call_output", call_id="c2", output=[{"type": "input_text", "text": "1"}]),
    tokens(100),
    tokens(100),
    said("assistant", "Second."),
    tokens(120),
]


def test_codex_groups_items_by_request(tmp_path: Path) -> None:
    (transcript,) = read_transcript(write_lines(tmp_path / "r.jsonl", CODEX))
    assert transcript.format == "openai"
    assert [m["role"] for m in transcript.messages] == [
        "system", "user", "user", "assistant", "tool", "tool", "assistant"
    ]  # fmt: skip
    turn = transcript.messages[3]
    assert turn["content"] == "First.\n\n[web search: fast sort]"
    assert turn["reasoning_content"] == "thinking"
    assert [call["type"] for call in turn["tool_calls"]] == ["function", "custom"]
    assert turn["tool_calls"][1]["custom"] == {"name": "exec", "input": "const x = 1;"}
    assert transcript.messages[5] == {"role": "tool", "tool_call_id": "c2", "content": "1"}
    assert transcript.usage == (Usage(100, 2, 5), Usage(120, 2, 5))
    assert transcript.metadata["goal"] == "make it fast"


def test_codex_requests_without_token_counts_end_at_results(tmp_path: Path) -> None:
    entries = [e for e in CODEX if e["payload"].get("type") != "token_count"]
    (transcript,) = read_transcript(write_lines(tmp_path / "r.jsonl", entries))
    assert transcript.requests == 2
    assert transcript.usage == (None, None)


def test_codex_compaction_splits_and_replaces_the_history(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": "make it fast"}]
    compacted = {"type": "compacted", "payload": {"replacement_history": history}}
    entries = [*CODEX, compacted, tokens(0), said("assistant", "Third."), tokens(50)]
    first, second = read_transcript(write_lines(tmp_path / "r.jsonl", entries))
    assert first.requests == 2
    assert second.messages == (
        {"role": "user", "content": "make it fast"},
        {"role": "assistant", "content": "Third."},
    )
    assert second.usage == (Usage(50, 2, 5),)


def test_codex_texts_typed_while_tools_run_stand_behind_their_results(tmp_path: Path) -> None:
    place = next(n for n, e in enumerate(CODEX) if e["payload"].get("call_id") == "c2")
    entries = [*CODEX[: place + 1], said("user", "hurry"), *CODEX[place + 1 :]]
    (transcript,) = read_transcript(write_lines(tmp_path / "r.jsonl", entries))
    assert [m["role"] for m in transcript.messages][3:] == [
        "assistant", "tool", "tool", "user", "assistant"
    ]  # fmt: skip


# --- Copilot, Oh My Pi, tau-bench, SWE-agent -----------------------------------------------------


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": "e", "timestamp": "t", "data": data}


def test_copilot_events(tmp_path: Path) -> None:
    request = {"toolCallId": "c1", "name": "view", "arguments": {"path": "a.py"}}
    entries = [
        event("session.start", version=1),
        event("system.message", role="system", content="rules"),
        event("user.message", content="make it green"),
        event("user.message", source="system"),
        event("assistant.message", content="", toolRequests=[request], outputTokens=40),
        event("tool.execution_start", toolCallId="c1"),
        event("user.message", content="and quickly"),
        event("tool.execution_complete", toolCallId="c1", result={"content": "x = 1"}),
        event("assistant.message", content="inner", parentToolCallId="c1"),
        event("assistant.message", content="Done."),
    ]
    (transcript,) = read_transcript(write_lines(tmp_path / "e.jsonl", entries))
    assert transcript.agent == "copilot"
    assert [m["role"] for m in transcript.messages] == [
        "system", "user", "assistant", "tool", "user", "assistant"
    ]  # fmt: skip
    call = transcript.messages[2]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("view", {"path": "a.py"})
    assert transcript.usage == (Usage(None, None, 40), None)


def test_oh_my_pi_entries(tmp_path: Path) -> None:
    def entry(role: str, content: Any, **fields: Any) -> dict[str, Any]:
        message = {"role": role, "content": content, **fields}
        return {"type": "message", "id": "x", "timestamp": "t", "message": message}

    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.rs"}}
    usage = {"input": 10, "cacheRead": 20, "cacheWrite": 5, "output": 7}
    entries = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "t"},
        entry("user", [text("map it")]),
        entry("assistant", [{"type": "thinking", "thinking": "hm"}, call], usage=usage),
        {"type": "custom_message", "content": "keep going", "timestamp": "t"},
        entry("toolResult", [text("fn main")], toolCallId="c1"),
        entry("assistant", [], stopReason="error"),
        entry("assistant", [text("Mapped.")]),
    ]
    (transcript,) = read_transcript(write_lines(tmp_path / "p.jsonl", entries))
    assert transcript.agent == "oh_my_pi"
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": [text("fn main")]}
    assert transcript.messages[2] == {"role": "user", "content": [answer, text("keep going")]}
    assert transcript.usage == (Usage(35, 20, 7), None)


def test_trials_of_one_tau_bench_task_share_a_session(tmp_path: Path) -> None:
    runs = [
        {"task_id": 7, "trial": trial, "reward": float(trial), "traj": TAU_MESSAGES}
        for trial in range(2)
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs, indent=1))
    first, second = read_transcript(path)
    assert (first.id, second.id) == ("runs#7.0", "runs#7.1")
    assert first.session == second.session == "task-7"
    assert second.metadata["reward"] == "1.0"
    assert first.agent == "tau_bench"


def test_swe_agent_commands_become_calls_with_results(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "You work in a shell."},
        {"role": "user", "content": "A worked example", "is_demo": True},
        {"role": "user", "content": "Fix the parser"},
        {
            "role": "assistant",
            "content": "I list.\n```\nls\n```",
            "thought": "I list.",
            "action": "ls",
        },
        {"role": "user", "content": "setup.py"},
        {"role": "assistant", "content": "Done.", "thought": "Done.", "action": ""},
    ]
    path = tmp_path / "repo__issue-12.traj"
    path.write_text(json.dumps({"history": history, "info": {"exit_status": "submitted"}}))
    (transcript,) = read_transcript(path)
    assert [m["role"] for m in transcript.messages] == [
        "system", "system", "user", "assistant", "tool", "assistant"
    ]  # fmt: skip
    call = transcript.messages[3]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"command": "ls"}
    assert transcript.messages[4]["tool_call_id"] == call["id"]
    assert transcript.session == "repo__issue-12"
    assert transcript.metadata["exit_status"] == "submitted"
