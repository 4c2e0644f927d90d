"""The parameters of tools: one table for each tool, from which a call is read and its JSON schema is made.

1. A parameter has one name, camelCase as a model writes it; its snake_case spelling and its aliases are the same
   parameter. Two spellings in one call must say the same.
2. `None` is as good as absent. Nothing is coerced, but for a whole number that is written with a fraction of 0.
3. What is not in the table is refused, with the name that it resembles. So is what the table forbids, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from openclaw_ray.core.errors_tools import ToolInputError

__all__ = ["Kind", "Parameter", "read_params", "schema", "snake_name"]

_SHOWN = 64  # characters of a refused value that are quoted


class Kind(StrEnum):
    """What a parameter's value is; the words are JSON schema's."""

    TEXT = "string"
    """A text."""
    FLAG = "boolean"
    """True or false."""
    WHOLE = "integer"
    """A whole number."""
    LIST = "array"
    """A list; its items are the tool's affair."""
    OBJECT = "object"
    """An object; its fields are the tool's affair."""
    ANY = "any"
    """Anything: the tool looks at no more than whether it is there."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        name: camelCase.
        kind: type of its value.
        about: one sentence for the model.
        words: the only texts that it may be; empty for any text.
        also: further names.
        required: a call without it is refused.
        least, most: bounds of a whole number.
        offered: False keeps it out of the schema: it is known, and answered, but not to be used.
    """

    name: str
    kind: Kind
    about: str = ""
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    required: bool = False
    least: int | None = None
    most: int | None = None
    offered: bool = True


@lru_cache(maxsize=256)
def snake_name(name: str) -> str:
    """``runTimeoutSeconds`` as ``run_timeout_seconds``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def read_params(
    tool: str,
    table: Sequence[Parameter],
    given: Mapping[str, Any],
    refused: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The values of a call by camelCase name; what is absent is absent.

    Args:
        tool: for the error.
        table: the parameters that there are.
        given: the call, in any spelling.
        refused: names that are always refused, with the reason.

    Raises:
        ToolInputError: a name or value that the table does not have, or a required one that is missing.
    """
    names = {spelling: parameter for parameter in table for spelling in _spellings(parameter)}
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for name, value in given.items():
        if refused is not None and name in refused:
            raise ToolInputError(tool, name, refused[name])
        parameter = names.get(name)
        if parameter is None:
            raise ToolInputError(tool, str(name), _unknown(str(name), table))
        if value is None:
            continue
        value = _checked(tool, name, parameter, value)
        if parameter.name in values and values[parameter.name] != value:
            other = written[parameter.name]
            raise ToolInputError(tool, name, f"it is another spelling of {other}, which says something else")
        values[parameter.name], written[parameter.name] = value, name
    for parameter in table:
        if parameter.required and parameter.name not in values:
            raise ToolInputError(tool, parameter.name, "it is required")
    return values


def schema(table: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of a tool's parameters, as a model is shown it."""
    shown = [parameter for parameter in table if parameter.offered]
    made: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in shown},
        "additionalProperties": False,
    }
    if required := [parameter.name for parameter in shown if parameter.required]:
        made["required"] = required
    return made


# --------------------------------------------------------------------------- inside


def _spellings(parameter: Parameter) -> tuple[str, ...]:
    return (parameter.name, snake_name(parameter.name), *parameter.also)


def _unknown(name: str, table: Sequence[Parameter]) -> str:
    import difflib

    known = [parameter.name for parameter in table if parameter.offered]
    near = difflib.get_close_matches(name, [s for parameter in table for s in _spellings(parameter)], 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no such parameter; {hint}(parameters: {', '.join(known) or 'none'})"


def _checked(tool: str, name: str, parameter: Parameter, value: Any) -> Any:
    kind = parameter.kind
    if kind is Kind.WHOLE and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is(kind, value):
        raise ToolInputError(tool, name, f"it is of type {kind.value}, not {_short(value)}")
    if parameter.words and value not in parameter.words:
        raise ToolInputError(tool, name, f"it is one of {', '.join(parameter.words)}, not {_short(value)}")
    if kind is Kind.WHOLE and not _within(parameter, value):
        raise ToolInputError(tool, name, f"it is a whole number {_bounds(parameter)}, not {_short(value)}")
    return value


def _is(kind: Kind, value: Any) -> bool:
    match kind:
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.WHOLE:
            return isinstance(value, int) and not isinstance(value, bool)
        case Kind.LIST:
            return isinstance(value, list | tuple)
        case Kind.OBJECT:
            return isinstance(value, Mapping)
        case Kind.ANY:
            return True


def _within(parameter: Parameter, value: int) -> bool:
    low = parameter.least is None or value >= parameter.least
    return low and (parameter.most is None or value <= parameter.most)


def _bounds(parameter: Parameter) -> str:
    if parameter.most is None:
        return f"from {parameter.least}"
    return f"from {parameter.least} to {parameter.most}"


def _property(parameter: Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {} if parameter.kind is Kind.ANY else {"type": parameter.kind.value}
    if parameter.about:
        made["description"] = parameter.about
    if parameter.words:
        made["enum"] = list(parameter.words)
    if parameter.least is not None:
        made["minimum"] = parameter.least
    if parameter.most is not None:
        made["maximum"] = parameter.most
    return made


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
