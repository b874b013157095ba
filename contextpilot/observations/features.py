"""The layout of an observation. Checkpoints carry `OBSERVATION_VERSION`.

Every feature is something that a production manager knows too; none is a label. Token counts are
`log1p(tokens) / TOKEN_SCALE`, so that they invert exactly enough for rules to read them back.
"""

from __future__ import annotations

from contextpilot.core.segment import Form, Kind

OBSERVATION_VERSION = 1

TOKEN_SCALE = 12.0
AGE_SCALE = 6.0

SEGMENT_FEATURES = (
    "size",  # tokens in the present form
    "full",  # tokens of the original
    "stub",  # tokens that its stub would have
    "age",  # requests since it arrived, log1p / AGE_SCALE
    "position",  # rank / length, in [0, 1)
    "tokens_behind",  # visible tokens behind it: what breaking the prefix here costs
    "sent",  # the agent has seen it once
    "pinned",
    "marked",
    "wait",  # requests until its mark is due, / 8, in [0, 1]
    "references",  # log1p(count) / 4
    "reference_recency",  # 1 / (1 + requests since the last), 0: never
    "superseded",  # a newer reading of the same resource has arrived
    "reloads",  # log1p(count) / 3
    "edit_recency",  # 1 / (1 + requests since the last edit), 0: never
    "settled",  # every call of its exchange has its result
    "locked",  # its exchange has reasoning
    "behind_break",  # behind a prefix break that is pending: hiding it costs nothing more
    "goal_relevance",  # BM25 against the goal, share of the largest possible
    "in_exchange",
    "trust",  # / 3
    "resource",  # it is a reading of something that can be named
    *(f"form_{form.name.lower()}" for form in Form if form != Form.ABSENT),
    *(f"kind_{kind.name.lower()}" for kind in Kind),
)
"""Per context slot."""

ARCHIVE_FEATURES = (
    "full",
    "age",
    "archived_age",  # requests since it left, log1p / AGE_SCALE
    "references",
    "reference_recency",
    "superseded",
    "reloads",
    "goal_relevance",
    "covered",  # a visible summary stands for it
    "trust",
    *(f"kind_{kind.name.lower()}" for kind in Kind),
)
"""Per archive slot."""

STATE_FEATURES = (
    "used",  # tokens of the next request / input limit, at most 2
    "used_tokens",
    "limit_tokens",
    "threshold",  # share of the input limit
    "reserved_tokens",
    "pressure",
    "overflow",
    "prefix_tokens",  # system prompt and tool schemas
    "arrived_tokens",  # since the last request
    "request",  # log1p / AGE_SCALE
    "step",  # edit steps used / K
    "pending_break",
    "break_tokens_behind",  # visible tokens behind the pending break
    "due_tokens",  # of marked segments that may leave now
    "due_behind_break_tokens",
    "unlisted",  # log1p(visible segments without a slot) / 6
    "unlisted_tokens",
    "cold",  # the provider's cache has run out
    "in_tool_loop",
    "price_cached",  # prices relative to one input token
    "price_write",
    "price_output",  # / 10
    "reload_output_tokens",
    "last_op_0",  # the latest operation, / 6; -1: none
    "last_op_1",
    "last_op_2",
    "last_op_3",
)
"""Once per observation."""

SEGMENT_INDEX = {name: i for i, name in enumerate(SEGMENT_FEATURES)}
ARCHIVE_INDEX = {name: i for i, name in enumerate(ARCHIVE_FEATURES)}
STATE_INDEX = {name: i for i, name in enumerate(STATE_FEATURES)}
