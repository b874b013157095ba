"""Records golden trajectories: what fixed actions do in fixed tasks.

    python tests/golden/record.py

writes `trajectories.json` beside this file. Record again only together with a new version of
the environment (`ContextPilot/ContextEdit-vN`), or of the observation or action layout.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from contextpilot.edits.codec import ACTION_VERSION
from contextpilot.observations.features import OBSERVATION_VERSION
from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig
from contextpilot_envs.tasks.catalog import load_source

PATH = Path(__file__).with_name("trajectories.json")
ENVIRONMENT = "ContextPilot/ContextEdit-v0"
STEPS = 80
HASH_EVERY = 8

CASES: dict[str, dict[str, Any]] = {
    "docqa": {"task": 1, "seed": 0, "budget_fraction": 0.5, "notice": "good"},
    "tools": {"task": 3, "seed": 1, "budget_fraction": None, "notice": "poor"},
    "chat": {"task": 0, "seed": 2, "budget_fraction": 0.7, "notice": "perfect"},
    "logs": {"task": 2, "seed": 3, "budget_fraction": 0.6, "notice": "poor", "reader": "rot"},
    "restock": {"task": 4, "seed": 4, "budget_fraction": 0.5, "notice": "good", "prices": "openai"},
    "sample": {"task": 0, "seed": 5, "budget_fraction": 0.8, "notice": "good"},
}
"""By source: which validation task, the seed of actions and noise, and simulator settings."""


def versions() -> dict[str, Any]:
    """What a recording belongs to."""
    return {
        "environment": ENVIRONMENT,
        "observation_version": OBSERVATION_VERSION,
        "action_version": ACTION_VERSION,
    }


def play(source_name: str) -> dict[str, Any]:
    """Plays one case and returns everything that a change of the environment would change."""
    case = dict(CASES[source_name])
    number, seed = case.pop("task"), case.pop("seed")
    source = load_source(source_name, horizon=14)
    env = ContextEditEnv(
        source, "validation", SimulatorConfig(**case), context_slots=24, archive_slots=6
    )
    task_id = source.ids("validation")[number]
    observation, info = env.reset(options={"task_id": task_id, "noise_seed": seed})
    rng = np.random.default_rng(seed)
    hashes, rewards, actions, ended = [digest(observation)], [], [], False
    while not ended and len(actions) < STEPS:
        actions.append(_choose(env, info["action_mask"], rng))
        observation, reward, ended, _, info = env.step(actions[-1])
        rewards.append(round(reward, 9))
        if len(actions) % HASH_EVERY == 0:
            hashes.append(digest(observation))
    episode = env.engine.episodes[0]
    return {
        "task_id": task_id,
        "actions": actions,
        "rewards": rewards,
        "observations": hashes,
        "ended": ended,
        "bill": round(episode.tally.bill, 6),
        "raw_bill": round(episode.prepared.raw.total, 6),
        "silent_misses": episode.tally.silent_misses,
        "forced_reloads": episode.tally.forced_reloads,
        "edits": episode.edits_by_op(),
    }


def digest(observation: dict[str, Any]) -> str:
    """Returns a hash of an observation; floats to four places, so that any processor agrees."""
    state = blake2b(digest_size=8)
    for name in sorted(observation):
        array = observation[name]
        if array.dtype.kind == "f":
            array = np.rint(array.astype(np.float64) * 1e4)
        state.update(name.encode())
        state.update(np.ascontiguousarray(array, dtype="<i4").tobytes())
    return state.hexdigest()


def _choose(env: ContextEditEnv, mask: Any, rng: np.random.Generator) -> int:
    """Returns keep, or an action of an operation at random."""
    legal = np.flatnonzero(mask)[1:]
    if rng.random() < 0.2 or not len(legal):
        return 0
    ops = np.array([env.engine.codec.decode(int(number)).op for number in legal])
    present = np.unique(ops)
    return int(rng.choice(legal[ops == present[int(rng.integers(len(present)))]]))


def main() -> None:
    """Writes the file."""
    recorded = {**versions(), "trajectories": {name: play(name) for name in CASES}}
    PATH.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
