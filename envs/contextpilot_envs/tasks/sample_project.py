"""The invented project that the made-up sessions work on: Python files with limits in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

# fmt: off
_AREAS = (
    "billing", "catalog", "shipping", "returns", "pricing", "search", "accounts", "delivery",
    "refunds", "stock",
)
NOUNS = (
    "order", "invoice", "parcel", "voucher", "ledger", "basket", "label", "bundle", "quote",
    "carrier", "depot", "crate", "slot", "rate", "token", "window", "queue", "cursor", "receipt",
    "manifest", "pallet", "route", "tariff", "margin", "deposit", "claim",
)
VERBS = (
    "load", "merge", "split", "close", "verify", "assign", "apply", "settle", "rank", "expire",
    "collect", "route", "round", "attach", "normalise", "reserve", "release", "compare",
    "restore", "archive",
)
_UNITS = (
    "seconds", "items", "attempts", "pages", "bytes", "days", "retries", "rows",
)
STATES = (
    "pending", "settled", "blocked", "rejected", "partial", "overdue",
)
# fmt: on
_COMMENTS = (
    "callers hold the lock of the {a} here",
    "the {a} may be older than its {b}",
    "{b} without {a} are dropped by the nightly job",
    "kept apart from the {b}, whose format differs",
    "an empty {a} is not an error",
)


@dataclass(frozen=True, slots=True)
class Constant:
    """A setting with a wrong and a right value, the file that defines it, and who uses it."""

    name: str
    wrong: int
    right: int
    function: str


@dataclass
class SourceFile:
    """A file of the project; edits change its lines."""

    path: str
    lines: list[str]
    constants: list[Constant] = field(default_factory=list)

    def numbered(self, first: int = 0, count: int | None = None) -> str:
        """Returns `count` lines from 0-based `first` on, with 1-based numbers, as a read tool."""
        last = len(self.lines) if count is None else min(len(self.lines), first + count)
        return "\n".join(f"{n + 1:>6}\t{self.lines[n]}" for n in range(first, last))

    def line_of(self, text: str) -> int:
        """Returns the 0-based number of the first line that contains `text`."""
        return next(n for n, line in enumerate(self.lines) if text in line)


def make_project(random: Random) -> list[SourceFile]:
    """Returns the nine files of one area."""
    area = random.choice(_AREAS)
    names = random.sample(NOUNS, 9)
    return [_source_file(random, f"src/{area}/{name}s.py", name) for name in names]


def _source_file(random: Random, path: str, noun: str) -> SourceFile:
    file = SourceFile(path, [f'"""Everything about one {noun}, from intake to archive."""', ""])
    others = random.sample([n for n in NOUNS if n != noun], 4)
    for other in others[:3]:
        wrong, right = random.sample(range(110, 9900), 2)
        name = f"MAX_{noun}_{other}_{random.choice(_UNITS)}".upper()
        function = f"{random.choice(VERBS)}_{noun}_{other}"
        file.constants.append(Constant(name, wrong, right, function))
        file.lines.append(f"{name} = {wrong}")
    for constant in file.constants:
        file.lines += ["", "", *_function(random, constant, noun, others)]
    for _ in range(random.randint(2, 7)):
        function = f"{random.choice(VERBS)}_{random.choice(others)}_{random.randint(10, 99)}"
        helper = Constant("", 0, 0, function)
        file.lines += ["", "", *_function(random, helper, noun, others)]
    return file


def _function(random: Random, constant: Constant, noun: str, others: list[str]) -> list[str]:
    a, b = random.sample(others, 2)
    lines = [f"def {constant.function}({noun}, {a}s, *, strict=False):"]
    comment = random.choice(_COMMENTS).format(a=a, b=b)
    lines.append(f"    # {comment}")
    if constant.name:
        lines += [
            f"    if len({a}s) > {constant.name}:",
            f'        raise LimitError(f"{{{noun}.id}}: more than {{{constant.name}}} {a}s")',
        ]
    for _ in range(random.randint(2, 6)):
        c, state = random.choice(others), random.choice(STATES)
        lines += [
            f"    {c}_{state} = [{c[0]} for {c[0]} in {noun}.{c}s if {c[0]}.state == {state!r}]",
            f"    {noun}.{random.choice(VERBS)}({c}_{state}, limit={random.randint(100, 999)})",
        ]
    lines += ["    if strict and not " + f"{a}s:", "        return None", f"    return {noun}"]
    return lines
