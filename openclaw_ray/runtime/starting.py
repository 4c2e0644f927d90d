"""Starting a runtime: config, code, Ray, place, actors, in this order; a failure undoes what came before (DESIGN.md 7).

1. Whatever can be wrong with the caller's input is found before Ray or the disk is touched.
2. The state dir is locked; a second opener of a name is told who has it.
3. Registry, hub and pool are created by this process, which owns them: Ray ends them with it.
4. The agents' code is registered and loaded once by a session process, so that an import error is raised here.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.actors.lifetime import Lifetime
from openclaw_ray.actors.names import NAMESPACE, actor_name, find_actor
from openclaw_ray.config import Config
from openclaw_ray.core.errors import (
    AgentImportError,
    DuplicateAgent,
    PoolTooSmall,
    RuntimeInUse,
    RuntimeUnavailable,
    StateDirError,
)
from openclaw_ray.core.limits import Logs, RuntimeLimits
from openclaw_ray.core.placement import PROCESS_BYTES, room_of
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.runtime.carrying import carry
from openclaw_ray.runtime.cluster import Guest
from openclaw_ray.store.credentials import referred_env
from openclaw_ray.store.places import state_dir_for
from openclaw_ray.store.statelock import StateLock, owner_of

__all__ = ["ACTOR_BYTES", "Engine", "agent_entries", "fit_limits", "start_engine"]

ACTOR_BYTES = PROCESS_BYTES
_MOST_ACTORS = 512
_START_WITHIN = 60.0
_LOAD_WITHIN = 45.0
_GIVE_BACK_WITHIN = 5.0
_FREE_WITHIN = 2.0


@dataclass
class Engine:
    """The actors of a runtime that this process owns."""

    name: str
    state_dir: Path
    lock: StateLock
    limits: RuntimeLimits
    pool_max: int
    registry: Any
    hub: Any
    pool: Any
    bundles: dict[str, str]
    notes: tuple[str, ...] = ()
    recovered: Mapping[str, int] = field(default_factory=dict)
    """What was made of the runs that an earlier start had left un-ended; see `Runtime.recovered`."""

    def end(self) -> None:
        """End every process of the runtime and give its state dir back."""
        import ray

        if ray.is_initialized():  # else Ray has ended them, and would start anew for being asked
            for actor in (self.pool, self.registry, self.hub):
                with contextlib.suppress(Exception):
                    ray.kill(actor)
            _wait_until_free(self.name)
        self.lock.release()


def _wait_until_free(name: str) -> None:
    """A killed actor's name is free a moment later; who starts the next runtime of this name is not to meet it."""
    until = time.monotonic() + _FREE_WITHIN
    for part in ("pool", "registry", "hub"):
        with contextlib.suppress(Exception):  # ValueError: it is; else Ray is ending
            while find_actor(name, part) is not None and time.monotonic() < until:
                time.sleep(0.01)


