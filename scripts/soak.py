"""Random histories through sessions, every request checked: valid, within budget, nothing lost.

    python scripts/soak.py [--count 50000] [--workers 1] [--seed 0]

One count is one history in one of the three formats (they alternate), given to a session at up to
four of its request points, with random legal edits under a random budget. Exit code 1, and one line
for each violation, where something does not hold; `--first N --count 1` drives history N alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from soak_sessions import Drive, Tally
from tqdm import tqdm

OUTPUT = Path(__file__).resolve().parent.parent / "results" / "soak.json"


def drive(number: int, seed: int, longest: int) -> Tally:
    """Drives one history; its violations say how to see them again."""
    driven = Drive(seed, number, longest)
    tally = driven.run()
    again = f"python scripts/soak.py --seed {seed} --first {number} --count 1"
    again += "" if longest == 400 else f" --longest {longest}"
    tally.violations = [f"{driven.format}, {found}\n    {again}" for found in tally.violations]
    return tally


def driven(arguments: argparse.Namespace) -> Iterator[Tally]:
    """Yields each history's tally, in order, from this process or from several."""
    one = partial(drive, seed=arguments.seed, longest=arguments.longest)
    numbers = range(arguments.first, arguments.first + arguments.count)
    if arguments.workers == 1:
        yield from map(one, numbers)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.workers, _ignore_ctrl_c) as pool:
        yield from pool.imap(one, numbers, chunksize=8)


def _ignore_ctrl_c() -> None:
    """Leaves Ctrl-C to the parent, which ends its workers."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def report(total: Tally, arguments: argparse.Namespace, seconds: float) -> dict[str, object]:
    """Returns what was done as plain JSON."""
    return {
        "seed": arguments.seed,
        "first": arguments.first,
        **dict(sorted(total.counts.items())),
        "edited_share": round(total.edited_share, 4),
        "edit_shares": {op: round(share, 4) for op, share in total.shares().items()},
        "violations": total.violations,
        "workers": arguments.workers,
        "seconds": round(seconds, 1),
    }


def arguments_of(argv: list[str] | None = None) -> argparse.Namespace:
    """Returns the command line's settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=50_000, help="how many histories to drive")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--seed", type=int, default=0, help="of all of them")
    parser.add_argument("--longest", type=int, default=400, help="messages of the longest")
    parser.add_argument("--workers", type=int, default=1, help="processes to share the work")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the counts go")
    arguments = parser.parse_args(argv)
    for name, least in (("count", 1), ("first", 0), ("longest", 20), ("workers", 1)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name} must be at least {least}. Received {getattr(arguments, name)}.")
    return arguments


def main(argv: list[str] | None = None) -> int:
    """Drives the histories and writes the counts; returns the exit code."""
    arguments = arguments_of(argv)
    total, started = Tally(), time.perf_counter()
    try:
        for tally in tqdm(driven(arguments), total=arguments.count, unit="history", mininterval=1):
            total.add(tally)
            for violation in tally.violations:
                tqdm.write(violation)
    except KeyboardInterrupt:
        print(f"stopped after {total.counts['histories']} histories; nothing was written",
              file=sys.stderr)  # fmt: skip
        return 130
    made = report(total, arguments, time.perf_counter() - started)
    text = json.dumps(made, indent=1)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    part = arguments.output.with_suffix(f".{os.getpid()}.part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(arguments.output)
    print(text)
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
