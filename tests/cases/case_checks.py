"""The checks of the cases. Each returns what is wrong, in words; "" where nothing is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cases.case_setup import Played

from contextpilot.core.edit import Op, Outcome
from contextpilot.core.segment import Trust
from contextpilot.messages.layout import RELOAD_TOOL
from contextpilot.messages.validate import problems
from contextpilot.tokenizers import EstimateTokenizer

Check = Mapping[str, Any]
Messages = Sequence[Mapping[str, Any]]

_FRAMED = re.compile(r"<(context-data[-\w]*)>.*?</\1>", re.DOTALL)
_SYNONYMS = {"dangling_call": "unanswered_call", "summarizer_error": "summarizer_error"}
_NAMES = {"tool_results": "tool_results", "reserved": "reserved_output"}


def blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def text_of(message: Mapping[str, Any]) -> str:
    out: list[str] = []
    for block in blocks(message):
        kind = block.get("type")
        if kind in ("text", "input_text", "output_text"):
            out.append(block.get("text") or "")
        elif kind == "thinking":
            out.append(block.get("thinking") or "")
        elif kind == "tool_result":
            out += [text_of(block)]
        elif kind == "tool_use":
            out.append(json.dumps(block.get("input", {})))
    calls = message.get("tool_calls") or ()
    out += [call["function"]["name"] + call["function"]["arguments"] for call in calls]
    return " ".join(out)


def chars4(messages: Messages, tools: Sequence[Any] = ()) -> int:
    images = sum(b.get("type") in ("image", "image_url") for m in messages for b in blocks(m))
    counted = sum(math.ceil(len(text_of(m)) / 4) + 3 for m in messages)
    schemas = sum(math.ceil(len(json.dumps(tool)) / 4) for tool in tools)
    return counted + 1000 * images + schemas


def valid(played: Played, check: Check) -> str:
    return str(problems(played.case["format"], played.first.messages) or "")


def valid_after_steps(played: Played, check: Check) -> str:
    found = (problems(played.case["format"], each.messages) for each in played.requests)
    return str(next((each for each in found if each), ""))


def keeps_verbatim(played: Played, check: Check) -> str:
    given = played.case["messages"]
    lost = [i for i in check["messages"] if given[i] not in played.first.messages]
    return f"messages {lost} are not verbatim" if lost else ""


def keeps_text(played: Played, check: Check) -> str:
    said = " ".join(map(text_of, played.first.messages))
    return ", ".join(repr(text) for text in check["texts"] if text not in said)


def lacks_text(played: Played, check: Check) -> str:
    said = " ".join(map(text_of, played.first.messages))
    return ", ".join(repr(text) for text in check["texts"] if text in said)


def text_in_role(played: Played, check: Check) -> str:
    roles = {m["role"] for m in played.first.messages if check["text"] in text_of(m)}
    return str(roles - set(check["roles"]) or "")


def noop(played: Played, check: Check) -> str:
    return "" if played.first.messages == played.case["messages"] else "something changed"


def edited(played: Played, check: Check) -> str:
    return "nothing changed" if played.first.messages == played.case["messages"] else ""


def edited_after_steps(played: Played, check: Check) -> str:
    same = played.requests[-1].messages == played.histories[-1]
    return "nothing changed after the steps" if same else ""


def smaller(played: Played, check: Check) -> str:
    before, after = chars4(played.case["messages"]), chars4(played.first.messages)
    changed = played.first.messages != played.case["messages"]
    return f"{before} became {after}" if changed and after >= before else ""


def max_tokens(played: Played, check: Check) -> str:
    count = chars4(played.first.messages, played.case["config"].get("tools") or ())
    return f"{count} tokens" if count > check["value"] else ""


def max_messages(played: Played, check: Check) -> str:
    count = len(played.first.messages)
    return f"{count} messages" if count > check["value"] else ""


def last_user_text(played: Played, check: Check) -> str:
    spoken = [m for m in played.first.messages if m["role"] == "user" and text_of(m)]
    return "" if spoken and check["text"] in text_of(spoken[-1]) else "another one is last"


def first_nonsystem_role(played: Played, check: Check) -> str:
    roles = [m["role"] for m in played.first.messages if m["role"] not in ("system", "developer")]
    return "" if roles[:1] == [check["role"]] else f"{roles[:1]}"


def utf8(played: Played, check: Check) -> str:
    try:
        json.dumps(played.first.messages, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return str(error)
    return ""


def reasons(played: Played) -> set[str]:
    """Returns everything that logs and reports say happened."""
    said = {str(record.outcome.value) for record in played.session.log}
    for request in played.requests:
        said.add(request.status.value)
        said |= {repair.rule for repair in request.report.repairs}
        said |= {"over_budget"} if request.report.over_budget else set()
        if request.status.value == "budget_unreachable":
            assert request.report.pinned, "the pinned tokens are not named"
    return said


def log_has(played: Played, check: Check) -> str:
    wanted = _SYNONYMS.get(check["reason"], check["reason"])
    said = reasons(played)
    return "" if any(wanted in each or check["reason"] in each for each in said) else f"{said}"


def log_empty(played: Played, check: Check) -> str:
    return "" if len(played.session.log) == 0 else f"{list(played.session.log)}"


def max_summarizer_calls(played: Played, check: Check) -> str:
    calls = played.summarizer.calls
    return f"{calls} calls" if calls > check["value"] else ""


def max_prefix_breaks(played: Played, check: Check) -> str:
    before: Sequence[Any] = played.case["messages"]
    breaks = 0
    for request in played.requests:
        breaks += request.messages[: len(before)] != list(before)
        before = request.messages
    return f"{breaks} breaks" if breaks > check["value"] else ""


def max_summaries(played: Played, check: Check) -> str:
    out, config = played.first.messages, played.case["config"]
    index = config.get("previous_summary_index")
    earlier = [index] if index is not None else []
    kept = sum(played.case["messages"][i] in out for i in earlier)
    made = sum("[summary of " in text_of(message) for message in out)
    return f"{kept} + {made} summaries" if kept + made > check["value"] else ""


def manifest_categories(played: Played, check: Check) -> str:
    tokens = dict(played.first.report.account.by_category())
    tokens["history"] += tokens["pinned"]  # cases have no category of what is pinned
    missing = [name for name in check["names"] if not tokens.get(_NAMES.get(name, name))]
    return f"{missing} in {tokens}" if missing else ""


def count_at_least(played: Played, check: Check) -> str:
    text = " ".join(map(text_of, played.case["messages"]))
    cjk = sum("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" for char in text)
    least = float(check["value"].split("*")[0]) * cjk
    counted = EstimateTokenizer().count(text)
    return "" if counted >= least else f"{counted} tokens of {cjk} characters"


def reload_restores(played: Played, check: Check) -> str:
    """The reload tool shows the whole text, and without its edits the request has the bytes."""
    session = played.session
    for index in check["messages"]:
        given = played.case["messages"][index]
        for segment in [e.segment for e in session._desk.entries.all]:
            if segment.position[0] == index:
                call = {"id": "r", "name": RELOAD_TOOL, "input": {"id": segment.id}}
                answer = json.dumps(session.dispatch_reload(call), ensure_ascii=False)
                if json.dumps(segment.text, ensure_ascii=False)[1:-1] not in answer:
                    return f"{segment.id} is not shown whole"
        if given not in restored(played):
            return f"message {index} is not as it was"
    return ""


def restored(played: Played) -> list[dict[str, Any]]:
    played.session.undo_all()
    rendering, _ = played.session._conversation._rendered(
        played.session._conversation._history.read(played.case["messages"]), None
    )
    return rendering.messages


def undo_restores_all(played: Played, check: Check) -> str:
    return "" if restored(played) == played.case["messages"] else "something else came back"


def label_at_most(played: Played, check: Check) -> str:
    archive = played.session._parts.archive
    for record in played.session.log:
        if record.op == Op.SUMMARIZE and record.outcome == Outcome.APPLIED:
            summary = archive.get(played.session.id, record.output)
            if summary.trust != Trust.UNTRUSTED:
                return f"{summary.id} is trusted as {summary.trust.name}"
    return ""


def not_plain_user(played: Played, check: Check) -> str:
    for message in played.first.messages:
        plain = _FRAMED.sub("", text_of(message))
        if message["role"] in ("user", "system", "developer") and check["text"] in plain:
            results = [b for b in blocks(message) if b.get("type") == "tool_result"]
            if not any(check["text"] in text_of(block) for block in results):
                return f"it is plain text of {message['role']}"
    return ""


CHECKS: Mapping[str, Callable[[Played, Check], str]] = {
    check.__name__: check
    for check in (
        valid, valid_after_steps, keeps_verbatim, keeps_text, lacks_text, text_in_role, noop,
        edited, edited_after_steps, smaller, max_tokens, max_messages, last_user_text,
        first_nonsystem_role, utf8, log_has, log_empty, max_summarizer_calls, max_prefix_breaks,
        max_summaries, manifest_categories, count_at_least, reload_restores, undo_restores_all,
        label_at_most, not_plain_user,
    )
}  # fmt: skip
"""By the name that cases use."""