def fit_limits(limits: RuntimeLimits, cpus: int, memory: int) -> tuple[RuntimeLimits, int, tuple[str, ...]]:
    """The ceiling of actors, and the depth cap that fits under it (PROTOCOL.md 3.3), with what to tell the user.

    Raises:
        PoolTooSmall: both ``ray.pool.max`` and ``maxSpawnDepth`` were set, and do not go together.
    """
    ceiling = limits.pool_max
    if ceiling is None:
        ceiling = max(4, min(_MOST_ACTORS, memory // ACTOR_BYTES))
    if ceiling >= limits.max_spawn_depth + 1:
        return limits, ceiling, ()
    if limits.max_spawn_depth_set and limits.pool_max is not None:
        raise PoolTooSmall(ceiling, limits.max_spawn_depth)
    depth = max(1, ceiling - 1)
    note = (
        f"maxSpawnDepth lowered from {limits.max_spawn_depth} to {depth}: ray.pool.max is {ceiling}, and each level "
        "of waiting sessions needs a process"
    )
    return replace(limits, max_spawn_depth=depth), ceiling, (note,)


def start_engine(
    guest: Guest,
    config: Config,
    bundle: Any,
    *,
    name: str | None,
    state_dir: str | Path | None,
    runtime_env: dict[str, Any] | None,
    lifetime: Lifetime = Lifetime.OWNER,
    recover: bool = False,
) -> Engine:
    """Create the actors, register the agents, and decide what an earlier start left un-ended (2, 3, 4).

    Raises:
        StateDirError, RuntimeInUse: the place.
        PoolTooSmall: limits that do not go together.
        AgentImportError: an agent's code does not load in a session process.
        RuntimeUnavailable: the actors did not come up.
    """
    import psutil
    import ray

    from openclaw_ray.actors.placing import live_nodes

    cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]
    nodes, here = live_nodes(), ray.get_runtime_context().get_node_id()
    memory = psutil.virtual_memory().available + int(sum(node.room for node in nodes if node.id != here))
    limits, pool_max, notes = fit_limits(config.runtime_limits(cpus=cpus), cpus, memory)
    room = room_of(node.room for node in nodes)
    place = state_dir_for(name, state_dir, _session_dir())
    runtime = name or place.name
    lock = StateLock(place, runtime, guest.address)
    if lifetime is Lifetime.OWNER:  # else the registry takes it: this process may be gone at any time
        lock.acquire()
    engine: Engine | None = None
    try:
        stores = config.auth_stores(code.id for code in (bundle.agents if bundle is not None else ()))
        hidden = tuple(sorted({*referred_env(stores), *config.secret_env}))
        env = carry(runtime_env)
        engine = _create(runtime, place, lock, limits, pool_max, room, cpus, hidden, env, lifetime, recover)
        engine.notes = notes
        _wait_until_up(engine)
        if bundle is not None:
            register(engine.registry, config, bundle, engine.bundles)
        if recover:
            engine.recovered = ask(engine.registry.recover.remote, _START_WITHIN)
        ask(engine.registry.opened.remote, _START_WITHIN)
        return engine
    except BaseException:
        if engine is not None:
            engine.end()
        else:
            lock.release()
        raise


def _create(
    runtime: str,
    place: Path,
    lock: StateLock,
    limits: RuntimeLimits,
    pool_max: int,
    room: int,
    cpus: int,
    hidden: tuple[str, ...],
    runtime_env: dict[str, Any] | None,
    lifetime: Lifetime,
    recover: bool,
) -> Engine:
    import ray

    from openclaw_ray.actors.doors import HubActor, Pool, RegistryActor, remote
    from openclaw_ray.actors.settings import RegistrySettings, SessionSettings

    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    common: dict[str, Any] = {
        "namespace": NAMESPACE,
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": 0,
        "scheduling_strategy": here,
    }
    if lifetime is not Lifetime.OWNER:
        common["lifetime"] = "detached"
    prewarm = limits.pool_prewarm if limits.pool_prewarm is not None else 2 * cpus
    settings = RegistrySettings(
        runtime,
        uuid.uuid4().hex,
        str(place),
        limits,
        pool_max,
        cpus,
        min(prewarm, pool_max),
        lifetime,
        recover,
        time.time(),
        room,
    )
    session = SessionSettings(
        runtime,
        str(place),
        limits.registry_timeout_seconds,
        limits.pool_max_growth_mb,
        runtime_env,
        hidden,
        limits.logs is Logs.JSON,
        limits.pool_scheduling,
        limits.pool_place_seconds,
    )
    # the pool first: the registry asks it for actors as soon as it is there
    try:
        pool = (
            remote(Pool)
            .options(name=actor_name(runtime, "pool"), **common)
            .remote(session)
        )
    except ValueError as error:  # the name is taken: somebody else has started one in this very moment
        raise RuntimeInUse(runtime, 0, "another process of this cluster", time.time()) from error
    registry = (
        remote(RegistryActor)
        .options(name=actor_name(runtime, "registry"), **common)
        .remote(settings)
    )
    hub = (
        remote(HubActor)
        .options(name=actor_name(runtime, "hub"), **common)
        .remote(runtime, str(place), limits.journal_sync.value)
    )
    return Engine(runtime, place, lock, limits, pool_max, registry, hub, pool, {})


def _wait_until_up(engine: Engine) -> None:
    from ray.exceptions import RayError

    try:
        for method in (engine.registry.info, engine.hub.statistics, engine.pool.ping):
            ask(method.remote, _START_WITHIN)
    except RayError as error:
        cause = error.__cause__ or error
        if "RuntimeInUse" in str(error):  # a detached runtime's registry takes the state dir itself
            raise RuntimeInUse(engine.name, *_holder(engine.state_dir)) from error
        if "JournalError" in str(error) or "JournalFault" in str(error) or "StateDir" in str(error):
            raise StateDirError(str(engine.state_dir), str(cause)) from error
        raise RuntimeUnavailable("registry, hub and pool", _START_WITHIN, str(cause)) from error


def _holder(place: Path) -> tuple[int, str, float]:
    owner = owner_of(place)
    return (owner.pid, owner.host, owner.since) if owner else (0, "another process", time.time())


def register(registry: Any, config: Config, bundle: Any, known: dict[str, str]) -> None:
    """Have the runtime know a bundle's agents, and one session process load it (4).

    Raises:
        DuplicateAgent: an id is known with other code.
        AgentImportError: the code does not load there, or not in time.
    """
    entries = agent_entries(config, bundle, ask(registry.agents.remote, _START_WITHIN))
    _try_out(registry, bundle)
    if rules := {entry.id: entry.limits.auth for entry in entries if entry.limits.auth is not None}:
        ask(lambda: registry.auth_look.remote(rules), _START_WITHIN)
    ask(lambda: registry.register.remote(entries, bundle.id, bundle.data, bundle.paths), _START_WITHIN)
    known.update({code.id: code.hash for code in bundle.agents})


def agent_entries(config: Config, bundle: Any, there: Mapping[str, AgentEntry]) -> list[AgentEntry]:
    """What the registry is to know of a bundle's agents, beside those that are ``there``.

    Raises:
        DuplicateAgent: an id is known with other code.
    """
    for code in bundle.agents:
        old = there.get(code.id)
        if old is not None and old.hash != code.hash:
            raise DuplicateAgent(code.id, old.origin, code.origin)
    return [
        AgentEntry(
            code.id,
            bundle.id,
            code.origin,
            code.hash,
            code.spawns,
            code.resumable,
            code.follow_up,
            config.agent_limits(code.id),
            bundle.modules,
            code.tools,
        )
        for code in bundle.agents
    ]


def _try_out(registry: Any, bundle: Any) -> None:
    """Have one session process load a bundle; nobody else uses it meanwhile, nor later if that went wrong.

    Raises:
        AgentImportError: see `register`.
    """
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError

    first = bundle.agents[0]
    ask(lambda: registry.offer.remote(bundle.id, bundle.data, bundle.paths), _START_WITHIN)
    who = uuid.uuid4().hex
    lent = ask(lambda: registry.lend.remote(who, _START_WITHIN), _START_WITHIN + 5)
    if lent is None:
        raise RuntimeUnavailable("first session process", _START_WITHIN, "no session process came up, or none is free")
    actor_id, handle = lent
    why = "could not load an agent"
    try:
        ask(lambda: handle.check.remote(bundle.id), _LOAD_WITHIN)
        why = ""
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, AgentImportError):
            raise cause from None
        raise AgentImportError(first.id, first.origin, "", str(error)) from None
    except GetTimeoutError:
        raise AgentImportError(
            first.id, first.origin, "", f"it did not load and construct within {_LOAD_WITHIN:g} s in a session process"
        ) from None
    except RayError as error:
        raise AgentImportError(
            first.id, first.origin, "", f"the session process that loaded it died: {str(error).splitlines()[0]}"
        ) from None
    finally:
        with contextlib.suppress(RayError):
            ask(lambda: registry.give_back.remote(actor_id, why), _GIVE_BACK_WITHIN)


def _session_dir() -> str:
    import ray

    node = ray._private.worker.global_worker.node
    if node is not None:
        return str(node.get_session_dir_path())
    return os.path.join("/tmp", "ray", "session_latest")


