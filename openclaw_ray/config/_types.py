"""The sorts of values that settings take: checked without any coercion, refused with the value and the range.

``true`` is not 1, ``"5"`` is not 5, and Infinity, NaN and null are no numbers. A number without a fraction is
whole however it is written, as JSON does not know the difference.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeGuard

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from openclaw_ray.config._env import FromEnv, as_written
from openclaw_ray.core.admission import normalise_allow
from openclaw_ray.core.placement import Scheduling, is_placement

__all__ = [
    "Amounts",
    "Choice",
    "Duration",
    "Flag",
    "Names",
    "Number",
    "Placement",
    "Sort",
    "Text",
    "Whole",
    "seconds_of",
    "show",
]


_SAFE: Final = 2**53 - 1  # the largest number up to which JSON's readers agree on whole numbers


def show(value: object, most: int = 60) -> str:
    """A value as it might stand in the file, bounded; what the environment put in is not shown."""
    try:
        text = json.dumps(as_written(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 1] + "…"


class Sort:
    """A sort of value, used as ``Annotated[int, Whole(1, 20)]``."""

    def check(self, value: Any, info: ValidationInfo) -> Any:
        """The value as it is kept.

        Raises:
            PydanticCustomError: the value is not of this sort; its type is the fault's kind.
        """
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """JSON schema of the values that pass."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The sort in a few words, for a table."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.schema()


def _refuse(kind: str, wanted: str, value: object, hint: str = "") -> PydanticCustomError:
    text = f"must be {wanted}, not {show(value)}{hint}"
    return PydanticCustomError(kind, "{text}", {"text": text})


