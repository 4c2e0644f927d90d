"""What a Python type allows as a value of a tool call: its JSON schema, and a strict reader (DESIGN.md 7, 11).

1. A type is looked at once, when the tool is made; what cannot be said in JSON is refused then.
2. A value is read strictly: nothing is coerced, but for a whole number where a float is asked for, or one that is
   written with a fraction of 0 where an int is.
3. Enumerations, dataclasses and tuples are made of what they are written as in JSON; an object that is one already
   (a program's call) is taken as it is.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["Mismatch", "Reader", "Unsayable", "reader_of", "short"]

_SHOWN = 64  # characters of a refused value that are quoted
_MISSING = dataclasses.MISSING


class Unsayable(Exception):
    """A type that no JSON value stands for; the text says which, and what can be said."""


class Mismatch(Exception):
    """A value that is not of its type.

    Attributes:
        path: where in the parameter, ``[2].name``; empty for the whole of it.
        detail: what it should be and what it is.
    """

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail


def short(value: Any) -> str:
    """A repr for an error."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads any value, and is the base of those that do not."""

    @property
    def word(self) -> str:
        """What a value is, for an error."""
        return "anything"

    @property
    def takes_none(self) -> bool:
        """Whether `None` is a value of its own, and not the absence of one."""
        return True

    def schema(self) -> dict[str, Any]:
        """JSON schema."""
        return {}

    def read(self, value: Any) -> Any:
        """The value as the function is given it.

        Raises:
            Mismatch: it is not of this type.
        """
        return value

    def refused(self, value: Any) -> Mismatch:
        """That ``value`` is none."""
        return Mismatch("", f"it is {self.word}, not {short(value)}")


@dataclass(frozen=True, slots=True)
class _Strict(Reader):
    @property
    def takes_none(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class _Plain(_Strict):
    kind: type

    @property
    def word(self) -> str:
        return {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}[self.kind]

    def schema(self) -> dict[str, Any]:
        return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[self.kind]}

    def read(self, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind is float and number:
            try:
                return float(value)
            except OverflowError:
                raise self.refused(value) from None
        if self.kind is int and number and (isinstance(value, int) or value.is_integer()):
            return int(value)
        if self.kind in (str, bool) and isinstance(value, self.kind):
            return value
        raise self.refused(value)


@dataclass(frozen=True, slots=True)
class _Nothing(Reader):
    @property
    def word(self) -> str:
        return "null"

    def schema(self) -> dict[str, Any]:
        return {"type": "null"}

    def read(self, value: Any) -> Any:
        if value is not None:
            raise self.refused(value)
        return None


@dataclass(frozen=True, slots=True)
class _Words(_Strict):
    """A `Literal` or an `Enum`: what each is written as, and what it stands for."""

    written: tuple[Any, ...]
    meant: tuple[Any, ...]

    @property
    def word(self) -> str:
        return "one of " + ", ".join(repr(each) for each in self.written)

    @property
    def takes_none(self) -> bool:
        return None in self.written

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.written)}

    def read(self, value: Any) -> Any:
        for written, meant in zip(self.written, self.meant, strict=True):
            if (type(value) is type(written) and value == written) or (isinstance(meant, Enum) and value is meant):
                return meant
        raise self.refused(value)


