"""The four actors as Ray and their callers see them: the names of their entries, and the group of threads of each.

1. Ray loads an actor's class in every process that holds its handle, only to know its methods.
2. So the classes given to Ray are doors: they know their entries and no more. What is behind one is imported where the
   actor is born. A session process, of which there are many, never loads the registry, the journal or the hub.
3. A door bears its actor's name, and an entry passes its arguments on as they are. What is behind need not know Ray's
   groups; its public methods that are not named here cannot be called from outside.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import ray

__all__ = ["HubActor", "Pool", "RegistryActor", "SessionActor", "remote"]

_Behind = Callable[..., Any]


def remote(door: type[Any]) -> Any:
    """The actor class of Ray's for a door, with its groups of threads."""
    groups = {group: threads for group, threads in door.threads.items() if group}
    return ray.remote(concurrency_groups=groups)(door) if groups else ray.remote(door)  # type: ignore[call-overload]


def _door(
    place: str,
    entries: Mapping[str, tuple[str, ...]],
    threads: Mapping[str, int] | None = None,
    *,
    returns: Mapping[str, int] | None = None,
    coroutines: bool = False,
) -> type[Any]:
    """The door to a class.

    Args:
        place: the class behind it, as ``module:Class``.
        entries: by group the methods that run in it; the group "" is Ray's own.
        threads: how many each group has.
        returns: entries with more than one value, and how many.
        coroutines: all entries are coroutines.
    """
    module, _, name = place.partition(":")

    def __init__(self: Any, *args: Any) -> None:
        self.behind = getattr(importlib.import_module(module), name)(*args)

    members: dict[str, Any] = {
        "__init__": __init__,
        "__module__": __name__,
        "__doc__": f"The door to `{module}.{name}`.",
        "threads": dict(threads or {}),
        "place": place,
    }
    for group, methods in entries.items():
        for method in methods:
            options: dict[str, Any] = {"concurrency_group": group} if group else {}
            if returns and method in returns:
                options["num_returns"] = returns[method]
            entry = (_coroutine if coroutines else _entry)(name, method)
            members[method] = ray.method(**options)(entry) if options else entry
    return type(name, (), members)


def _entry(door: str, method: str) -> _Behind:
    def entry(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self.behind, method)(*args, **options)

    return _named(entry, door, method)


def _coroutine(door: str, method: str) -> _Behind:
    async def entry(self: Any, *args: Any, **options: Any) -> Any:
        return await getattr(self.behind, method)(*args, **options)

    return _named(entry, door, method)


def _named(entry: _Behind, door: str, method: str) -> _Behind:
    entry.__name__, entry.__qualname__ = method, f"{door}.{method}"
    return entry


RegistryActor = _door(
    "openclaw_ray.actors.registry_actor:RegistryActor",
    {
        "step": ("step",),
        "notice": ("give_back", "grow_to", "growth_failed", "growth_waits", "hub_is_new", "value_held"),
        "wait": ("lend",),
        "auth": ("auth", "auth_look", "auth_view"),
        "query": (
            *("agents", "bundle", "offer", "opened", "register", "reload"),
            *("ended", "info", "last_event", "session", "stop_report", "view"),
            *("asked", "clear_tombstones", "delete", "dismiss", "patch", "recover", "redeliver", "reset"),
            *("claim_map", "maintain", "map_page", "retain", "conversations", "unbind"),
        ),
    },
    {"step": 1, "query": 2, "notice": 1, "wait": 1, "auth": 4},
)
"""Steps of couriers; what the pool and the hub report; starters that wait; credentials, which are in files or with
programs, so that several are asked for side by side; the rest."""

HubActor = _door(
    "openclaw_ray.actors.hub_actor:HubActor",
    {
        "": (
            *("push", "poll", "events", "history", "silent"),
            *("transcript", "transcript_bytes", "ping", "statistics"),
        )
    },
    coroutines=True,
)

Pool = _door(
    "openclaw_ray.actors.pool:Pool",
    {"": ("drop", "grow", "hold", "holds", "kill", "owned", "ping", "value"), "life": ("stand",)},
    {"life": 1},
)

SessionActor = _door(
    "openclaw_ray.actors.session_actor:SessionActor",
    {
        "control": ("deliver", "die_if", "notify", "park", "ping", "report", "start", "stop", "take", "where"),
        "check": ("check",),
        "life": ("stand",),
    },
    {"control": 2, "life": 1, "check": 1},
    returns={"park": 2},
)
