"""What a function's signature says of it as a tool: name, description, parameters (DESIGN.md 7).

1. A first parameter that is annotated as a turn, or is called ``turn``, is given the turn; a caller does not see it.
2. Each other parameter has a type that JSON can say (`core.value_types`), and can be given by name. One with a default
   may be left out.
3. The description is the docstring up to its sections; what ``Args:`` says of a parameter, or a text in `Annotated`,
   is the parameter's.
4. A call is read before anything happens: unknown, missing and wrong values are refused by name.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from openclaw_ray.core.errors import ToolInputError, ToolSignatureError
from openclaw_ray.core.value_readers import Mismatch, Reader
from openclaw_ray.core.value_types import Unsayable, reader_of

__all__ = ["Signature", "SignatureParameter", "signature_of"]

_TURN = "turn"
_TURN_TYPES = re.compile(r"(\w+\.)*(Turn|SyncTurn)")
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$")
_OF_PARAMETERS = ("Args", "Arguments", "Parameters")


@dataclass(frozen=True, slots=True)
class SignatureParameter:
    """One parameter.

    Attributes:
        name: as the function has it.
        reader: of its type.
        about: what the docstring or annotation says of it.
        required: it has no default.
        default: JSON form of the default where it has one, for the schema; else `None`.
    """

    name: str
    reader: Reader
    about: str
    required: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a caller may know.

    Attributes:
        tool: name of the tool.
        about: its description.
        parameters: those of a call.
        turn: the parameter that is given the turn, or `None`.
    """

    tool: str
    about: str
    parameters: tuple[SignatureParameter, ...]
    turn: str | None

    def schema(self) -> dict[str, Any]:
        """JSON schema of a call."""
        made: dict[str, Any] = {
            "type": "object",
            "properties": {each.name: _property(each) for each in self.parameters},
            "additionalProperties": False,
        }
        if required := [each.name for each in self.parameters if each.required]:
            made["required"] = required
        return made

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call; what is left out is left to the function's default.

        Raises:
            ToolInputError: a name that there is not, a value of another type, or a missing one.
        """
        known = {each.name: each for each in self.parameters}
        values: dict[str, Any] = {}
        for name, value in given.items():
            parameter = known.get(name)
            if parameter is None:
                raise ToolInputError(self.tool, str(name), _unknown(str(name), tuple(known)))
            if value is None and not parameter.reader.takes_none:
                continue  # as good as absent
            try:
                values[name] = parameter.reader.read(value)
            except Mismatch as mismatch:
                raise ToolInputError(self.tool, name + mismatch.path, mismatch.detail) from None
        for parameter in self.parameters:
            if parameter.required and parameter.name not in values:
                raise ToolInputError(self.tool, parameter.name, f"it is required: {parameter.reader.word}")
        return values


def signature_of(function: Callable[..., Any], tool: str, names: Mapping[str, Any] | None = None) -> Signature:
    """Look at a function.

    Args:
        names: what its annotations may name beside its module's globals.

    Raises:
        ToolSignatureError: naming the parameter and the way out.
    """
    about, said = _documented(inspect.getdoc(function) or "")
    turn: str | None = None
    parameters = []
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if position == 0 and _is_turn(parameter, function):
            turn = parameter.name
            continue
        _check_kind(parameter, tool)
        annotation = _resolved(parameter, function, tool, names)
        note = said.get(parameter.name, "")
        if get_origin(annotation) is Annotated:
            note = next((each for each in get_args(annotation)[1:] if isinstance(each, str)), note)
        try:
            reader = reader_of(annotation)
        except Unsayable as error:
            raise ToolSignatureError(tool, parameter.name, str(error)) from None
        required = parameter.default is parameter.empty
        default = None if required else _json(parameter.default)
        parameters.append(SignatureParameter(parameter.name, reader, note, required, default))
    return Signature(tool, about, tuple(parameters), turn)


# --------------------------------------------------------------------------- inside


def _is_turn(parameter: inspect.Parameter, function: Callable[..., Any]) -> bool:
    if parameter.name == _TURN:
        return True
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return _TURN_TYPES.fullmatch(annotation) is not None
    from openclaw_ray.agents._turn_base import TurnBase

    return isinstance(annotation, type) and issubclass(annotation, TurnBase)


def _check_kind(parameter: inspect.Parameter, tool: str) -> None:
    match parameter.kind:
        case parameter.VAR_POSITIONAL | parameter.VAR_KEYWORD:
            raise ToolSignatureError(tool, str(parameter), "a tool names each of its parameters; take a list or a dict")
        case parameter.POSITIONAL_ONLY:
            raise ToolSignatureError(tool, parameter.name, "it can be given by place alone; calls give names")


def _resolved(
    parameter: inspect.Parameter, function: Callable[..., Any], tool: str, names: Mapping[str, Any] | None
) -> Any:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        if parameter.name in ("self", "cls"):
            raise ToolSignatureError(tool, parameter.name, "a tool is a function, no method")
        raise ToolSignatureError(tool, parameter.name, f"it has no type; write {parameter.name}: str, or what it is")
    holder = type("_", (), {"__annotations__": {parameter.name: annotation}})
    plain = inspect.unwrap(function)
    scope = getattr(plain, "__globals__", {})
    try:
        return typing.get_type_hints(holder, scope, dict(names or {}), include_extras=True)[parameter.name]
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        detail = f"its type {annotation!r} does not resolve: {error}; import it outside of `if TYPE_CHECKING:`"
        raise ToolSignatureError(tool, parameter.name, detail) from None


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter (3)."""
    about: list[str] = []
    said: dict[str, list[str]] = {}
    section, current, indent = "", "", 0
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section, current = heading[1], ""
        elif not section:
            about.append(line)
        elif section in _OF_PARAMETERS and line.strip():
            deep = len(line) - len(line.lstrip())
            entry = re.match(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line)
            if entry and (not current or deep <= indent):
                current, indent = entry[1], deep
                said[current] = [entry[2]]
            elif current:
                said[current].append(line.strip())
    return "\n".join(about).strip(), {name: " ".join(part for part in parts if part) for name, parts in said.items()}


def _property(parameter: SignatureParameter) -> dict[str, Any]:
    made = parameter.reader.schema()
    if parameter.about:
        made["description"] = parameter.about
    if parameter.default is not None:
        made["default"] = json.loads(parameter.default)
    return made


def _json(default: Any) -> str | None:
    try:
        return json.dumps(default.value if isinstance(default, Enum) else default, allow_nan=False)
    except (TypeError, ValueError):
        return None


def _unknown(name: str, known: tuple[str, ...]) -> str:
    import difflib  # a session process does not pay for it

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no such parameter; {hint}(parameters: {', '.join(known) or 'none'})"
