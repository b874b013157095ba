"""Who may import whom. Read from the source, so that imports inside functions count too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOTS = (ROOT, ROOT / "envs")
OURS = ("contextpilot", "contextpilot_envs")


@dataclass(frozen=True)
class Layer:
    """What the modules of a package may import besides the standard library and each other.

    Attributes:
        ours: our packages, as a whole or module by module.
        libraries: other people's.
        optional: other people's that come with an extra: only inside functions.
    """

    ours: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def _ours(*names: str) -> tuple[str, ...]:
    """Returns parts of `contextpilot` by their full names; errors and version are everyone's."""
    return tuple(f"contextpilot.{name}" for name in ("errors", "__version__", *names))


# Packages beside each other see each other's protocols, and these pure functions.
_SIBLINGS = _ours(
    "core",
    "archives.base",
    "edits.codec",
    "edits.made",
    "edits.stub",
    "messages.arguments",
    "retrieval.base",
    "retrieval.terms",
    "summarizers.base",
    "summarizers.outline",
    "summarizers.split",
    "tokenizers.base",
    "tokenizers.count",
)
_SERVICES = ("messages", "rewards", "tokenizers", "summarizers", "archives")
_POLICIES = _ours("core", "edits", "observations", "retrieval")
_BELOW_MANAGER = (*_POLICIES, *_ours(*_SERVICES))
_LANGUAGE_MODELS = ("numpy", "torch", "transformers", "peft", "safetensors", "tokenizers")
_MANAGER = _ours("manager", "core", "edits", "messages", "observations", "policies", *_SERVICES)

LAYERS = {
    "contextpilot": Layer(_ours("manager")),
    "contextpilot.errors": Layer(),
    "contextpilot.doctor": Layer(),
    "contextpilot.core": Layer(_ours()),
    "contextpilot.messages": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.edits": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.rewards": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.observations": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.archives": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.summarizers": Layer(_SIBLINGS, ("numpy",)),
    "contextpilot.retrieval": Layer(_SIBLINGS, ("numpy", "bm25s")),
    "contextpilot.tokenizers": Layer(_SIBLINGS, ("numpy", "tokenizers", "tiktoken")),
    "contextpilot.policies": Layer(_POLICIES, ("numpy",)),
    "contextpilot.readers": Layer(_SIBLINGS),
    "contextpilot.readers.chat": Layer(_ours("readers"), (), ("openai",)),
    "contextpilot.readers.local": Layer(_ours("readers"), ("torch", "transformers")),
    "contextpilot.policies.pointer": Layer(_POLICIES, _LANGUAGE_MODELS),
    "contextpilot.policies.generative": Layer(_POLICIES, _LANGUAGE_MODELS, ("llguidance",)),
    "contextpilot.policies.checkpoint": Layer(_POLICIES, _LANGUAGE_MODELS),
    "contextpilot.manager": Layer((*_BELOW_MANAGER, "contextpilot.policies"), ("numpy",)),
    "contextpilot.training": Layer(
        (*_BELOW_MANAGER, "contextpilot.policies", "contextpilot.evaluation"),
        (*_LANGUAGE_MODELS, "tqdm", "yaml"),
        ("wandb", "trl", "tensorboard"),
    ),
    "contextpilot.evaluation": Layer(
        (*_BELOW_MANAGER, "contextpilot.policies"),
        ("numpy", "tqdm"),
        ("matplotlib", "sklearn", "scipy"),
    ),
    "contextpilot.integrations": Layer(
        _MANAGER,
        ("numpy",),
        ("trl", "langchain", "langchain_core", "agents", "pydantic_ai", "litellm", "openhands"),
    ),
    "contextpilot.viewer": Layer(_MANAGER),
    "contextpilot_envs": Layer((*_BELOW_MANAGER, *_ours("readers.base")), ("gymnasium", "numpy")),
}
"""The longest name that a module's name begins with decides; "contextpilot" is itself alone."""


@dataclass(frozen=True)
class Import:
    """One import: of what, on which line, and whether it waits until a function is called."""

    name: str
    line: int
    is_lazy: bool


def imports_of(source: str) -> Iterator[Import]:
    """Yields everything that a module imports, wherever in it; imports for types count as lazy."""
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while pending:
        node, lazy = pending.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")  # a relative one matches no rule
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", node.lineno, lazy)
        elif isinstance(node, ast.Call) and _is_import_call(node):
            argument = node.args[0] if node.args else None
            name = argument.value if isinstance(argument, ast.Constant) else "something unknown"
            yield Import(str(name), node.lineno, lazy)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += [(child, True) for child in node.body]
            pending += [(child, lazy) for child in node.orelse]
        else:
            pending += [(child, lazy) for child in ast.iter_child_nodes(node)]


def _is_import_call(node: ast.Call) -> bool:
    return ast.unparse(node.func) in ("__import__", "import_module", "importlib.import_module")


