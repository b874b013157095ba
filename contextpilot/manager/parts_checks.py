"""What a manager is made of, checked where it is given: later it would fail far from its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from contextpilot.core.budget import TokenBudget
from contextpilot.errors import ConfigurationError, MessageFormatError, did_you_mean
from contextpilot.observations.observation import Observation
from contextpilot.policies.base import Policy
from contextpilot.policies.catalog import RULES, PolicySpec
from contextpilot.policies.learned import PointerSpec


class CallablePolicy:
    """A policy that is a plain function: it has no state to begin anew."""

    def __init__(self, decide: Callable[[Observation], int]) -> None:
        self._decide = decide
        self.name = str(getattr(decide, "__name__", "") or type(decide).__name__)

    def reset(self, seed: int) -> None:
        """Has nothing to forget."""

    def __call__(self, observation: Observation) -> int:
        """Returns what the function decides."""
        return self._decide(observation)


def policy_of(name: str, given: object) -> Policy | None:
    """Returns a policy, or None where none is given; a plain callable becomes one.

    Raises:
        ConfigurationError: for anything else.
    """
    if given is None:
        return None
    if not callable(given) or isinstance(given, type):
        known = f"{did_you_mean(given, RULES)} " if isinstance(given, str) else " "
        raise ConfigurationError(
            f"`{name}` must be a policy: something that is called with an observation and returns "
            f"an action. Received {given!r}.{known}A rule comes from "
            f"`contextpilot.policies.catalog.policy_spec(name)()`, a trained policy from "
            "`contextpilot.policies.load(path)`."
        )
    if isinstance(given, PolicySpec | PointerSpec):
        raise ConfigurationError(
            f"`{name}` must be a policy. Received {given!r}, which makes one. Call it first."
        )
    if hasattr(given, "name") and hasattr(given, "reset"):
        policy: Policy = given
        return policy
    return CallablePolicy(given)


def require(name: str, given: object, methods: Sequence[str], remedy: str) -> None:
    """Raises ConfigurationError where something that is given lacks a method.

    Args:
        name: of the argument.
        given: what was passed; None is fine, since something stands in for it.
        methods: what it must have.
        remedy: what to pass instead.
    """
    if given is None:
        return
    has = all(callable(getattr(given, method, None)) for method in methods)
    if isinstance(given, str | bytes) or not has:
        raise ConfigurationError(
            f"`{name}` must have {' and '.join(f'`{method}`' for method in methods)}. "
            f"Received {given!r}. {remedy}"
        )


def require_type(name: str, given: object, kind: type, remedy: str) -> None:
    """Raises ConfigurationError where something that is given is of another type."""
    if given is not None and not isinstance(given, kind):
        raise ConfigurationError(
            f"`{name}` must be a {kind.__name__}. Received {given!r}. {remedy}"
        )


def budget_of(given: object) -> TokenBudget | None:
    """Returns a budget.

    Raises:
        ConfigurationError: for anything else, such as a number of tokens.
    """
    require_type("budget", given, TokenBudget, "Pass TokenBudget(max_context_tokens=...).")
    return given  # type: ignore[return-value]


def names_of(name: str, given: Iterable[str] | None) -> frozenset[str] | None:
    """Returns names of tools; None where none are given.

    Raises:
        ConfigurationError: for a single string, whose letters would be taken for names.
    """
    if isinstance(given, str | bytes):
        raise ConfigurationError(
            f"`{name}` must be several names. Received {given!r}. Pass [{given!r}]."
        )
    return None if given is None else frozenset(given)


def tools_of(given: object) -> list[dict[str, Any]] | None:
    """Returns the tools of a request as a list; None where none are given.

    Raises:
        MessageFormatError: for anything but a list of dicts.
    """
    if given is None:
        return None
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or not all(isinstance(tool, Mapping) for tool in given):  # type: ignore[attr-defined]
        raise MessageFormatError(
            f"tools must be a list of dicts, as they are sent. Received {given!r:.80}. "
            "Convert what an SDK made of them first."
        )
    return list(given)  # type: ignore[call-overload, no-any-return]
