"""Strict readers of values that come as JSON, each with the schema of what it takes (DESIGN.md 11).

Nothing is coerced, but for a whole number where a float is asked for, or one that is written with a fraction of 0 where
an int is. Enumerations, dataclasses and tuples are made of what they are written as in JSON; an object that is one
already (a program's call) is taken as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["Either", "Fields", "Items", "Mismatch", "Nothing", "Plain", "Reader", "Table", "Words", "short"]

_SHOWN = 64  # characters of a refused value that are quoted


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
class Strict(Reader):
    """One for which `None` is an absent value."""

    @property
    def takes_none(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Plain(Strict):
    """A text, a truth value or a number."""

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
class Nothing(Reader):
    """`None`."""

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
class Words(Strict):
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
class Items(Strict):
    """A list, or a tuple of any length, of one kind of item."""

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
class Table(Strict):
    """An object of any names, of one kind of value."""

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
class Fields(Strict):
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
class Either(Reader):
    """A union; the first that reads a value has it."""

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
