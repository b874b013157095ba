"""Telling a summary from what a failed client returned in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 600
"""A failure is told in a few sentences; a text beyond that says something."""

_QUOTED_CHARS = 24

_SERVER = (
    r"(?:too many requests|internal server error|bad gateway|service unavailable"
    r"|gateway time-? ?out|(?:server )?overloaded)"
)
_REASON = (
    r"(?:bad request|unauthori[sz]ed|forbidden|not found|method not allowed|request time-? ?out"
    rf"|conflict|payload too large|slow down|{_SERVER})"
)
_TIMED_OUT = r"(?:timed out|time-?out|cancell?ed|blocked)"
_ENDS = r"\s*(?:[.:;,!({\[-]|\d|$|with\b|due\b|after\b|while\b)"
_NOT_ABLE = (
    r"(?:can(?:not|['’]t)|could(?: not|n['’]t)|(?:am|are|was|were) (?:unable|not able) to"
    r"|won['’]t|will not)"
)

_FAILURES = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # exceptions by name: openai.RateLimitError: 429 slow down
        r"(?:[a-z_]+\.)*[a-z_]*(?:error|exception|timeout)\s*(?:[:(\]]|[.!]?\s*$)",
        r"traceback \(most recent call last\)",
        # Error: ..., [ERROR] ..., Error calling LLM: ..., Error code 500
        r"error\b\s*(?:[:\]\d]|code\b|[.!]?\s*$)",
        r"error (?:while |in |during |from )?(?:the |a )?(?:generat|creat|call|process|produc"
        r"|summari|communicat|connect|request)",
        r"an? (?:\w+ ){0,2}(?:error|exception) (?:has )?occurred\s*(?:[.:!,;]|while|when|during|$)",
        # of HTTP: 503 Service Unavailable; Service Unavailable (503); status code 429
        rf"(?:http[/ ]?[\d.]*\s*)?[45]\d\d\s*[:,-]?\s*{_REASON}\s*(?:[.:;,({{\[-]|$)",
        rf"{_SERVER}\s*(?:[.:;,!({{\[-]|[45]\d\d|$)",
        r"(?:the )?(?:request failed with )?(?:http )?status(?: code)?\s*:?\s*[45]\d\d\b",
        r"<(?:!doctype html|html)\b",
        r"\{.{0,40}?[\"'](?:error|errors|exception|detail)[\"']\s*[:,}]",
        # of services: API Error: 529; Connection error; The model is currently overloaded
        r"(?:api|llm|model|network|connection|server|provider|upstream|gateway|request|call|openai"
        r"|anthropic|azure|internal|rate[ _-]?limit) (?:server )?"
        rf"(?:error|failure|failed|refused|reset|aborted|{_TIMED_OUT}){_ENDS}",
        r"(?:the )?(?:operation|request|connection|call|read|prompt) (?:has |was )?"
        rf"{_TIMED_OUT}{_ENDS}",
        r"the (?:model|server|service|engine|system) (?:is|was) (?:currently |temporarily )?"
        r"(?:overloaded|unavailable|busy|not available)\b",
        # of limits
        r"rate[ _-]?limit (?:reached|exceeded|hit)\b",
        r"(?:you(?:'ve| have)? )?exceeded your (?:current )?quota\b|quota exceeded\b",
        r"insufficient[ _]quota\b|resource[ _](?:has been )?exhausted\b",
        r"(?:the )?(?:prompt|input|request|context) (?:is|was) too (?:long|large)\b",
        r"(?:this model's )?maximum context length\b|context[ _](?:length|window)[ _]exceeded\b",
        # of a model that would not or could not
        r"(?:(?:i am|i'm|we are|we're) )?(?:very |so |really )?(?:sorry|apologies)\b",
        r"(?:i|we) (?:sincerely )?apologi[sz]e\b|as an ai\b",
        rf"(?:unfortunately,? )?(?:i|we) {_NOT_ABLE} (?:summari[sz]e|help|assist|comply|continue"
        r"|access|process|provide|complete|do that|generate)\b",
        r"(?:unable|failed|could not|cannot|not able) (?:to )?(?:generate|create|produce|make"
        r"|complete|summari[sz]e|connect|reach|process|fetch)\b",
        r"(?:oops[,.!]* *)?something went wrong\b",
        # the same in Chinese
        r"(?:错误|出错|异常|内部(?:服务器)?错误|系统(?:错误|繁忙|异常)|调用(?:失败|超时))",
        r"(?:请求|连接|网络|服务器?)(?:超时|失败|错误|异常|繁忙|不可用|过于频繁|被拒绝|内部错误)",
        r"(?:生成)?(?:摘要|总结)(?:生成)?失败|无法(?:生成|总结|概括|完成|提供|处理)",
        r"(?:很|非常)?(?:抱歉|对不起)|上下文(?:过长|超出)",
    )
)

_FILL = r"[\s`\"'.\-*_#\[\]{}()\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_NOTHING = re.compile(
    rf"{_FILL}(?:null|none|nil|undefined|nan|n/a|json|text|markdown|empty)?{_FILL}", re.IGNORECASE
)


def is_error_text(text: str, sources: Sequence[str] = ()) -> bool:
    """Returns True where a short text begins as reports of failure do, and no source says the same.

    Some clients return what went wrong instead of raising it, and some models decline. A summary of
    a log may itself begin with an error of the log: what is quoted from a source is no failure.

    Args:
        text: what a summarizer returned.
        sources: what it was given.
    """
    said = text.strip()
    if len(said) > _LONGEST and not said.startswith(("{", "<", "Traceback")):
        return False
    begins = said.lstrip(" \t\"'`*[(")
    if not any(failure.match(begins) for failure in _FAILURES):
        return False
    quoted = said[:_QUOTED_CHARS]
    return not any(quoted in source for source in sources)


def is_empty_text(text: str) -> bool:
    """Returns True where a text says nothing: white space, a bare fence, or a null as a word."""
    return _NOTHING.fullmatch(text) is not None
