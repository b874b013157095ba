"""Another library's masked PPO trains on the environment as it is."""

import numpy as np
import pytest
from tiny_tasks import FixedSource, chain_task

from contextpilot_envs.context_edit import ContextEditEnv
from contextpilot_envs.simulator.config import SimulatorConfig

sb3_contrib = pytest.importorskip("sb3_contrib", reason="needs the dev extra")


def test_maskable_ppo_learns_two_thousand_steps():
    env = ContextEditEnv(
        FixedSource(chain_task(6)), simulator=SimulatorConfig(budget_fraction=None),
        context_slots=16, archive_slots=2,
    )  # fmt: skip
    model = sb3_contrib.MaskablePPO(
        "MultiInputPolicy", env, n_steps=500, batch_size=500, n_epochs=1, seed=0, device="cpu",
        policy_kwargs={"net_arch": [16]},
    )  # fmt: skip
    model.learn(2000)
    assert model.num_timesteps == 2000
    assert len(model.ep_info_buffer) > 10
    observation, info = env.reset(seed=1)
    for _ in range(20):
        action, _ = model.predict(observation, action_masks=env.action_masks())
        assert info["action_mask"][int(action)]
        observation, _, ended, _, info = env.step(int(action))
        if ended:
            observation, info = env.reset()
    assert info["invalid_actions"] == 0
    assert np.isfinite([episode["r"] for episode in model.ep_info_buffer]).all()
