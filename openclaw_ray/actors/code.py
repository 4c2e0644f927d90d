"""Agents' code in a session process: fetched once per bundle, loaded afresh for each activation (DESIGN.md 7)."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.asking import ask
from openclaw_ray.agents.bundle import LoadedBundle, load_bundle
from openclaw_ray.core.errors import AgentImportError

if TYPE_CHECKING:
    from openclaw_ray.actors.courier_thread import CourierThread

__all__ = ["Code"]

_FETCH_WITHIN = 30.0
_MADE_WITHIN = 3.0
"""Seconds in which an agent's class is made: a start that hangs is an error within ten, Ray's own part included."""


class Code:
    """The bundles that this process has."""

    def __init__(self, courier: CourierThread) -> None:
        self._courier = courier
        self._bundles: dict[str, LoadedBundle] = {}

    def check(self, bundle: str) -> None:
        """Load every agent of a bundle once, and make those that are classes.

        Raises:
            AgentImportError: naming agent, module, file and the way out.
        """
        loaded = self._loaded(bundle)
        for agent_id in loaded.ids:
            if isinstance(loaded.agent(agent_id), type):  # imports may take long, making one of them may not
                _within(_MADE_WITHIN, loaded, agent_id)

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


def _within(seconds: float, loaded: LoadedBundle, agent_id: str) -> None:
    """Make an agent's class once; the thread of one that hangs ends with this process, which is not used again."""
    made: Future[None] = Future()

    def work() -> None:
        try:
            loaded.construct(agent_id)
            made.set_result(None)
        except BaseException as error:  # noqa: BLE001 - it belongs to who waits
            made.set_exception(error)

    threading.Thread(target=work, name="openclaw-check", daemon=True).start()
    try:
        made.result(seconds)
    except TimeoutError:
        if made.done():
            raise
        module, file = loaded.origin(agent_id)
        detail = f"its class was not made within {seconds:g} s: does its __init__ wait for something?"
        raise AgentImportError(agent_id, module, file, detail) from None