def _is_number(value: object) -> TypeGuard[int | float]:
    """A finite number that is not a flag."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond every float
        return False


@dataclass(frozen=True, slots=True)
class Whole(Sort):
    """A whole number from ``lo`` to ``hi``; ``unlocked`` is the upper end under ``ray.limits.unlock``."""

    lo: int
    hi: int = _SAFE
    unlocked: int | None = None
    nullable: bool = False

    def check(self, value: Any, info: ValidationInfo) -> int | None:
        """The number."""
        if value is None and self.nullable:
            return None
        unlock = bool((info.context or {}).get("unlock"))
        hi = self.unlocked if unlock and self.unlocked is not None else self.hi
        open_end = hi == _SAFE and not (_is_number(value) and value > hi)
        wanted = f"a whole number{f', {self.lo} or more' if open_end else f' from {self.lo} to {hi}'}"
        if not _is_number(value) or value != int(value):
            raise _refuse("type", wanted + (" or null" if self.nullable else ""), value)
        if not self.lo <= value <= hi:
            more = self.unlocked is not None and not unlock and self.lo <= value <= self.unlocked
            hint = f" (ray.limits.unlock: true allows up to {self.unlocked})" if more else ""
            raise _refuse("range", wanted, value, hint)
        return int(value)

    def schema(self) -> dict[str, Any]:
        """An integer with its range, the unlocked one."""
        bounds = {"minimum": self.lo, "maximum": self.unlocked or self.hi}
        return {"type": ["integer", "null"] if self.nullable else "integer", **bounds}

    @property
    def words(self) -> str:
        """``int``, its range, and what else it may be."""
        top = f"{self.lo} or more" if self.hi == _SAFE else f"{self.lo}–{self.hi}"
        more = f" (to {self.unlocked} with ray.limits.unlock)" if self.unlocked is not None else ""
        return f"int {top}{more}{' or null' if self.nullable else ''}"


@dataclass(frozen=True, slots=True)
class Number(Sort):
    """A number of ``lo`` or more; more than ``lo`` if ``above``."""

    lo: float = 0
    above: bool = False

    def check(self, value: Any, info: ValidationInfo) -> float:
        """The number as a float."""
        wanted = f"a number above {self.lo:g}" if self.above else f"a number, {self.lo:g} or more"
        if not _is_number(value):
            raise _refuse("type", wanted, value)
        if value < self.lo or (self.above and value == self.lo):
            raise _refuse("range", wanted, value)
        return float(value)

    def schema(self) -> dict[str, Any]:
        """A number with its lower end."""
        return {"type": "number", "exclusiveMinimum" if self.above else "minimum": self.lo}

    @property
    def words(self) -> str:
        """``number`` and its lower end."""
        return f"number above {self.lo:g}" if self.above else f"number {self.lo:g} or more"


@dataclass(frozen=True, slots=True)
class Flag(Sort):
    """``true`` or ``false``."""

    def check(self, value: Any, info: ValidationInfo) -> bool:
        """The flag."""
        if not isinstance(value, bool):
            raise _refuse("type", "true or false", value)
        return value

    def schema(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}

    @property
    def words(self) -> str:
        """``bool``."""
        return "bool"


@dataclass(frozen=True, slots=True)
class Text(Sort):
    """Text that is not blank."""

    def check(self, value: Any, info: ValidationInfo) -> str:
        """The text as it is written."""
        if not isinstance(value, str):
            raise _refuse("type", "text", value)
        if not value.strip():
            raise _refuse("value", "text that is not blank", value)
        return value

    def schema(self) -> dict[str, Any]:
        """A string."""
        return {"type": "string", "minLength": 1}

    @property
    def words(self) -> str:
        """``text``."""
        return "text"


class Placement(Sort):
    """A word of `Scheduling`, or ``node:`` and an address."""

    def check(self, value: Any, info: ValidationInfo) -> str:
        """The word as it is written."""
        if isinstance(value, str) and is_placement(value):
            return value
        raise _refuse("value" if isinstance(value, str) else "type", f"one of {self._known}", value)

    def schema(self) -> dict[str, Any]:
        """A word out of a list, or the name of a node."""
        return {"anyOf": [{"type": "string", "enum": list(Scheduling)}, {"type": "string", "pattern": "^node:."}]}

    @property
    def words(self) -> str:
        """All the words."""
        return f"{', '.join(Scheduling)}, node:⟨address⟩, node:head"

    @property
    def _known(self) -> str:
        return ", ".join([*(f'"{word}"' for word in Scheduling), '"node:<address>"', '"node:head"'])


@dataclass(frozen=True, slots=True)
class Choice(Sort):
    """One word of an enumeration, letter for letter."""

    options: type[StrEnum]

    def check(self, value: Any, info: ValidationInfo) -> StrEnum:
        """The member."""
        try:
            return self.options(value) if isinstance(value, str) else self._no(value)
        except ValueError:
            return self._no(value)

    def _no(self, value: object) -> StrEnum:
        kind = "value" if isinstance(value, str) else "type"
        raise _refuse(kind, "one of " + ", ".join(f'"{word}"' for word in self.options), value)

    def schema(self) -> dict[str, Any]:
        """A string out of a list."""
        return {"type": "string", "enum": [word.value for word in self.options]}

    @property
    def words(self) -> str:
        """All the words."""
        return ", ".join(self.options)


@dataclass(frozen=True, slots=True)
class Names(Sort):
    """A list of text; with ``ids``, of agent ids and ``*``, kept normalised."""

    ids: bool = False

    def check(self, value: Any, info: ValidationInfo) -> tuple[str, ...]:
        """The names as a tuple."""
        if not isinstance(value, list | tuple):
            raise _refuse("type", "a list of text", value)
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                raise PydanticCustomError(
                    "type", "{text}", {"text": f"must be text, not {show(entry)}", "at": index}
                )
        return _normalised(value) if self.ids else tuple(value)

    def schema(self) -> dict[str, Any]:
        """A list of strings."""
        return {"type": "array", "items": {"type": "string"}}

    @property
    def words(self) -> str:
        """``list of text``, or of agent ids."""
        return "list of agent ids or *" if self.ids else "list of text"


def _normalised(ids: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """An ``allowAgents`` list; what came from the environment still knows how it was written."""
    written = {one.strip().lower(): one.written for one in ids if isinstance(one, FromEnv)}
    return tuple(FromEnv(one, written[one]) if one in written else one for one in normalise_allow(ids))


_DURATION: Final = re.compile(r"(\d+(\.\d+)?(ms|s|m|h|d))+")


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_of(duration: str | float) -> float:
    """Seconds of a time that `Duration` has accepted; a number is one of days."""
    if not isinstance(duration, str):
        return duration * _UNITS["d"]
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", duration.strip().lower())
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)


@dataclass(frozen=True, slots=True)
class Duration(Sort):
    """A time as ``30d``, ``12h`` or ``1h30m``, or a number of days."""

    def check(self, value: Any, info: ValidationInfo) -> str | float:
        """The time as it is written."""
        if isinstance(value, str) and _DURATION.fullmatch(value.strip().lower()):
            return value
        if _is_number(value) and value >= 0:
            return value
        raise _refuse("value" if isinstance(value, str) else "type", 'a time as "30d" or "12h"', value)

    def schema(self) -> dict[str, Any]:
        """Text or a number."""
        return {"type": ["string", "number"]}

    @property
    def words(self) -> str:
        """``time``."""
        return "time as 30d or 12h"


@dataclass(frozen=True, slots=True)
class Amounts(Sort):
    """Amounts by name: numbers of 0 or more."""

    def check(self, value: Any, info: ValidationInfo) -> dict[str, float]:
        """A new dict of floats."""
        if not isinstance(value, dict):
            raise _refuse("type", "an object of numbers", value)
        for name, amount in value.items():
            if not isinstance(name, str) or not _is_number(amount) or amount < 0:
                text = f"must be a number, 0 or more, not {show(amount)}"
                raise PydanticCustomError("type", "{text}", {"text": text, "at": str(name)})
        return {name: float(amount) for name, amount in value.items()}

    def schema(self) -> dict[str, Any]:
        """An object of numbers."""
        return {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}

    @property
    def words(self) -> str:
        """``numbers by name``."""
        return "numbers by name"