@dataclass(frozen=True, slots=True)
class _Items(_Strict):
    item: Reader
    kind: type

    @property
    def word(self) -> str:
        return "a list"

    def schema(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "array"}
        if items := self.item.schema():
            made["items"] = items
        return made

    def read(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise self.refused(value)
        return self.kind([_inside(f"[{number}]", self.item, each) for number, each in enumerate(value)])


@dataclass(frozen=True, slots=True)
class _Table(_Strict):
    item: Reader

    @property
    def word(self) -> str:
        return "an object"

    def schema(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object"}
        if items := self.item.schema():
            made["additionalProperties"] = items
        return made

    def read(self, value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise self.refused(value)
        return {name: _inside(f"[{name!r}]", self.item, each) for name, each in value.items()}


@dataclass(frozen=True, slots=True)
class _Fields(_Strict):
    """A dataclass or a `TypedDict`."""

    made: Any
    fields: Mapping[str, Reader]
    required: frozenset[str]

    @property
    def word(self) -> str:
        return f"an object of {', '.join(self.fields) or 'no fields'}"

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: reader.schema() for name, reader in self.fields.items()},
            "required": [name for name in self.fields if name in self.required],
            "additionalProperties": False,
        }

    def read(self, value: Any) -> Any:
        if dataclasses.is_dataclass(self.made) and isinstance(self.made, type) and isinstance(value, self.made):
            return value
        if not isinstance(value, Mapping):
            raise self.refused(value)
        for name in value:
            if name not in self.fields:
                raise Mismatch(f".{name}", f"there is no such field (fields: {', '.join(self.fields) or 'none'})")
        for name in self.fields:
            if name in self.required and name not in value:
                raise Mismatch(f".{name}", "it is required")
        read = {name: _inside(f".{name}", self.fields[name], each) for name, each in value.items()}
        try:
            return self.made(**read)
        except (TypeError, ValueError) as error:  # its __post_init__ has rules of its own
            raise Mismatch("", f"{short(value)} is no {self.made.__name__}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Either(Reader):
    choices: tuple[Reader, ...]

    @property
    def word(self) -> str:
        return " or ".join(choice.word for choice in self.choices)

    @property
    def takes_none(self) -> bool:
        return any(choice.takes_none for choice in self.choices)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [choice.schema() for choice in self.choices]}

    def read(self, value: Any) -> Any:
        deepest: Mismatch | None = None
        for choice in self.choices:
            try:
                return choice.read(value)
            except Mismatch as mismatch:
                if mismatch.path and (deepest is None or len(mismatch.path) > len(deepest.path)):
                    deepest = mismatch
        raise deepest or self.refused(value)


def _inside(place: str, reader: Reader, value: Any) -> Any:
    try:
        return reader.read(value)
    except Mismatch as mismatch:
        raise Mismatch(place + mismatch.path, mismatch.detail) from None


# --------------------------------------------------------------------------- from a type

_CAN = (
    "a parameter is a str, int, float, bool, None, list[…], tuple[…, ...], dict[str, …], a union of such, a Literal, "
    "an Enum, a dataclass, a TypedDict, or Any"
)
_LISTS = (list, Sequence, Iterable)
_TABLES = (dict, Mapping)


def reader_of(annotation: Any, inside: tuple[Any, ...] = ()) -> Reader:
    """The reader of a type.

    Args:
        annotation: a type, resolved.
        inside: the dataclasses and typed dicts that it is a part of.

    Raises:
        Unsayable: with the type and the way out.
    """
    if annotation is Any or annotation is object:
        return Reader()
    if annotation is None or annotation is type(None):
        return _Nothing()
    if annotation in (str, bool, int, float):
        return _Plain(annotation)
    if isinstance(annotation, typing.NewType):
        return reader_of(annotation.__supertype__, inside)
    if hasattr(annotation, "__value__"):  # type Name = …
        return reader_of(annotation.__value__, inside)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in (typing.Required, typing.NotRequired):
        return reader_of(arguments[0], inside)
    if origin in (Union, types.UnionType):
        return _Either(tuple(reader_of(each, inside) for each in arguments))
    if origin is Literal:
        return _literal(arguments)
    base = origin or annotation
    if base in _LISTS:
        return _Items(reader_of(arguments[0], inside) if arguments else Reader(), list)
    if base is tuple and (not arguments or (len(arguments) == 2 and arguments[1] is Ellipsis)):
        return _Items(reader_of(arguments[0], inside) if arguments else Reader(), tuple)
    if base in _TABLES:
        return _table(annotation, arguments, inside)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if typing.is_typeddict(annotation) or (isinstance(annotation, type) and dataclasses.is_dataclass(annotation)):
        return _fields(annotation, inside)
    raise Unsayable(f"{_name(annotation)} has no form in JSON; {_CAN}")


def _literal(words: tuple[Any, ...]) -> Reader:
    written = tuple(each.value if isinstance(each, Enum) else each for each in words)
    if not all(each is None or type(each) in (str, int, bool) for each in written):
        raise Unsayable(f"Literal[{', '.join(map(repr, words))}] has words that are no text, whole number or bool")
    return _Words(written, words)


def _enum(kind: type[Enum]) -> Reader:
    members = tuple(kind)
    values = tuple(member.value for member in members)
    if not members or not all(type(value) in (str, int) for value in values):
        raise Unsayable(f"the values of enumeration {kind.__name__} are not all texts or whole numbers")
    return _Words(values, members)


def _table(annotation: Any, arguments: tuple[Any, ...], inside: tuple[Any, ...]) -> Reader:
    if not arguments:
        return _Table(Reader())
    if arguments[0] is not str:
        raise Unsayable(f"{_name(annotation)}: the names of an object's fields are texts, dict[str, …]")
    return _Table(reader_of(arguments[1], inside))


def _fields(kind: Any, inside: tuple[Any, ...]) -> Reader:
    if kind in inside:
        raise Unsayable(f"{kind.__name__} is a part of itself; take a dict[str, Any] for it")
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise Unsayable(f"the types of {kind.__name__} do not resolve: {error}") from None
    if typing.is_typeddict(kind):
        names, required = list(hints), frozenset(name for name in hints if _is_required(kind, name, hints[name]))
    else:
        fields = [each for each in dataclasses.fields(kind) if each.init]
        names = [each.name for each in fields]
        required = frozenset(
            each.name for each in fields if each.default is _MISSING and each.default_factory is _MISSING
        )
    readers = {}
    for name in names:
        try:
            readers[name] = reader_of(hints[name], (*inside, kind))
        except Unsayable as error:
            raise Unsayable(f"{kind.__name__}.{name}: {error}") from None
    return _Fields(kind, readers, required)


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    # what the class has worked out by itself does not know of annotations that were texts then
    origin = get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in kind.__required_keys__


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
