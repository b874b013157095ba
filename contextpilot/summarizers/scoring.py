"""How much a piece of text matters, for a goal and in itself."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeVar

from contextpilot.retrieval.terms import text_terms
from contextpilot.summarizers.split import Piece

_Term = TypeVar("_Term", str, bytes)

_GOAL_WEIGHT = 14.0
"""For a piece with every goal word; the weights below are on the same scale."""
_HEADING_WEIGHT = 0.4
"""Share of a heading's match that the pieces below it get."""
_NEIGHBOUR_WEIGHT = 0.35
"""Share of a match that the piece before and the piece after it get: an answer follows."""
_RARITY_WEIGHT = 0.3
_ALERT_WEIGHT = 0.3
_CUE_WEIGHT = 0.15
_DIGIT_WEIGHT = 0.05
_CAPITAL_WEIGHT = 0.03
_REPEAT_FACTOR = 0.6
"""For each earlier piece that differs in its digits only, as the lines of a log do."""

_KIND_WEIGHTS = {
    "schema": 0.5,
    "field": 0.3,
    "row": 0.15,
    "item": 0.15,
    "heading": 0.1,
    "sentence": 0.1,
    "turn": 0.1,
    "log": 0.05,
    "code": 0.05,
    "shape": 0.05,
}
_ALERTS = frozenset(
    b"error errors exception fail fails failed failure fatal traceback panic denied refused "
    b"timeout critical severe assertionerror unable".split()
)
_CUES = frozenset(
    b"conclusion conclude therefore thus hence result finally decided decision agreed final must "
    b"never not only cannot except unless required forbidden root cause caused because correction "
    b"corrected instead actually updated superseded important note warning total deadline before "
    b"after first then".split()
)
# The same in Chinese, word for word.
_ALERTS_ZH = re.compile("错误|异常|失败|致命|拒绝|超时|严重")
_CUES_ZH = re.compile(
    "结论|因此|所以|结果|最终|决定|同意|须|从不|从未|绝不|未(?!来)|没有|不得|不能|不会|不要|不可|只有|只能|仅|无法|"
    "除非|除了|以外|需要|禁止|根因|原因|因为|由于|更正|改为|实际|更新|取代|作废|重要|注意|警告|总计|合计|截止|"
    "之前|先于|之后|随后|首先|然后"
)
_STOPWORDS = frozenset(
    b"a an and are as at be been but by can did do does for from had has have he her his how i if "
    b"in into is it its me my of on or our please she should so some such than that the their them "
    b"there these they this those to us use was we were what when where which who why will with "
    b"would you your".split()
)
_STOP_PAIRS = frozenset(("如何", "可以", "以及", "一个"))
_FUNCTION_CHARACTERS = frozenset(
    "的了是在有和与及或而且并也就都还被把给从为吗呢吧啊么们这那哪什怎些几各每某个很请我你您他她它"
)
"""Chinese stopwords of one character. Pairs such as 了故 and 的准 match nothing; were they terms of
the goal, they would take from what the pairs that match are worth."""
_WORD_BYTES = bytes(byte if chr(byte).isalnum() else ord(" ") for byte in range(256))
"""For ASCII."""
_EAST_ASIAN = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORD = re.compile(f"[{_EAST_ASIAN}]+|[^\\W_{_EAST_ASIAN}]+")
_DIGITS = string.digits.encode()
_ALL_BUT_CAPITALS = bytes(set(range(256)) - set(string.ascii_uppercase.encode()))


def score_pieces(pieces: Sequence[Piece], goal: str) -> list[float]:
    """Returns a score for each piece: the higher, the more worth keeping.

    It adds up how much of the goal the piece and its surroundings mention, rare words counting
    more; how rare its own words are here; and what tends to matter under any goal: numbers, names,
    fields, errors, conclusions, negations. Pieces without words and exact repetitions get 0.
    """
    encoded = [piece.text.encode("utf-8", "surrogatepass") for piece in pieces]
    words = [_words(piece.text, text) for piece, text in zip(pieces, encoded, strict=True)]
    rarity = _rarity(words)
    matches = _goal_matches(pieces, words, goal)
    scores: list[float] = []
    patterns: Counter[bytes] = Counter()
    texts: set[bytes] = set()
    heading = 0.0
    for index, (piece, text) in enumerate(zip(pieces, encoded, strict=True)):
        if piece.kind == "heading":
            heading = matches[index]
        around = max(matches[max(0, index - 1) : index + 2])
        pattern = text.translate(None, _DIGITS)
        asked = matches[index] + _NEIGHBOUR_WEIGHT * around + _HEADING_WEIGHT * heading
        itself = rarity[index] + _prior(piece, text, words[index], len(text) - len(pattern))
        score = asked + itself * _REPEAT_FACTOR ** patterns[pattern]
        scores.append(score if words[index] and text not in texts else 0.0)
        patterns[pattern] += 1
        texts.add(text)
    return scores


