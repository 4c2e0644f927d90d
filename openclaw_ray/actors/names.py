"""Where a runtime's actors are found: one namespace, names ``<runtime>/pool``, ``registry``, ``hub``, ``session-…``."""

from __future__ import annotations

from typing import Any

__all__ = ["NAMESPACE", "actor_name", "find_actor", "runtimes_alive"]

NAMESPACE = "openclaw_ray"


def actor_name(runtime: str, part: str) -> str:
    """The Ray name of a part of a runtime."""
    return f"{runtime}/{part}"


def find_actor(runtime: str, part: str) -> Any:
    """The handle of a part of a runtime.

    Raises:
        ValueError: there is no live actor of that name, or no Ray any more.
    """
    import ray

    if not ray.is_initialized():  # else Ray would start a whole new cluster for whoever asks
        raise ValueError(f"Ray is shut down: {actor_name(runtime, part)} cannot be found")
    return ray.get_actor(actor_name(runtime, part), namespace=NAMESPACE)


def runtimes_alive() -> tuple[str, ...]:
    """Names of the runtimes on this cluster."""
    import ray

    names = [a["name"] for a in ray.util.list_named_actors(all_namespaces=True) if a["namespace"] == NAMESPACE]
    return tuple(sorted(n.removesuffix("/registry") for n in names if n.endswith("/registry")))
