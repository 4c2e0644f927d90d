"""Agents' code in a session process: fetched once per bundle, loaded afresh for each activation (DESIGN.md 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.agents.bundle import LoadedBundle, load_bundle

if TYPE_CHECKING:
    from openclaw_ray.actors.courier_thread import CourierThread

__all__ = ["Code"]

_FETCH_WITHIN = 30.0


class Code:
    """The bundles that this process has."""

    def __init__(self, courier: CourierThread) -> None:
        self._courier = courier
        self._bundles: dict[str, LoadedBundle] = {}

    def check(self, bundle: str) -> None:
        """Load every agent of a bundle once.

        Raises:
            AgentImportError: naming agent, module, file and the way out.
        """
        loaded = self._loaded(bundle)
        for agent_id in loaded.ids:
            loaded.construct(agent_id)

    def agent(self, bundle: str, agent_id: str) -> Any:
        """The agent, new.

        Raises:
            AgentImportError: its code does not load here.
            ray.exceptions.RayError: the registry could not be asked for it.
        """
        return self._loaded(bundle).agent(agent_id)

    def _loaded(self, bundle: str) -> LoadedBundle:
        loaded = self._bundles.get(bundle)
        if loaded is None:
            # in a list, so that a large bundle comes by reference out of the object store; the object ends with
            # the registry process that put it, and the next one puts it anew
            paths: tuple[str, ...] = ()

            def reference() -> Any:
                nonlocal paths
                [ref], paths = ask(lambda: self._courier.registry.bundle.remote(bundle), _FETCH_WITHIN)
                return ref

            data = ask(reference, _FETCH_WITHIN)
            loaded = self._bundles[bundle] = load_bundle(data, paths)
        return loaded
