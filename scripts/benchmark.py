"""The environment's speed, as ratios taken in one run.

python scripts/benchmark.py [--output runs/benchmark.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from contextpilot_envs.benchmark import load_against_play, step_growth, vector_against_cartpole


def main() -> None:
    """Takes all ratios, prints them, and saves them where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="also save the figures as JSON")
    arguments = parser.parse_args()
    ratios = [load_against_play(), *step_growth(), *vector_against_cartpole()]
    for ratio in ratios:
        print(
            f"{ratio.name}: {ratio.ratio:.3f} [{ratio.least:.3f}, {ratio.largest:.3f}] "
            f"(ours {ratio.ours:.5g}, theirs {ratio.theirs:.5g}; {ratio.target})"
        )
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        document = [ratio.to_json() for ratio in ratios]
        arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
