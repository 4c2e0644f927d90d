"""All that can be wrong with the values of a configuration, as faults with paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from openclaw_ray.config._fields import default_text, field_at
from openclaw_ray.config._keys import is_named
from openclaw_ray.config._text import join
from openclaw_ray.config._types import show
from openclaw_ray.core.errors import ConfigFault
from openclaw_ray.core.keys import normalise_agent_id

__all__ = ["limit_faults", "pool_faults", "roster_faults", "tool_faults", "value_faults", "with_remedy"]

_FORMS = {
    "dict_type": "an object",
    "list_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def value_faults(error: ValidationError) -> Iterator[ConfigFault]:
    """What pydantic found, in our words."""
    for found in error.errors(include_url=False):
        path, context = _path(found["loc"]), found.get("ctx", {})
        if "at" in context:
            path = join(path, context["at"])
        if found["type"] == "missing":
            yield ConfigFault(path, "missing", "is missing", remedy="add it")
        elif form := _FORMS.get(found["type"]):
            yield ConfigFault(path, "type", f"must be {form}, not {show(found['input'])}")
        else:
            info = field_at(found["loc"])
            default = None if info is None or info.is_required() else default_text(info)
            instead = f" for the default, {default}" if default else ""
            remedy = f"correct it, or leave it out{instead}" if info and not info.is_required() else None
            yield ConfigFault(path, found["type"], found["msg"], remedy=remedy)


def with_remedy(fault: ConfigFault) -> ConfigFault:
    """The fault with a way out, if it has none of its own."""
    return fault if fault.remedy or fault.near else replace(fault, remedy="correct it, or leave it out")


def _path(loc: tuple[int | str, ...]) -> str:
    path = ""
    for step in loc:
        if not (isinstance(step, str) and step.startswith("⟨")):  # the tag of a form, not a key
            path = join(path, step)
    return path


def roster_faults(data: dict[str, Any]) -> Iterator[ConfigFault]:
    """Ids that are none, ids that are taken, and more than one default agent (SPEC.md A2).

    Works on unchecked data, so that these faults come together with the others.
    """
    default: dict[str, tuple[str, bool]] = {}
    for form in ("list", "entries"):
        taken: dict[str, str] = {}
        for spelt, path, id_path, entry in _roster(data, form):
            agent_id = normalise_agent_id(spelt)
            if agent_id is None:
                text = f"{show(spelt)} is not an agent id: 1 to 64 letters, digits, _ or -, no _ or - first"
                yield ConfigFault(id_path, "value", text, remedy="give the agent another id")
                continue
            if agent_id in taken:
                text = f"is the same agent id as {taken[agent_id]}"
                yield ConfigFault(id_path, "duplicate", text, remedy="join the two, or give one another id")
                continue
            taken[agent_id] = id_path
            if isinstance(entry.get("default"), bool):
                default[agent_id] = path, entry["default"]
    marked = [(agent_id, path) for agent_id, (path, flag) in default.items() if flag]
    for _, path in marked[1:]:
        text = f"agent {marked[0][0]} is the default agent already"
        yield ConfigFault(join(path, "default"), "value", text, remedy="leave one of the two marked")


def _roster(data: dict[str, Any], form: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(id as spelt, path, path of the id, entry) of each agent of one roster form."""
    agents = data.get("agents")
    roster = agents.get(form) if isinstance(agents, dict) else None
    if isinstance(roster, dict) and form == "entries":
        for key, entry in roster.items():
            path = join("agents.entries", str(key))
            yield str(key), path, path, entry if isinstance(entry, dict) else {}
    elif isinstance(roster, list) and form == "list":
        for at, entry in enumerate(roster):
            if isinstance(entry, dict) and isinstance(entry.get("id"), str):
                path = join("agents.list", at)
                yield entry["id"], path, join(path, "id"), entry


def pool_faults(data: dict[str, Any]) -> Iterator[ConfigFault]:
    """More actors to begin with than there may be at all."""
    ray = data.get("ray")
    pool = ray.get("pool") if isinstance(ray, dict) else None
    if isinstance(pool, dict):
        most, first = pool.get("max"), pool.get("prewarm")
        if isinstance(most, int) and isinstance(first, int) and first > most:
            text = f"{first} is more than ray.pool.max {most}"
            yield ConfigFault("ray.pool.prewarm", "value", text, remedy="lower it, or raise ray.pool.max")


def limit_faults(data: dict[str, Any]) -> Iterator[ConfigFault]:
    """Rate limits that limit nothing."""
    ray = data.get("ray")
    limits = ray.get("limits") if isinstance(ray, dict) else None
    for key, named in limits.items() if isinstance(limits, dict) else ():
        for name, one in named.items() if is_named(key) and isinstance(named, dict) else ():
            if isinstance(one, dict) and "rate" not in one and "concurrent" not in one:
                text = "limits nothing: it has neither rate nor concurrent"
                yield ConfigFault(join("ray.limits", name), "value", text, remedy="add one of them, or take it out")


def tool_faults(data: dict[str, Any]) -> Iterator[ConfigFault]:
    """Scopes with ``allow`` and ``alsoAllow`` together (SPEC.md A4): what is not allowed cannot be added to."""
    for value, path in _tool_places(data):
        yield from _clashes(value, path)


def _tool_places(data: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    yield data.get("tools"), "tools"
    for form in ("list", "entries"):
        for _, path, _, entry in _roster(data, form):
            yield entry.get("tools"), join(path, "tools")


def _clashes(value: Any, path: str) -> Iterator[ConfigFault]:
    if not isinstance(value, dict):
        return
    if value.get("allow") and value.get("alsoAllow"):
        text = "has both allow and alsoAllow"
        yield ConfigFault(path, "value", text, remedy="put all names in allow, or use profile with alsoAllow")
    for key, below in value.items():
        yield from _clashes(below, join(path, str(key)))
