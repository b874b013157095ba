"""The ContextPilot environment. Importing it registers `ContextPilot/ContextEdit-v0`."""

from gymnasium.envs.registration import register, registry

if "ContextPilot/ContextEdit-v0" not in registry:
    register(
        id="ContextPilot/ContextEdit-v0",
        entry_point="contextpilot_envs.context_edit:ContextEditEnv",
        vector_entry_point="contextpilot_envs.context_edit_vector:ContextEditVectorEnv",
    )
