"""The model described: a JSON Schema for editors, and the table of the README."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, get_origin

from openclaw_ray.config._fields import default_text, leaves, type_text
from openclaw_ray.config._keys import fields_of, is_named, section_in
from openclaw_ray.config._known import node_at, step_into, within
from openclaw_ray.config._model import Root, Section
from openclaw_ray.config._notices import not_yet
from openclaw_ray.config._text import join

__all__ = ["Row", "json_schema", "rows", "table"]

_SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
_TOLERATED: Final = "A key of OpenClaw that is tolerated and has no effect here."


@dataclass(frozen=True, slots=True)
class Row:
    """One setting.

    Attributes:
        key: its path; ``<id>`` is any name.
        type: its sort.
        default: as it would stand in a file; empty if there is none.
        meaning: in a few words.
        in_effect: whether it acts already.
    """

    key: str
    type: str
    default: str
    meaning: str
    in_effect: bool


def rows() -> tuple[Row, ...]:
    """Every setting that we implement. An agent's own settings come once, those of ``agents.list`` are the same."""
    return tuple(_by_channel(_rows(Root, "", ())))


def _by_channel(found: Iterable[Row]) -> Iterator[Row]:
    """The same setting of many channels as one."""
    seen: set[str] = set()
    for row in found:
        place, _, _ = row.key.rpartition(".")
        if not place.endswith(".byChannel"):
            yield row
        elif place not in seen:
            seen.add(place)
            yield replace(row, key=f"{place}.<channel>")


def _rows(model: type[Section], path: str, steps: tuple[str, ...]) -> Iterator[Row]:
    for leaf in leaves(model):
        key, below = join(path, leaf.path), section_in(leaf.info.annotation)
        further = (*steps, *leaf.path.split("."))
        is_many = get_origin(leaf.info.annotation) in (dict, list)
        if is_many and below is not None and key != "agents.list":
            yield from _rows(below, f"{key}.<id>", (*further, "<id>"))
        else:
            default = default_text(leaf.info) or ""
            meaning = leaf.info.description or ""
            yield Row(key, type_text(leaf.info), default, meaning, not not_yet(further))


def table() -> str:
    """The settings as a Markdown table: key, type, default, meaning. † marks what does not act yet."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for row in rows():
        default = f"`{row.default}`" if row.default else ""
        mark = "" if row.in_effect else " †"
        cells = (f"`{row.key}`{mark}", row.type, default, row.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------- schema


def json_schema() -> dict[str, Any]:
    """JSON Schema of a configuration file; keys that are only tolerated are in it, too, without their insides."""
    made = Root.model_json_schema(by_alias=True)
    classes = {section.__name__: section for section in _sections(Root)}
    for name, steps in _places().items():
        section = made if name == Root.__name__ else made["$defs"].get(name)
        if section is not None:
            _tidy(section)
            _add_tolerated(section, classes[name], steps)
    made["$schema"] = _SCHEMA
    made["title"] = "openclaw_ray configuration"
    return made


def _tidy(schema: dict[str, Any]) -> None:
    """Without the nulls that stand for "not set", which a file must not have, and without titles that say nothing."""
    schema.pop("title", None)
    for key in [key for key in schema.get("properties", {}) if is_named(key)]:
        schema["additionalProperties"] = schema["properties"].pop(key)["additionalProperties"]
    for key, about in schema.get("properties", {}).items():
        forms = [form for form in about.get("anyOf", ()) if form != {"type": "null"}]
        if len(forms) == 1 and len(forms) < len(about["anyOf"]):
            about = schema["properties"][key] = {**{k: v for k, v in about.items() if k != "anyOf"}, **forms[0]}
        about.pop("title", None)
        if about.get("default", ...) is None or isinstance(about.get("default"), dict):
            del about["default"]


def _add_tolerated(schema: dict[str, Any], section: type[Section], places: list[tuple[str | int, ...]]) -> None:
    nodes = [node for steps in places if (node := node_at(steps)) is not None]
    ours = fields_of(section)
    properties = schema.setdefault("properties", {})
    properties["$include"] = {"description": "Files whose settings stand here.", "type": ["string", "array"]}
    for node in nodes:
        for name in within(node):
            if name not in ours:
                properties.setdefault(name, {"description": _TOLERATED})
        if step_into(node, "any name") is not None:
            schema["additionalProperties"] = True


def _sections(model: type[Section]) -> Iterator[type[Section]]:
    yield model
    for info in fields_of(model).values():
        if (below := section_in(info.annotation)) is not None:
            yield from _sections(below)


def _places() -> dict[str, list[tuple[str | int, ...]]]:
    """Class name -> where its sections stand."""
    found: dict[str, list[tuple[str | int, ...]]] = {}

    def walk(model: type[Section], steps: tuple[str | int, ...]) -> None:
        found.setdefault(model.__name__, []).append(steps)
        for key, info in fields_of(model).items():
            if (below := section_in(info.annotation)) is not None:
                form = get_origin(info.annotation)
                step: tuple[str | int, ...] = ("*",) if form is dict else (0,) if form is list else ()
                walk(below, (*steps, key, *step))

    walk(Root, ())
    return found
