"""Which values of a tool call a Python type allows (DESIGN.md 7).

A type is looked at once, when the tool is made: its reader is put together then, and what cannot be said in JSON is
refused then.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from openclaw_ray.core.value_readers import (
    Either,
    Fields,
    Items,
    Nothing,
    Plain,
    Reader,
    Table,
    Words,
)

__all__ = ["Unsayable", "reader_of"]

_MISSING = dataclasses.MISSING
_CAN = (
    "a parameter is a str, int, float, bool, None, list[…], tuple[…, ...], dict[str, …], a union of such, a Literal, "
    "an Enum, a dataclass, a TypedDict, or Any"
)
_LISTS = (list, Sequence, Iterable)
_TABLES = (dict, Mapping)


class Unsayable(Exception):
    """A type that no JSON value stands for; the text says which, and what can be said."""


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
        return Nothing()
    if annotation in (str, bool, int, float):
        return Plain(annotation)
    if isinstance(annotation, typing.NewType):
        return reader_of(annotation.__supertype__, inside)
    if hasattr(annotation, "__value__"):  # type Name = …
        return reader_of(annotation.__value__, inside)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in (typing.Required, typing.NotRequired):
        return reader_of(arguments[0], inside)
    if origin in (Union, types.UnionType):
        return Either(tuple(reader_of(each, inside) for each in arguments))
    if origin is Literal:
        return _literal(arguments)
    base = origin or annotation
    if base in _LISTS:
        return Items(reader_of(arguments[0], inside) if arguments else Reader(), list)
    if base is tuple and (not arguments or (len(arguments) == 2 and arguments[1] is Ellipsis)):
        return Items(reader_of(arguments[0], inside) if arguments else Reader(), tuple)
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
    return Words(written, words)


def _enum(kind: type[Enum]) -> Reader:
    members = tuple(kind)
    values = tuple(member.value for member in members)
    if not members or not all(type(value) in (str, int) for value in values):
        raise Unsayable(f"the values of enumeration {kind.__name__} are not all texts or whole numbers")
    return Words(values, members)


def _table(annotation: Any, arguments: tuple[Any, ...], inside: tuple[Any, ...]) -> Reader:
    if not arguments:
        return Table(Reader())
    if arguments[0] is not str:
        raise Unsayable(f"{_name(annotation)}: the names of an object's fields are texts, dict[str, …]")
    return Table(reader_of(arguments[1], inside))


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
    return Fields(kind, readers, required)


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    # what the class has worked out by itself does not know of annotations that were texts then
    origin = get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in kind.__required_keys__


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
