"""sb3-contrib's MaskablePPO as an opponent: Gymnasium's SyncVectorEnv, and networks of our size.

Both networks have exactly the parameters of the pointer network, pointer heads included. They
differ in how they compute:

    padded  PyTorch's own transformer layers over all slots, masked where empty
    packed  the pointer network's own code, which leaves out empty slots
"""

# ruff: noqa: ARG002 - the signatures are Stable-Baselines3's
from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from benchmark_learners import Sample, Settings, clocks, make_env
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn
from torch.nn import functional as F

from contextpilot.core.edit import Op
from contextpilot.edits.codec import CONTEXT_PRESETS, ActionCodec
from contextpilot.policies.pointer.config import PointerConfig
from contextpilot.policies.pointer.network import NUMERIC_INPUTS, PointerNetwork
from contextpilot.training.config import CreditConfig, PPOConfig

_KEEP_BIAS = 2.0
"""First bias of keep's logit. A softmax over all actions would hardly ever send a request where
one over operations sends every third step; so episodes are about as long as our own."""


class SyncVecEnv(VecEnv):
    """A SyncVectorEnv under the interface that Stable-Baselines3 knows.

    Args:
        env: in autoreset mode SAME_STEP, which is what that interface means: no step is lost.
        seed: of its first reset.

    Attributes:
        seconds: spent in the environment.
        ended: how many episodes have ended.
    """

    def __init__(self, env: SyncVectorEnv, seed: int) -> None:
        self.env, self.first_seed = env, seed
        space = env.single_observation_space
        assert isinstance(space, spaces.Dict)
        observed = spaces.Dict({name: space[name] for name in NUMERIC_INPUTS})
        self.seconds, self.ended = 0.0, 0
        super().__init__(env.num_envs, observed, env.single_action_space)

    def reset(self) -> dict[str, NDArray[Any]]:
        """Begins all episodes."""
        return self._observed(self.env.reset(seed=self.first_seed)[0])

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Plays the actions; what an episode came to is left out of the infos."""
        started = time.perf_counter()
        observations, rewards, terminated, truncated, _ = self.env.step(self._actions)
        self.seconds += time.perf_counter() - started
        done = terminated | truncated
        self.ended += int(done.sum())
        return self._observed(observations), rewards, done, [{} for _ in range(self.num_envs)]

    def _observed(self, observations: Any) -> dict[str, NDArray[Any]]:
        # The learner holds on to them while the environment overwrites its arrays.
        return {name: observations[name].copy() for name in NUMERIC_INPUTS}

    def env_method(
        self, method_name: str, *_args: Any, indices: Any = None, **_kwargs: Any
    ) -> list[Any]:
        """Calls a method of every environment."""
        return list(self.env.call(method_name))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute of every environment."""
        return list(self.env.get_attr(attr_name))

    def has_attr(self, attr_name: str) -> bool:
        """True where the environments have it; not by fetching it, as masks are methods."""
        return hasattr(self.env.envs[0], attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Is never called."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped."""
        return [False] * self.num_envs

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Leaves the seed of the first reset as it is."""
        return [self.first_seed] * self.num_envs

    def close(self) -> None:
        """Closes the environments."""
        self.env.close()


class PointerFeatures(BaseFeaturesExtractor):
    """Observations to (B, A + D): one logit per action, and the global token's vector."""

    def __init__(self, space: spaces.Dict, config: PointerConfig, *, packed: bool) -> None:
        codec = ActionCodec(config.context_slots, config.archive_slots)
        super().__init__(space, codec.size + config.width)
        self.config, self.packed = config, packed
        self.network = PointerNetwork(config)
        if not packed:
            layer = nn.TransformerEncoderLayer(
                config.width, config.heads, 2 * config.width, dropout=0.0, batch_first=True,
                norm_first=True,
            )  # fmt: skip
            self.network.blocks = nn.ModuleList()
            self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        with torch.no_grad():
            self.network.op_head.bias[int(Op.KEEP)] = _KEEP_BIAS
        ops = [int(codec.decode(action).op) for action in range(codec.size)]
        self.register_buffer("op_of_action", torch.tensor(ops), persistent=False)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Adds each action's operation and pointer."""
        read = self._read_packed if self.packed else self._read_padded
        summary, context, archive = read(observations)
        keep = summary.new_zeros(len(summary), 1)
        pointers = torch.cat([keep, context.flatten(1), archive.flatten(1)], 1)
        op_logits = self.network.op_head(summary)
        logits = op_logits.index_select(1, self.get_buffer("op_of_action")) + pointers
        return torch.cat([logits, summary], 1)

    def _read_packed(self, observations: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        view, summary, context, archive = self.network.read(observations)
        context = F.pad(context, (0, self.config.context_slots - view.layout.context_used))
        archive = F.pad(archive, (0, self.config.archive_slots - view.layout.archive_used))
        return summary, context, archive

    def _read_padded(self, observations: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        network, split = self.network, 1 + self.config.context_slots
        state = network.state_in(observations["state"])[:, None]
        segments = network.segment_in(observations["segments"])
        archive = network.archive_in(observations["archive"])
        held = [observations["segment_mask"] != 0, observations["archive_mask"] != 0]
        empty = ~torch.cat([held[0].new_ones(len(state), 1), *held], 1)
        tokens = self.encoder(torch.cat([state, segments, archive], 1), src_key_padding_mask=empty)
        tokens = network.norm(tokens)
        scores, presets = network.slot_head(tokens), len(CONTEXT_PRESETS)
        return (
            tokens[:, 0],
            scores[:, 1:split, :presets].transpose(1, 2),
            scores[:, split:, presets:].transpose(1, 2),
        )


class _Heads(nn.Module):
    """Cuts features into what the policy head and the value head read."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.actions = actions

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return features[:, : self.actions]

    def forward_critic(self, features: Tensor) -> Tensor:
        return features[:, self.actions :]


class PointerActorCritic(MaskableActorCriticPolicy):
    """MaskablePPO's policy with the pointer network's heads, so that sizes are the same.

    The library's own head, a matrix with a row for each action, would add a third. `seconds` is how
    long it took to act.
    """

    seconds = 0.0

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Acts while steps are collected; updates do not come here."""
        started = time.perf_counter()
        decided = super().forward(obs, deterministic, action_masks)
        self.seconds += time.perf_counter() - started
        return decided

    def _build(self, lr_schedule: Any) -> None:
        features = self.features_extractor
        assert isinstance(features, PointerFeatures)
        self.mlp_extractor = _Heads(len(features.get_buffer("op_of_action")))  # type: ignore[assignment]
        self.action_net = nn.Identity()
        self.value_net = features.network.value_head  # type: ignore[assignment]
        self.optimizer = torch.optim.Adam(self.parameters(), lr_schedule(1), eps=1e-5)


class TimedMaskablePPO(MaskablePPO):
    """MaskablePPO that updates in the context `updating`, and notes how long that takes."""

    update_seconds = 0.0
    updating: AbstractContextManager[object] = nullcontext()

    def train(self) -> None:
        """Updates the policy from the collected steps."""
        started = time.perf_counter()
        with self.updating:
            super().train()
        self.update_seconds += time.perf_counter() - started


class Opponent:
    """A MaskablePPO with our settings; `learn` is run as users run it, and logs nothing.

    Args:
        settings: those of all learners.
        steps: per iteration, rounded to whole steps of all copies.
        packed: which network; see the module's docstring.
    """

    def __init__(self, settings: Settings, steps: float, *, packed: bool) -> None:
        self.name = f"MaskablePPO, {'packed' if packed else 'padded'} network"
        self.env = SyncVecEnv(make_env(settings, AutoresetMode.SAME_STEP), settings.seed)
        own, credit = PPOConfig(), CreditConfig()
        self.model = TimedMaskablePPO(
            PointerActorCritic, self.env, n_steps=max(1, round(steps / settings.copies)),
            batch_size=settings.minibatch, n_epochs=settings.epochs, clip_range=own.clip,
            learning_rate=settings.learning_rate, gamma=1.0, gae_lambda=credit.gae_lambda,
            ent_coef=own.entropy_coefficient, vf_coef=own.value_coefficient,
            max_grad_norm=own.max_grad_norm, seed=settings.seed, device="cpu",
            policy_kwargs={
                "features_extractor_class": PointerFeatures,
                "features_extractor_kwargs": {"config": settings.network, "packed": packed},
            },
        )  # fmt: skip
        policy = self.model.policy
        self.parameters = sum(p.numel() for p in policy.parameters())
        self._first = copy.deepcopy((policy.state_dict(), policy.optimizer.state_dict()))

    def begin(self) -> None:
        """Returns to the first weights."""
        weights, optimizer = copy.deepcopy(self._first)
        self.model.policy.load_state_dict(weights)
        self.model.policy.optimizer.load_state_dict(optimizer)

    def iterate(self, updating: AbstractContextManager[object]) -> Sample:
        """Makes one iteration of `learn`."""
        self.model.updating = updating
        steps = self.model.n_steps * self.env.num_envs
        before, ended, (process, wall) = self._parts(), self.env.ended, clocks()
        self.model.learn(steps, reset_num_timesteps=False)
        process, wall = (now - then for now, then in zip(clocks(), (process, wall), strict=True))
        environment, policy, update = (self._parts() - before).tolist()
        return Sample(
            steps, steps, self.env.ended - ended, process, wall, environment, policy, update,
            wall - environment - policy - update,
        )  # fmt: skip

    def _parts(self) -> NDArray[np.float64]:
        policy = self.model.policy
        assert isinstance(policy, PointerActorCritic)
        return np.array([self.env.seconds, policy.seconds, self.model.update_seconds])