def score_line(text: str, goal: str) -> float:
    """Returns what `score_pieces` gives a sentence that stands alone, in a tenth of the time."""
    encoded = text.encode("utf-8", "surrogatepass")
    words = _words(text, encoded)
    if not words:
        return 0.0
    singulars, pairs = _goal_terms(goal)
    terms = len({*singulars.values(), *pairs})
    found = {singulars[word] for word in singulars.keys() & words}
    if pairs and not text.isascii():
        found.update(pair for pair in pairs if pair in text)
    match = _GOAL_WEIGHT * len(found) / terms if terms else 0.0
    digits = len(encoded) - len(encoded.translate(None, _DIGITS))
    itself = _RARITY_WEIGHT + _prior(Piece("sentence", text), encoded, words, digits)
    return match * (1 + _NEIGHBOUR_WEIGHT) + itself


def _words(text: str, encoded: bytes) -> frozenset[bytes]:
    """Returns the distinct words in lower case.

    A word of Latin letters between Chinese ones, without spaces, is a word all the same.
    """
    if len(encoded) == len(text):
        return frozenset(encoded.lower().translate(_WORD_BYTES).split())
    return frozenset(
        word.encode("utf-8", "surrogatepass") for word in _WORD.findall(text.lower())
    )  # fmt: skip


def _prior(piece: Piece, text: bytes, words: frozenset[bytes], digits: int) -> float:
    """Returns what a piece is worth whatever the goal."""
    cues, alerts = len(words & _CUES), len(words & _ALERTS)
    if len(text) != len(piece.text):
        cues += len(_CUES_ZH.findall(piece.text))
        alerts += len(_ALERTS_ZH.findall(piece.text))
    capitals = len(text.translate(None, _ALL_BUT_CAPITALS))
    return (
        _KIND_WEIGHTS[piece.kind]
        + _ALERT_WEIGHT * min(2, alerts)
        + _CUE_WEIGHT * min(2, cues)
        + _DIGIT_WEIGHT * min(6, digits)
        + _CAPITAL_WEIGHT * min(4, capitals)
    )


def _rarity(words: Sequence[frozenset[bytes]]) -> list[float]:
    """Returns the weighted mean rarity of each piece's words."""
    weights = _weights(Counter(chain.from_iterable(words)), len(words))
    scale = _RARITY_WEIGHT / (max(weights.values(), default=0) or 1)
    return [
        scale * sum(map(weights.__getitem__, piece)) / len(piece) if piece else 0.0
        for piece in words
    ]


def _goal_matches(
    pieces: Sequence[Piece], words: Sequence[frozenset[bytes]], goal: str
) -> list[float]:
    """Returns the weighted share of the goal's terms in each piece, rare terms counting more."""
    singulars, pairs = _goal_terms(goal)
    found: list[set[str]] = []
    for piece, distinct in zip(pieces, words, strict=True):
        terms = {singulars[word] for word in singulars.keys() & distinct}
        if pairs and not piece.text.isascii():
            terms.update(pair for pair in pairs if pair in piece.text)
        found.append(terms)
    counts = Counter(chain.from_iterable(found))
    # A term that is nowhere here weighs as much as a rare one: a source of which every piece is
    # beside the point must not score like one that answers.
    weights = _weights(
        Counter({term: max(1, counts[term]) for term in (*singulars.values(), *pairs)}),
        len(pieces),
    )
    scale = _GOAL_WEIGHT / (sum(weights.values()) or 1)
    return [scale * sum(map(weights.__getitem__, terms)) for terms in found]


def _weights(counts: Counter[_Term], pieces: int) -> dict[_Term, int]:
    """Returns the inverse piece frequency of each term.

    Whole numbers, because sets have no order: sums of floats would differ between processes.
    """
    by_count = {
        count: round(1000 * math.log(1 + (pieces - count + 0.5) / (count + 0.5)))
        for count in set(counts.values())
    }
    return {term: by_count[count] for term, count in counts.items()}


@lru_cache(maxsize=1 << 11)
def _goal_terms(goal: str) -> tuple[dict[bytes, str], list[str]]:
    """Returns the goal's content words, singular by either form, and its East Asian pairs."""
    singulars: dict[bytes, str] = {}
    pairs: list[str] = []
    for term in dict.fromkeys(text_terms(goal)):
        word = term.encode("utf-8", "surrogatepass")
        if term.isascii() and word not in _STOPWORDS:
            singular = term[:-1] if len(term) > 3 and term[-1] == "s" else term
            singulars[singular.encode()] = singulars[singular.encode() + b"s"] = singular
        elif len(term) > 1 and not term.isascii() and not _is_stop_pair(term):
            pairs.append(term)
    return singulars, pairs


def _is_stop_pair(pair: str) -> bool:
    """Says whether a pair is a stopword, or straddles one and another word."""
    return pair in _STOP_PAIRS or not _FUNCTION_CHARACTERS.isdisjoint(pair)
