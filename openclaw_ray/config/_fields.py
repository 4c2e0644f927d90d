"""The model's fields one by one: their paths, sorts, defaults and meanings, for tables, faults and lists of values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from openclaw_ray.config._env import FromEnv
from openclaw_ray.config._keys import fields_of, is_named, section_in
from openclaw_ray.config._model import Model, Root, Section
from openclaw_ray.config._text import join
from openclaw_ray.config._types import Sort

__all__ = ["Leaf", "default_text", "field_at", "leaves", "plain", "type_text"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One setting of a section or of a section below it.

    Attributes:
        path: its path from there.
        names: attribute names that lead to its value.
        info: the field.
    """

    path: str
    names: tuple[str, ...]
    info: FieldInfo


@cache
def leaves(model: type[Section]) -> tuple[Leaf, ...]:
    """The settings of a section; objects by id and lists of objects are one setting each."""
    return tuple(_leaves(model, "", ()))


def _leaves(model: type[Section], path: str, names: tuple[str, ...]) -> Iterator[Leaf]:
    for key, info in fields_of(model).items():
        name = next(name for name, one in model.model_fields.items() if one is info)
        here, further = path if is_named(key) else join(path, key), (*names, name)
        below = section_in(info.annotation)
        if below is None or below is Model or get_origin(info.annotation) in (dict, list):
            yield Leaf(here, further, info)
        else:
            yield from _leaves(below, here, further)


def field_at(steps: Sequence[str | int]) -> FieldInfo | None:
    """The field of a place, given as pydantic gives it; `None` if there is none."""
    model: type[Section] | None = Root
    info: FieldInfo | None = None
    skip = False
    for step in steps:
        tag = isinstance(step, str) and step.startswith("⟨")
        if tag and not (model is not None and step in fields_of(model)):  # of a form
            continue
        if skip:
            skip = False
            continue
        if model is None or (info := fields_of(model).get(str(step))) is None:
            return info
        model = section_in(info.annotation)
        skip = get_origin(info.annotation) in (dict, list)
    return info


def plain(value: Any, *, shown: bool = False) -> Any:
    """A value of the model as JSON has it.

    Args:
        shown: whether people see it; then what the environment put in stays as it is written in the file.
    """
    if isinstance(value, Section):
        parts = {key: getattr(value, name) for name, key in _aliases(type(value)) if name in value.model_fields_set}
        return {key: plain(one, shown=shown) for key, one in parts.items()}
    if isinstance(value, FromEnv):
        return value.written if shown else str(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(one, shown=shown) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, shown=shown) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@cache
def _aliases(model: type[Section]) -> tuple[tuple[str, str], ...]:
    return tuple((name, info.alias or name) for name, info in model.model_fields.items())


def default_text(info: FieldInfo) -> str | None:
    """A field's default as it would stand in a file; `None` if it has none, or an empty one."""
    if info.is_required():
        return None
    value = plain(info.get_default(call_default_factory=True))
    return None if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)


def type_text(info: FieldInfo) -> str:
    """A field's sort in a few words."""
    sorts = [one for one in info.metadata if isinstance(one, Sort)] or list(_sorts(info.annotation))
    form = get_origin(info.annotation)
    if section_in(info.annotation) is Model:
        return "text or {primary, fallbacks}"
    if form in (dict, list) and section_in(info.annotation) is not None:
        return "objects by id" if form is dict else "list of objects"
    words = sorts[0].words if sorts else "object"
    return f"{words}, by name" if form is dict and not info.metadata else words


def _sorts(annotation: Any) -> Iterator[Sort]:
    for part in get_args(annotation):
        if isinstance(part, Sort):
            yield part
        else:
            yield from _sorts(part)
