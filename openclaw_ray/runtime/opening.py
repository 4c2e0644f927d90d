"""Coming to a runtime: starting one, or joining one that lives; any failure undoes what came before (DESIGN.md 7)."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.actors.here import running_turn
from openclaw_ray.actors.lifetime import Lifetime
from openclaw_ray.actors.names import find_actor, runtimes_alive
from openclaw_ray.core.errors import RayUnreachable, RuntimeInUse, RuntimeNotFound, RuntimeUnavailable
from openclaw_ray.runtime.client import Client, TurnClient
from openclaw_ray.runtime.cluster import attach, in_ray_worker
from openclaw_ray.runtime.joining import Wanted
from openclaw_ray.runtime.looking import QUERY_WITHIN

if TYPE_CHECKING:
    from openclaw_ray.actors.settings import RegistrySettings
    from openclaw_ray.config import Config
    from openclaw_ray.core.limits import RuntimeLimits
    from openclaw_ray.core.protocol.state import AgentEntry
    from openclaw_ray.runtime.cluster import Guest
    from openclaw_ray.runtime.starting import Engine

__all__ = ["Opened", "default_agent", "join", "start"]

_SETTLED_WITHIN = 8.0
"""Seconds in which one of several that start a name at once is there, or its state dir is free again."""
_LOOK_EVERY = 0.05


@dataclass(frozen=True, slots=True)
class Opened:
    """What an open runtime consists of; ``engine`` is there for the process that owns its actors, ``recovered`` for the
    one that started them."""

    client: Client | TurnClient
    guest: Guest
    engine: Engine | None
    config: Config
    limits: RuntimeLimits
    pool_max: int
    recovered: Mapping[str, int] = field(default_factory=dict)


def start(
    config: Config | str | Path | Mapping[str, Any] | None,
    agents: Iterable[Any],
    *,
    name: str | None,
    state_dir: str | Path | None,
    if_exists: str,
    runtime_env: dict[str, Any] | None,
    app_dir: str | Path | None,
    on_lost: str,
    recover: bool = False,
    service: bool = False,
) -> Opened:
    """See `Runtime.start`."""
    from ray.exceptions import ActorDiedError

    from openclaw_ray.agents.bundle import make_bundle
    from openclaw_ray.config import load
    from openclaw_ray.runtime.starting import start_engine
    from openclaw_ray.store.places import address_of, check_name

    settings = load(dict(config) if isinstance(config, Mapping) else config)
    if name is not None:
        check_name(name)
    elif service:
        raise ValueError("a service needs a name: it is found, and taken down, by it")
    elif recover and state_dir is None:
        raise ValueError("recover=True needs a name or a state_dir: without one nothing of before is there")
    known = list(agents)
    bundle = make_bundle(known, app_dir=None if app_dir is None else str(app_dir)) if known else None
    wanted = Wanted(settings, bundle, state_dir, runtime_env)
    near = address_of(name) if name is not None and (service or if_exists == "connect") else ""
    guest = attach(start=not service, near=near)
    try:
        until = time.monotonic() + _SETTLED_WITHIN
        while True:
            try:
                if name is not None and _alive(name):
                    if if_exists != "connect":
                        raise RuntimeInUse(name, *_who(name))
                    return _joined(name, settings, guest, on_lost, wanted)
                lifetime = _lifetime(service, if_exists == "connect" and name is not None)
                engine = start_engine(
                    guest,
                    settings,
                    bundle,
                    name=name,
                    state_dir=state_dir,
                    runtime_env=runtime_env,
                    lifetime=lifetime,
                    recover=recover,
                )
                break
            except (RuntimeInUse, RuntimeNotFound, ActorDiedError):
                # several start one name at once, or one is just ending: who is not first joins the first
                if if_exists != "connect" or time.monotonic() > until:
                    raise
                time.sleep(_LOOK_EVERY)
        try:
            ids = [a.id for a in bundle.agents] if bundle is not None else []
            client = _client(engine.name, settings, ids, engine.limits)
            client.requester.modules = bundle.modules if bundle is not None else ()
            client.requester.state_dir = str(engine.state_dir)
            owned = lifetime is Lifetime.OWNER
            client.open(leased=not owned, on_lost="stop" if owned else on_lost)
        except BaseException:
            engine.end()
            raise
        for note in engine.notes:
            warnings.warn(note, stacklevel=3)
        held = engine if owned else None
        return Opened(client, guest, held, settings, engine.limits, engine.pool_max, engine.recovered)
    except BaseException:
        guest.leave()
        raise


def _lifetime(service: bool, joins: bool) -> Lifetime:
    """What is started by a process that may be gone at any time belongs to no process."""
    if service:
        return Lifetime.SERVICE
    return Lifetime.CLIENTS if joins and in_ray_worker() else Lifetime.OWNER


def join(name: str, on_lost: str) -> Opened:
    """See `Runtime.connect`."""
    from openclaw_ray.config import load
    from openclaw_ray.store.places import address_of, list_runtimes

    near = address_of(name)
    try:
        guest = attach(start=False, near=near)
    except RayUnreachable as error:
        if near or os.environ.get("RAY_ADDRESS", "auto") not in ("", "auto"):
            raise
        # with an address, those of this machine are in other Rays than the one that was named
        here = () if os.environ.get("RAY_ADDRESS") else list_runtimes()
        raise RuntimeNotFound(name, tuple(place.name for place in here if place.owner is not None)) from error
    try:
        return _joined(name, load({}), guest, on_lost)
    except BaseException:
        guest.leave()
        raise


def _joined(name: str, config: Config, guest: Guest, on_lost: str, wanted: Wanted | None = None) -> Opened:
    try:
        registry = find_actor(name, "registry")
    except ValueError:
        raise RuntimeNotFound(name, runtimes_alive()) from None
    settings = _settled(name, registry)
    limits = settings.limits
    turn = running_turn(name)
    if turn is not None:
        return Opened(TurnClient(turn), guest, None, config, limits, settings.pool_max)
    there: dict[str, AgentEntry] = ask(registry.agents.remote, QUERY_WITHIN)
    if wanted is not None and (said := wanted.differences(settings, there)):
        warnings.warn(f"joined runtime {name!r}, which goes by its own settings: {'; '.join(said)}", stacklevel=4)
    client = _client(name, config, sorted(there), limits)
    client.requester.modules = tuple(sorted({module for entry in there.values() for module in entry.modules}))
    client.requester.state_dir = settings.state_dir
    client.open(leased=True, on_lost=on_lost)
    return Opened(client, guest, None, config, limits, settings.pool_max)


def _settled(name: str, registry: Any) -> RegistrySettings:
    """The settings of a runtime whose start is complete.

    Raises:
        RuntimeUnavailable: it is not, and does not get there.
        ActorDiedError: its start has failed meanwhile.
    """
    until = time.monotonic() + QUERY_WITHIN
    while True:
        info = ask(registry.info.remote, QUERY_WITHIN)
        if info["ready"]:
            settings: RegistrySettings = info["settings"]
            return settings
        if time.monotonic() > until:
            raise RuntimeUnavailable(f"runtime {name!r}", QUERY_WITHIN, "its start does not come to an end")
        time.sleep(_LOOK_EVERY)


def _client(runtime: str, config: Config, ids: list[str], limits: RuntimeLimits) -> Client:
    return Client(
        runtime,
        default_agent(config, ids),
        lease=limits.client_lease_seconds,
        timeout=limits.registry_timeout_seconds,
    )


def _alive(name: str) -> bool:
    try:
        find_actor(name, "registry")
    except ValueError:
        return False
    return True


def _who(name: str) -> tuple[int, str, float]:
    """Process, host and start of the owner of a live runtime, as far as its state dir says."""
    from openclaw_ray.store.statelock import owner_of

    info = ask(find_actor(name, "registry").info.remote, QUERY_WITHIN)
    owner = owner_of(Path(info["settings"].state_dir))
    return (owner.pid, owner.host, owner.since) if owner else (info["pid"], socket.gethostname(), time.time())


def default_agent(config: Config, ids: list[str]) -> str:
    """The marked one, else ``main``, else the only one (DESIGN.md 7)."""
    if config.named_agents:
        return config.default_agent
    if "main" in ids or not ids:
        return "main"
    return ids[0]