def layer_of(module: str) -> str:
    """Returns the name of the layer that a module is in.

    Raises:
        KeyError: for a module that the table forgot.
    """
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in LAYERS and (name != "contextpilot" or name == module):
            return name
    raise KeyError(module)


def violations(source: str, module: str) -> list[str]:
    """Returns the imports of a module that its layer does not allow."""
    name = layer_of(module)
    layer = LAYERS[name]
    own = ".".join(name.split(".")[:2]) if name != "contextpilot" else "contextpilot.__version__"
    found = []
    for each in imports_of(source):
        top = each.name.split(".")[0]
        if top in sys.stdlib_module_names:
            continue
        allowed = (own, *layer.ours) if top in OURS else layer.libraries
        if any(_is_within(each.name, package) for package in allowed):
            continue
        if top in layer.optional and each.is_lazy:
            continue
        reason = " outside a function" if top in layer.optional else ""
        found.append(f"{module}, line {each.line}: {name} must not import {each.name}{reason}")
    return found


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _modules() -> Iterator[tuple[str, Path]]:
    for source_root, package in zip(SOURCE_ROOTS, OURS, strict=True):
        for path in sorted((source_root / package).rglob("*.py")):
            parts = path.relative_to(source_root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_every_module_keeps_to_its_layer() -> None:
    found = [
        violation
        for module, path in _modules()
        for violation in violations(path.read_text(encoding="utf-8"), module)
    ]
    assert not found, "\n" + "\n".join(found)


def test_the_scan_reaches_both_packages() -> None:
    modules = {module for module, _ in _modules()}
    assert {"contextpilot.core.segment", "contextpilot_envs.context_edit"} <= modules


def test_scripts_are_imported_by_nobody() -> None:
    scripts = {path.stem for path in (ROOT / "scripts").glob("*.py")}
    for module, path in _modules():
        for each in imports_of(path.read_text(encoding="utf-8")):
            assert each.name.split(".")[0] not in scripts - set(sys.stdlib_module_names), module


def _module_graph() -> dict[str, set[str]]:
    """Returns what each module imports of ours when it is imported itself."""
    modules = dict(_modules())
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = {
            each.name for each in imports_of(path.read_text(encoding="utf-8"))
            if not each.is_lazy
        }  # fmt: skip
        graph[module] = {
            name if name in modules else name.rpartition(".")[0]
            for name in names
            if name in modules or name.rpartition(".")[0] in modules
        } - {module}
    return graph


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = _module_graph()
    while leaves := {module for module, targets in graph.items() if not targets & graph.keys()}:
        graph = {module: targets for module, targets in graph.items() if module not in leaves}
    assert not graph, f"in or behind a circle: {sorted(graph)}"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("contextpilot.core.segment", "import numpy"),
        ("contextpilot.core.segment", "from contextpilot.edits.apply import apply_edit"),
        ("contextpilot.core.segment", "from ..edits import apply"),
        ("contextpilot.edits.apply", "def f():\n    import torch"),
        ("contextpilot.edits.apply", "from contextpilot.archives.sqlite import SqliteArchive"),
        ("contextpilot.edits.apply", "import importlib\nimportlib.import_module('torch')"),
        ("contextpilot.policies.rules", "from torch import nn"),
        ("contextpilot.policies.rules", "class A:\n    def f(self):\n        import gymnasium"),
        ("contextpilot.policies.pointer.model", "import contextpilot_envs"),
        ("contextpilot.evaluation.runner", "from contextpilot_envs.engine import Engine"),
        ("contextpilot.evaluation.runner", "import hydra"),
        ("contextpilot.evaluation.plots", "import matplotlib"),
        ("contextpilot.manager.session", "def f():\n    import torch"),
        ("contextpilot_envs.engine", "from contextpilot.policies.rules import DropOldest"),
        ("contextpilot_envs.engine", "from contextpilot import policies"),
        ("contextpilot_envs.engine", "from contextpilot.evaluation import rows"),
        ("contextpilot_envs.engine", "if TYPE_CHECKING:\n    import torch"),
        ("contextpilot.errors", "import contextpilot.core.segment"),
        ("contextpilot", "from contextpilot.policies import rules"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("contextpilot.core.context", "from contextpilot.core.segment import Segment"),
        ("contextpilot.edits.services", "from contextpilot.archives.base import Archive"),
        ("contextpilot.policies.pointer.model", "def f():\n    import torch"),
        ("contextpilot.policies.pointer.model", "from contextpilot.policies.base import Policy"),
        ("contextpilot.evaluation.plots", "def f():\n    import matplotlib.figure"),
        ("contextpilot_envs.engine", "from contextpilot.edits import codec"),
    ],
)
def test_an_allowed_import_passes(module: str, source: str) -> None:
    assert not violations(source, module)


def test_a_new_package_must_be_entered_in_the_table() -> None:
    with pytest.raises(KeyError, match=r"contextpilot\.novelty"):
        layer_of("contextpilot.novelty.thing")
