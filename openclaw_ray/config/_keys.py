"""Which keys of a configuration are ours, which are real but not ours, and which are unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from openclaw_ray.config._model import Root, Section
from openclaw_ray.config._text import join
from openclaw_ray.config._types import Sort
from openclaw_ray.core.errors import ConfigFault

__all__ = ["Pruned", "prune"]


@dataclass(slots=True)
class Pruned:
    """A configuration without what is not ours.

    Attributes:
        data: only keys that the model has, with their values as they are.
        tolerated: paths of real OpenClaw keys that are not implemented.
        faults: unknown keys, and nulls where no null can be.
    """

    data: dict[str, Any]
    tolerated: list[str] = field(default_factory=list)
    faults: list[ConfigFault] = field(default_factory=list)


def prune(raw: dict[str, Any]) -> Pruned:
    """Take everything out that is not ours, and say what it was."""
    pruned = Pruned({})
    pruned.data = _section(raw, Root, "", pruned)
    return pruned


def _section(raw: dict[Any, Any], model: type[Section], path: str, pruned: Pruned) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    fields = _fields(model)
    for key, value in raw.items():
        here = join(path, str(key))
        if key in fields:
            if value is None and _no_null(fields[key]):
                text = "must not be null; leave the key out instead"
                pruned.faults.append(ConfigFault(here, "type", text))
            else:
                kept[key] = _below(value, fields[key], here, pruned)
        elif key in model.tolerated:
            pruned.tolerated.append(here)
        else:
            pruned.faults.append(_unknown(str(key), model, here))
    return kept


def _below(value: Any, info: FieldInfo, path: str, pruned: Pruned) -> Any:
    """The value of a field, pruned too if it holds sections."""
    model = _model_in(info.annotation)
    if model is None:
        return value
    form = get_origin(info.annotation)
    if form is dict and isinstance(value, dict):
        return {
            key: _section(one, model, join(path, str(key)), pruned) if isinstance(one, dict) else one
            for key, one in value.items()
        }
    if form is list and isinstance(value, list | tuple):
        return [
            _section(one, model, join(path, at), pruned) if isinstance(one, dict) else one
            for at, one in enumerate(value)
        ]
    if form not in (dict, list) and isinstance(value, dict):
        return _section(value, model, path, pruned)
    return value


def _unknown(key: str, model: type[Section], path: str) -> ConfigFault:
    homes = _homes().get(key)
    if homes:
        return ConfigFault(path, "unknown", f"is not a key of this place; it belongs to {' or '.join(homes)}")
    names = {name.lower(): name for name in (*_fields(model), *sorted(model.tolerated))}
    near = difflib.get_close_matches(key.lower(), names, n=1)
    return ConfigFault(path, "unknown", "unknown key", near=names[near[0]] if near else None)


# --------------------------------------------------------------------------- what the model has


@cache
def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the name that they have in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _model_in(annotation: Any) -> type[Section] | None:
    """The section class somewhere in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _no_null(info: FieldInfo) -> bool:
    """Whether the model would take a null that the file must not have: None stands for "not set" there."""
    optional = type(None) in get_args(info.annotation)
    return optional and not any(
        isinstance(sort, Sort) and getattr(sort, "nullable", False) for sort in info.metadata
    )


@cache
def _homes() -> dict[str, tuple[str, ...]]:
    """Key -> the places where it is known; only keys with a distinctive name."""
    homes: dict[str, list[str]] = {}
    for key, path in _walk(Root, ""):
        if any(char.isupper() for char in key):
            homes.setdefault(key, []).append(path)
    return {key: tuple(dict.fromkeys(paths)) for key, paths in homes.items() if len(paths) <= 2}


def _walk(model: type[Section], path: str) -> Iterator[tuple[str, str]]:
    for key, info in _fields(model).items():
        yield key, path or "the top level"
        if (below := _model_in(info.annotation)) is not None:
            form = get_origin(info.annotation)
            tail = ".<id>" if form is dict else "[]" if form is list else ""
            yield from _walk(below, join(path, key) + tail)
