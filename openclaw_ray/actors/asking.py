"""Calls to actors that may be made twice, and are, until there is an answer (PROTOCOL.md 1.6).

A call can fall without its callee being dead: registry, hub and pool are started again, a connection breaks. Only Ray's
word that an actor is dead is final.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from openclaw_ray.actors.names import find_actor

__all__ = ["AGAIN_AFTER", "Line", "ask", "ask_later", "later"]

AGAIN_AFTER = 0.1
"""Seconds before what did not get through is tried again."""


def ask(call: Callable[[], Any], within: float) -> Any:
    """Wait for the answer to ``call``, which gives a reference; made anew while its callee is away.

    Raises:
        RayError: the callee is dead, or raised, or did not answer within so many seconds.
        ValueError: ``call`` finds no actor of that name.
    """
    import ray
    from ray.exceptions import ActorUnavailableError, ObjectLostError

    until = time.monotonic() + within
    while True:
        try:
            return ray.get(call(), timeout=max(0.1, until - time.monotonic()))
        except (ActorUnavailableError, ObjectLostError):
            if time.monotonic() >= until:
                raise
        time.sleep(AGAIN_AFTER)


def ask_later(call: Callable[[], Any], within: float) -> Future[Any]:
    """`ask` on a thread of its own; the future has what it gives or raises."""
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(ask(call, within))
        except Exception as error:  # noqa: BLE001 - it is for whoever waits for the answer
            future.set_exception(error)

    threading.Thread(target=work, name="openclaw-ask", daemon=True).start()
    return future


def later(call: Callable[..., None], *args: Any) -> None:
    """Try again in a moment, on a thread of its own: Ray's callback thread must neither wait nor look for actors."""
    again = threading.Timer(AGAIN_AFTER, call, args)
    again.daemon = True
    again.name = "openclaw-later"
    again.start()


class Line:
    """One-way calls to a part of the runtime that is started again when it dies; each is made until it is answered.

    They are made at least once, and not always in order: for methods to which neither matters.
    """

    def __init__(self, runtime: str, part: str) -> None:
        self._runtime = runtime
        self._part = part
        self._callee: Any = None

    def call(self, method: str, *args: Any) -> None:
        """Have it done, sooner or later; never waits. Not on a callback thread of Ray's."""
        from ray.exceptions import OutOfMemoryError, RayActorError, RayError

        try:
            if self._callee is None:
                self._callee = find_actor(self._runtime, self._part)
            answer = getattr(self._callee, method).remote(*args)
        except (RayError, ValueError):
            self._callee = None
            later(self.call, method, *args)
            return

        def came(answered: Any) -> None:
            if isinstance(answered.exception(), (RayActorError, OutOfMemoryError)):
                later(self.call, method, *args)

        answer.future().add_done_callback(came)
