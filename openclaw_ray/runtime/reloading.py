"""A new configuration for a runtime that runs (DESIGN.md 11, SCENARIOS.md 64).

1. The new configuration is loaded and checked whole; a faulty one changes nothing.
2. What the runtime has for life stays as it is: depth, pool size, journal, leases, bundle of defaults. The changes
   say so.
3. All that can change goes to the registry in one call, which keeps all of it or nothing.
"""

from __future__ import annotations

from typing import Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.config import Change, Config, changes, limits_after
from openclaw_ray.core.errors import PoolTooSmall
from openclaw_ray.core.protocol.authing import auth_of

__all__ = ["reload"]

_WITHIN = 30.0


def reload(registry: Any, old: Config, new: Config) -> tuple[Change, ...]:
    """Put ``new`` in force as far as it can be, and say what it changes.

    Raises:
        PoolTooSmall: the next start of the runtime would refuse it.
    """
    settings = ask(registry.info.remote, _WITHIN)["settings"]
    wanted = new.runtime_limits(cpus=settings.cpus, compat=settings.limits.compat)
    if wanted.pool_max is not None and wanted.max_spawn_depth_set and wanted.pool_max <= wanted.max_spawn_depth:
        raise PoolTooSmall(wanted.pool_max, wanted.max_spawn_depth)
    known = ask(registry.agents.remote, _WITHIN)
    agents = {agent: new.agent_limits(agent) for agent in known}
    rules = {agent: own.auth for agent, own in agents.items() if own.auth or auth_of(known[agent])}
    if rules:
        ask(lambda: registry.auth_look.remote(rules), _WITHIN)
    limits = limits_after(settings.limits, wanted)
    ask(lambda: registry.reload.remote(limits, agents), _WITHIN)
    return changes(old, new)
