"""What the actors of a runtime are told at their birth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openclaw_ray.actors.lifetime import Lifetime
from openclaw_ray.core.limits import RuntimeLimits

__all__ = ["RegistrySettings", "SessionSettings"]


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """What the registry of a runtime is told at its birth, and again at each restart.

    ``boot`` is new for each start of the runtime: what an older boot left behind is closed, not adopted. ``lifetime``:
    one that belongs to no process holds its state dir itself. ``recover``: what an older boot left un-ended is held
    until `RegistryActor.recover` decides. ``since``: when it was started, in seconds since the epoch. ``room``: how
    many session processes the cluster could hold then.
    """

    runtime: str
    boot: str
    state_dir: str
    limits: RuntimeLimits
    pool_max: int
    cpus: int
    prewarm: int
    lifetime: Lifetime = Lifetime.OWNER
    recover: bool = False
    since: float = 0.0
    room: int = 0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What every session process of a runtime is told at its birth.

    ``hidden_env``: names that its environment is not to have, see `openclaw_ray.actors.hidden_env`. ``json_logs``:
    ``ray.logs`` is ``json``. ``scheduling`` and ``place_within`` are the pool's: see `openclaw_ray.core.placement`, and
    ``ray.pool.placeSeconds``.
    """

    runtime: str
    state_dir: str
    registry_timeout: float
    max_growth_mb: float
    runtime_env: dict[str, Any] | None = None
    hidden_env: tuple[str, ...] = ()
    json_logs: bool = False
    scheduling: str = "SPREAD"
    place_within: float = 8.0
