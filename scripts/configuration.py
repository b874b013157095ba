"""From Hydra to plain dataclasses, with errors that name file, line and remedy."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, get_type_hints

import hydra
import yaml  # type: ignore[import-untyped]
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from contextpilot.errors import ConfigurationError, ContextPilotError, did_you_mean

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
_WITHOUT_SETTINGS = ("--hydra-help", "--version", "--shell-completion", "-sc")
_WITH_VALUE = (
    "--cfg", "-c", "--package", "-p", "--info", "-i", "--config-name", "-cn", "--config-dir", "-cd",
    "--config-path", "-cp", "--experimental-rerun",
)  # fmt: skip

Schema = TypeVar("Schema")
Choices = Mapping[str, Mapping[str, type]]
"""For fields whose dataclass depends on the group's choice: field -> choice -> dataclass."""

NO_CHOICES: Choices = MappingProxyType({})


def run(
    name: str, schema: type[Schema], main: Callable[[Schema], None], choices: Choices = NO_CHOICES
) -> None:
    """Composes `configs/<name>.yaml` over a schema and calls `main`; bad input exits with 2.

    With `-m` every job's settings are checked before the first job begins.
    """
    try:
        if not set(sys.argv) & set(_WITHOUT_SETTINGS):
            for overrides in jobs(sys.argv[1:]):
                compose(name, schema, overrides, choices)
    except ConfigurationError as error:
        _fail(error)

    @hydra.main(config_path=str(CONFIGS), config_name=name, version_base="1.3")
    def entry(config: DictConfig) -> None:
        try:
            main(OmegaConf.to_object(config))  # type: ignore[arg-type]
        except ContextPilotError as error:
            _fail(error)
        except KeyboardInterrupt:
            print("\nstopped; nothing was written", file=sys.stderr)
            sys.exit(130)

    entry()


def compose(
    name: str, schema: type[Schema], overrides: Sequence[str], choices: Choices = NO_CHOICES
) -> Schema:
    """Returns the settings that some overrides come to.

    Raises:
        ConfigurationError: naming in one line what was received, and the nearest right name.
    """
    _register(name, schema, choices)
    try:
        with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
            composed = hydra.compose(name, list(overrides))
    except (HydraException, OmegaConfBaseException, yaml.MarkedYAMLError, ValueError) as error:
        raise ConfigurationError(_explained(error, overrides, schema, choices)) from error
    for key, node_type in _added(composed):  # what `+name=value` brought in
        raise ConfigurationError(_unknown(key, node_type, overrides, schema, choices))
    typed: Schema = OmegaConf.to_object(composed)  # type: ignore[assignment]
    return typed


def jobs(arguments: Sequence[str]) -> list[list[str]]:
    """Returns the overrides of each job that a command line asks for: one, or those of a sweep.

    Raises:
        ConfigurationError: for what is not a setting.
    """
    overrides = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if argument.startswith("-") or before in _WITH_VALUE:
            continue
        if "=" not in argument and not argument.startswith("~"):
            raise ConfigurationError(
                f"command line: not a setting. Received {argument!r}. Write NAME=VALUE."
            )
        overrides.append(argument)
    if not {"-m", "--multirun"} & set(arguments):
        return [overrides]
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise ConfigurationError(_unreadable(error)) from error
    alternatives = [
        [f"{each.get_key_element()}={value}" for value in each.sweep_string_iterator()]
        if each.is_discrete_sweep()
        else [line]
        for each, line in zip(parsed, overrides, strict=True)
    ]
    return [list(job) for job in product(*alternatives)]


def _register(name: str, schema: type, choices: Choices) -> None:
    """Gives Hydra the schema as `<name>_schema`, and each choice's as `<choice>_schema`."""
    store = ConfigStore.instance()
    node = OmegaConf.structured(schema)
    for field in fields(schema):
        if isinstance(node._get_node(field.name), DictConfig):
            OmegaConf.set_readonly(node[field.name], None)  # frozen dataclasses are read-only
    for field_name, of_choice in choices.items():
        node[field_name] = "???"  # or the default's keys would be known to every choice
        for choice, node_type in of_choice.items():
            store.store(f"{choice}_schema", node_type)
    store.store(f"{name}_schema", node)


