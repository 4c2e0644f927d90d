"""The couriers of a local runtime: the real thread and rules; a step is a call in this process (PROTOCOL.md 1)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.courier_thread import CourierThread, Listener
from openclaw_ray.actors.requester import Requester
from openclaw_ray.core.attachments import AttachedFile
from openclaw_ray.core.protocol.messages import Answer, Completed, Payload, Step
from openclaw_ray.core.results import Completion
from openclaw_ray.testing.local.memory import ProcessMemory

if TYPE_CHECKING:
    from openclaw_ray.testing.local.registry import LocalRegistry

__all__ = ["LocalCourier", "LocalRequester", "pack"]

_log = logging.getLogger("openclaw_ray")


class LocalCourier(CourierThread):
    """One stand-in process's talk with the registry.

    Args:
        memory: that process's.
    """

    def __init__(self, client: str, registry: LocalRegistry, listener: Listener, memory: ProcessMemory) -> None:
        super().__init__(client, registry.name, registry, listener, timeout=registry.limits.registry_timeout_seconds)
        self.memory = memory

    def handle(self, actor: str, given: Any = None) -> Any:
        """See `CourierThread.handle`."""
        return self.registry.handle(actor)

    def _send(self, step: Step) -> Answer | None:
        try:
            answer: Answer = self.registry.step(step)
            return answer
        except Exception as error:  # noqa: BLE001 - a fault of the core: whoever waits hears of it, and of its cause
            if not self.closed:
                _log.exception("step %d of %s", step.seq, step.client)
            self._fail_waiting(error)
            self.listener.unavailable(error)
            return None


class LocalRequester(Requester):
    """A requester whose objects never leave the process, but are pickled as if they did."""

    courier: LocalCourier

    def _put(self, files: tuple[AttachedFile, ...]) -> Any:
        return files

    def _pack(self, value: Any) -> Payload:
        return pack(value, self.modules, self.courier.memory)

    def _value(self, completed: Completed) -> Completion:
        with self.courier.memory.inside():
            return super()._value(completed)


def pack(value: Any, modules: tuple[str, ...], memory: ProcessMemory) -> Payload:
    """An input on its way, whole, however large.

    Raises:
        Exception: what its pickling raises.
    """
    from openclaw_ray.agents._by_value import by_value
    from openclaw_ray.agents._cloudpickle import standing_in

    with standing_in(memory), by_value(modules):
        data = memory.dumps(value, protocol=5)
    return Payload(data=data, size=len(data))
