"""A checker for the part of JSON Schema that `evaluation.schema.json` uses."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
    "number": (int, float),
}  # fmt: skip
_KNOWN = {
    "$schema", "$defs", "$ref", "title", "description", "format", "type", "properties", "required",
    "additionalProperties", "items", "enum", "const", "minimum", "maximum", "exclusiveMinimum",
    "minLength",
}  # fmt: skip


def violations(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """Returns what is wrong with a value; raises where the schema uses a keyword not known here."""
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        return violations(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "type" in schema and not _is_type(value, schema["type"]):
        return [f"{value!r} is not of type {schema['type']}"]
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{value!r} is none of {schema['enum']}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{value!r} is out of range")
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            found.append(f"{value!r} is too small")
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        found.append(f"{value!r} is too short")
    if isinstance(value, list) and "items" in schema:
        for item in value:
            found += violations(item, schema["items"], root)
    if isinstance(value, dict):
        found += _object_violations(value, schema, root)
    return found


def _object_violations(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]
) -> list[str]:
    properties = schema.get("properties", {})
    found = [f"{name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        if name in properties:
            found += [f"{name}: {text}" for text in violations(item, properties[name], root)]
        elif schema.get("additionalProperties") is False:
            found.append(f"{name} is unknown")
    return found


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])