def _explained(
    error: Exception, overrides: Sequence[str], schema: type, choices: Choices
) -> str:  # fmt: skip
    """Returns one line about what Hydra, OmegaConf or the YAML parser raised."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        where = f"{mark.name}, line {mark.line + 1}" if mark else str(CONFIGS)
        return f"{where}: not YAML. Received: {error.problem}."
    if isinstance(error, OverrideParseException):
        return _unreadable(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        return _unknown_choice(error.missing_cfg_file, error.options, overrides)
    cause = error if isinstance(error, OmegaConfBaseException) else _behind(error)
    if not isinstance(cause, OmegaConfBaseException) or cause.full_key is None:
        remedy = " Add -m for one run of each." if "Ambiguous" in str(error) else ""
        return f"command line: {_first_line(error)}. Received {' '.join(overrides)!r}.{remedy}"
    file = re.match(r"In '([^']+)'", str(error))
    if isinstance(cause, ConfigKeyError | ConfigAttributeError):
        origin = file.group(1) if file else None
        return _unknown(cause.full_key, cause.object_type, overrides, schema, choices, origin)
    if file:
        value = cause.value if cause.value is not None else "null"
        return (
            f"{_place(file.group(1), cause.full_key)}: `{cause.full_key}` does not fit. "
            f"Received {value!r}: {_first_line(cause)}."
        )
    return (
        f"command line: `{cause.full_key}` does not fit. "
        f"Received {_given(cause.full_key, overrides)!r}: {_first_line(cause)}."
    )


def _unknown(
    key: str, node_type: Any, overrides: Sequence[str], schema: type, choices: Choices,
    file: str | None = None,
) -> str:  # fmt: skip
    """Returns the line about a key that does not exist, with the nearest one that does."""
    place = _place(file, key) if file else "command line"
    received = key if file else _given(key, overrides)
    parent, _, last = key.rpartition(".")
    beside = [f"{parent}.{f.name}" if parent else f.name for f in _fields(node_type)]
    elsewhere = [
        (known, choice) for known, choice in _keys(schema, choices)
        if known.rpartition(".")[2] == last
    ]  # fmt: skip
    same = [f"{parent}={choice}" for known, choice in elsewhere if known == key and choice]
    if same:
        remedy = f" It is a setting of {' and '.join(same)}. Known: {', '.join(sorted(beside))}."
    elif elsewhere:
        names = dict.fromkeys(known for known, _ in elsewhere)
        remedy = f" Did you mean {' or '.join(map(repr, names))}?"
    else:
        remedy = did_you_mean(key, beside) if beside else ""
    return f"{place}: unknown setting. Received {received!r}.{remedy}"


def _unknown_choice(missing: str, options: Sequence[str], overrides: Sequence[str]) -> str:
    group, _, choice = missing.rpartition("/")
    given = [o for o in overrides if o.partition("=")[0].lstrip("+") == group]
    if given:
        return (
            f"command line: `{group}` has no such choice. Received {given[-1]!r}."
            f"{did_you_mean(choice, options)}"
        )
    return (
        f"{_line_with(group, choice)}: `{group}` has no such choice. Received {missing!r}."
        f"{did_you_mean(choice, options)}"
    )


def _unreadable(error: OverrideParseException) -> str:
    return (
        f"command line: cannot be read. Received {error.override!r}: {_first_line(error)}. "
        "Write NAME=VALUE, lists as NAME=[A,B], and in quotes what the shell would change."
    )


def _given(key: str, overrides: Sequence[str]) -> str:
    """Returns the override that a key comes from, as it was written."""
    for override in reversed(overrides):
        name = override.partition("=")[0].lstrip("+~")
        if key == name or key.startswith(f"{name}.") or name.startswith(f"{key}."):
            return override
    return key


def _place(file: str, key: str) -> str:
    """Returns file and line of a key; it may be written below any of the levels it belongs to."""
    path = CONFIGS / f"{file}.yaml"
    if not path.exists():
        return f"configuration {file!r}"
    root = yaml.compose(path.read_text(encoding="utf-8"))
    parts = key.split(".")
    for start in range(len(parts)):
        node, line = root, 0
        for part in parts[start:]:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            found = [(name, value) for name, value in pairs if name.value == part]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        else:
            return f"{path}, line {line}"
    return str(path)


def _line_with(group: str, choice: str) -> str:
    """Returns file and line of a defaults list that asks for a choice."""
    pattern = re.compile(rf"\b{re.escape(group)}\s*:\s*{re.escape(choice)}\b")
    for path in sorted(CONFIGS.rglob("*.yaml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                return f"{path}, line {number}"
    return str(CONFIGS)


def _keys(schema: type, choices: Choices) -> Iterator[tuple[str, str]]:
    """Yields the full keys of all settings, each with the choice that it is bound to, or ""."""
    hints = get_type_hints(schema)
    for field in fields(schema):
        yield field.name, ""
        types = choices.get(field.name, {"": hints[field.name]})
        for choice, node_type in types.items():
            yield from ((f"{field.name}.{f.name}", choice) for f in _fields(node_type))


def _added(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the keys of a composed configuration that its dataclasses do not have."""
    if not isinstance(node, DictConfig) or OmegaConf.get_type(node) is None:
        return
    node_type = OmegaConf.get_type(node)
    known = {field.name for field in _fields(node_type)}
    for key in node:
        full_key = f"{prefix}{key!s}"
        if known and key not in known:
            yield full_key, node_type
        elif not OmegaConf.is_missing(node, key):
            yield from _added(node._get_node(key), f"{full_key}.")


def _fields(node_type: Any) -> tuple[Any, ...]:
    return fields(node_type) if is_dataclass(node_type) else ()


def _behind(error: BaseException) -> BaseException | None:
    return error.__cause__ or error.__context__


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def _fail(error: Exception) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
