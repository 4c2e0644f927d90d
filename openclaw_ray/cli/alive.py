"""Which live runtimes a command can reach: those of one Ray if ``RAY_ADDRESS`` names it, else all of this machine.

Several Rays on one machine are usual: each program that starts a runtime without ``RAY_ADDRESS`` brings up its own. A
runtime of another Ray than the one that was named is a stranger: it can neither be asked nor be offered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from openclaw_ray.store.places import Place, list_runtimes

__all__ = ["alive_names", "names_at"]


def alive_names() -> list[str]:
    """Their names, sorted.

    Raises:
        RayUnreachable, RayClientUnsupported: ``RAY_ADDRESS`` names a Ray that cannot be asked.
    """
    owned = [place for place in list_runtimes() if place.owner is not None]
    if not os.environ.get("RAY_ADDRESS"):
        return sorted({place.name for place in owned})
    from openclaw_ray.actors.names import runtimes_alive
    from openclaw_ray.runtime.cluster import attach

    guest = attach(start=False)
    try:
        return names_at(guest.address, runtimes_alive(), owned)
    finally:
        guest.leave()


def names_at(address: str, in_ray: Iterable[str], owned: Iterable[Place]) -> list[str]:
    """The runtimes of the Ray at ``address``: those that it names, and those that have it as theirs by their state dir,
    though their registry may be away. Pure."""
    away = [place.name for place in owned if place.owner is not None and place.owner.address == address]
    return sorted({*in_ray, *away})
