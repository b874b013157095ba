"""Cache markers stay where the host's cached prefixes end, or as near as there is a block."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manager.histories import history, manager

from contextpilot.core.edit import Drop, Fold
from contextpilot.manager.formats import Rendering
from contextpilot.manager.markers import marker_of, with_markers

MARK = {"type": "ephemeral"}
MARKED: dict[str, Any] = {"type": "text", "text": "b", "cache_control": MARK}
A: dict[str, Any] = {"role": "user", "content": "a"}
B: dict[str, Any] = {"role": "assistant", "content": [MARKED]}
C: dict[str, Any] = {"role": "user", "content": "c"}


def test_a_marker_whose_message_is_gone_moves_to_the_one_before() -> None:
    out = with_markers(Rendering([A, C], [(0,), (2,)]), [A, B, C])
    assert out.messages[0]["content"] == [{"type": "text", "text": "a", "cache_control": MARK}]
    assert out.messages[1] is C
    assert A == {"role": "user", "content": "a"}


def test_a_marker_that_is_still_there_stays() -> None:
    out = with_markers(Rendering([A, B, C], [(0,), (1,), (2,)]), [A, B, C])
    assert all(x is y for x, y in zip(out.messages, [A, B, C], strict=True))
    assert with_markers(Rendering([C], [(2,)]), [A, B, C]).messages[0] is C  # nothing before it


@pytest.mark.parametrize("edit", ["fold", "drop"])
def test_a_session_keeps_how_many_prefixes_are_cached(edit: str) -> None:
    messages = history("anthropic", 5, 8)
    result = messages[2]["content"][-1]
    messages[2] = {**messages[2], "content": [{**result, "cache_control": MARK}]}
    session = manager("anthropic").session()
    session.prepare(messages)
    target = (session.index("s3"),)
    session.edit(Fold(target) if edit == "fold" else Drop(target))
    sent = session.prepare(messages).messages
    assert json.dumps(sent).count("cache_control") == 1
    at = next(i for i, message in enumerate(sent) if marker_of(message) is not None)
    assert at == (2 if edit == "fold" else 0)
    assert json.dumps(session.prepare(sent).messages) == json.dumps(sent)
