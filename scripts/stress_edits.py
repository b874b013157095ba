"""200,000 random legal edits: no exception, exact undo, replay equal to the context, nothing lost.

python scripts/stress_edits.py [--edits 200000] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import time

from tqdm import tqdm

from contextpilot_envs.engine import Engine
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.stress import stress
from contextpilot_envs.tasks.catalog import load_source


def main() -> None:
    """Runs the checks family by family and prints what was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=200_000, help="how many edits to make")
    parser.add_argument("--seed", type=int, default=0, help="of the choices")
    arguments = parser.parse_args()
    source = load_source("mixed", horizon=16)
    engine = Engine(1, source, SimulatorConfig(budget_fraction=0.8))
    ids = source.ids("train")
    started = time.perf_counter()
    with tqdm(total=arguments.edits, unit="edit", desc="editing and checking") as bar:
        report = stress(engine, ids, arguments.edits, arguments.seed, on_edits=bar.update)
    print(
        json.dumps(
            {
                "edits": report.total,
                "episodes": report.episodes,
                "fewest_edits_of_an_episode": report.shortest_episode_edits,
                "undone": report.undone,
                "episodes_replayed": report.replayed,
                "shares": {op: round(share, 4) for op, share in report.shares().items()},
                "seconds": round(time.perf_counter() - started, 1),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
