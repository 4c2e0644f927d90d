"""Which keys of a configuration are ours, which are real but not ours, and which are unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from openclaw_ray.config._known import Node, node_at, retired_at, step_into, successor, within
from openclaw_ray.config._model import Root, Section
from openclaw_ray.config._notices import Notice, NoticeKind
from openclaw_ray.config._text import join
from openclaw_ray.config._types import Sort
from openclaw_ray.core.errors import ConfigFault

__all__ = ["Pruned", "fields_of", "is_named", "prune", "section_in"]

Steps = tuple[str | int, ...]
_SEE: Final = "remove it; `openclaw-ray config schema --table` lists the keys"
_SECRET: Final = frozenset({"key", "apiKey", "token", "secret", "password", "access", "refresh"})


@dataclass(slots=True)
class Pruned:
    """A configuration without what is not ours.

    Attributes:
        data: only keys that the model has, with their values as they are.
        tolerated: paths of real OpenClaw keys that are not implemented.
        notices: what is worth to be told of them.
        faults: unknown keys, and nulls where no null can be.
    """

    data: dict[str, Any]
    tolerated: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    faults: list[ConfigFault] = field(default_factory=list)


def prune(raw: dict[str, Any]) -> Pruned:
    """Take everything out that is not ours, and say what it was."""
    pruned = Pruned({})
    pruned.data = _section(raw, Root, (), "", pruned)
    return pruned


def _section(raw: dict[Any, Any], model: type[Section], steps: Steps, path: str, pruned: Pruned) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    fields = fields_of(model)
    named = {key: info for key, info in fields.items() if is_named(key)}
    for key, value in raw.items():
        here, below = join(path, str(key)), (*steps, str(key))
        if key in fields and key not in named:
            if value is None and _no_null(fields[key]):
                text = "must not be null; leave the key out instead"
                pruned.faults.append(ConfigFault(here, "type", text))
            else:
                kept[key] = _below(value, fields[key], below, here, pruned)
        elif named and isinstance(value, dict):
            for field, info in named.items():
                kept.setdefault(field, {}).update(_below({str(key): value}, info, steps, path, pruned))
        elif _tolerate(value, node_at(below), below, here, pruned):
            pruned.tolerated.append(here)
        else:
            names = (*(name for name in fields if name not in named), *within(node_at(steps) or {}))
            pruned.faults.append(_unknown(str(key), names, here))
    return kept


def _below(value: Any, info: FieldInfo, steps: Steps, path: str, pruned: Pruned) -> Any:
    """The value of a field, pruned too if it holds sections."""
    model = section_in(info.annotation)
    if model is None:
        return value
    form = get_origin(info.annotation)

    def one_of_many(step: str | int, one: Any) -> Any:
        below = (*steps, step)
        return _section(one, model, below, join(path, step), pruned) if isinstance(one, dict) else one

    if form is dict and isinstance(value, dict):
        return {key: one_of_many(str(key), one) for key, one in value.items()}
    if form is list and isinstance(value, list | tuple):
        return [one_of_many(at, one) for at, one in enumerate(value)]
    if form not in (dict, list) and isinstance(value, dict):
        return _section(value, model, steps, path, pruned)
    return value


# --------------------------------------------------------------------------- real keys that are not ours


def _tolerate(value: Any, node: Node | None, steps: Steps, path: str, pruned: Pruned) -> bool:
    """Whether a key is real or was so; what is unknown below it is told."""
    if node is not None:
        _look_below(value, node, steps, path, pruned)
        return True
    old = retired_at(steps)
    if old is None:
        return False
    now = successor(old)
    if now is not None:
        text = f"retired; its place has {now}" if now else "retired"
        pruned.notices.append(Notice(path, NoticeKind.RETIRED, text))
        return True
    if not isinstance(value, dict):
        return False
    for key, one in value.items():
        here = join(path, str(key))
        if not _tolerate(one, None, (*steps, str(key)), here, pruned):
            pruned.faults.append(_unknown(str(key), within(old), here))
    return True


def _look_below(value: Any, node: Node, steps: Steps, path: str, pruned: Pruned) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            here, further = join(path, str(key)), (*steps, str(key))
            below = step_into(node, str(key))
            if below is None and not _tolerate(one, None, further, here, pruned):
                pruned.faults.append(_unknown(str(key), within(node), here))
            elif below is not None:
                _look_below(one, below, further, here, pruned)
    elif isinstance(value, list | tuple):
        below = step_into(node, "[]")
        for at, one in enumerate(value if below is not None else ()):
            _look_below(one, below or {}, (*steps, at), join(path, at), pruned)


def _unknown(key: str, names: Iterable[str], path: str) -> ConfigFault:
    if key in _SECRET and path.startswith("auth.profiles."):
        text = "unknown key: a profile says what a credential is, and never holds it"
        return ConfigFault(path, "unknown", text, remedy="keep it in the agent's credential store")
    homes = _homes().get(key)
    if homes:
        places = " or ".join(homes)
        text = f"is not a key of this place; it belongs to {places}"
        return ConfigFault(path, "unknown", text, remedy=f"move it to {places}")
    spelt = {name.lower(): name for name in names}
    near = difflib.get_close_matches(key.lower(), spelt, n=1)
    found = spelt[near[0]] if near else None
    return ConfigFault(path, "unknown", "unknown key", near=found, remedy=f"write {found}" if found else _SEE)


# --------------------------------------------------------------------------- what the model has


def is_named(key: str) -> bool:
    """Whether a field stands for the objects of any name beside the other fields of its section (``ray.limits``)."""
    return key.startswith("⟨")


@cache
def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the name that they have in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def section_in(annotation: Any) -> type[Section] | None:
    """The section class somewhere in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := section_in(part))), None)


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
    for key, info in fields_of(model).items():
        yield key, path or "the top level"
        if (below := section_in(info.annotation)) is not None:
            form = get_origin(info.annotation)
            tail = ".<id>" if form is dict else "[]" if form is list else ""
            yield from _walk(below, join(path, key) + tail)
