"""A client's side: its courier, its one long poll, and its root's children (PROTOCOL.md 2.1, 2.5).

1. `Client.open` joins; the root is there when the step with `Join` was answered.
2. One poll is always out: it brings downlink messages and is the sign of life. A hub that is away is asked again. A
   poll that brought nothing is followed by a step: so that a registry that cannot go on is heard of by who only
   waits, too.
3. `Client.close` says `Bye`, which stops what is un-ended under the root, and ends both threads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

from openclaw_ray.actors.courier_thread import CourierThread
from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.requester import Requester
from openclaw_ray.actors.wire import unpack
from openclaw_ray.core.errors import RuntimeClosed
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.keys import driver_key
from openclaw_ray.core.protocol.messages import Bye, DownMessage, Join, Spec, Verdict, Warn
from openclaw_ray.core.session_asks import Asker

if TYPE_CHECKING:
    from openclaw_ray.actors.session_turn import SessionTurn
    from openclaw_ray.channels import Channel
    from openclaw_ray.channels.desk import ChannelDesk

__all__ = ["Client", "TurnClient"]

_log = logging.getLogger("openclaw_ray")
_POLL_MARGIN = 10.0


class TurnClient:
    """A runtime as a running turn of it sees it: bound to that session's limits and policy, never the operator's."""

    def __init__(self, turn: SessionTurn) -> None:
        self.id = turn.spec.activation
        self.runtime = turn.actor.settings.runtime
        self.root_key = turn.spec.session_key
        self.courier = turn.courier
        self.requester = turn.requester
        self.asker: Asker | None = turn.asker

    def close(self, *, say: bool, timeout: float = 5.0) -> None:
        """The turn's own courier goes on."""


class Client:
    """One process's membership in a runtime."""

    def __init__(self, runtime: str, default_agent: str, *, lease: float, timeout: float) -> None:
        ids = RandomIds()
        self.id = f"client-{ids.uuid()}"
        self.asker: Asker | None = None
        self.runtime = runtime
        self.root_key = driver_key(default_agent, ids.uuid())
        self._lease = lease
        self.courier = CourierThread(self.id, runtime, find_actor(runtime, "registry"), self, timeout=timeout)
        self.requester = Requester(self.courier, self.root_key, self.id, "", default_agent)
        self._closing = threading.Event()
        self._poll = threading.Thread(target=self._poll_on, name="openclaw-poll", daemon=True)
        self._default_agent = default_agent
        self.desk: ChannelDesk | None = None

    def open(self, *, leased: bool, on_lost: str) -> None:
        """Join (1)."""
        self.courier.post(
            Join(self.id, self.root_key, self._default_agent, leased, on_lost, socket.gethostname(), os.getpid())
        )
        self.courier.start()
        self._poll.start()

    def serve(self, channel: Channel) -> None:
        """Have users of a channel talk with sessions by this client."""
        from openclaw_ray.channels.desk import ChannelDesk

        self.desk = ChannelDesk(channel, self.courier, self.id, self.root_key)
        self.desk.open()

    def close(self, *, say: bool, timeout: float = 5.0) -> None:
        """Leave (3); without ``say`` the runtime is known to be gone."""
        if self.desk is not None:
            self.desk.close(min(timeout, 2.0))
        if say and not self._closing.is_set():
            self.courier.post(Bye(self.id))
            self.courier.drain(timeout)
        self._closing.set()
        self.courier.close()
        self.courier.join(timeout)
        self.requester.fail(RuntimeClosed(self.runtime))
        self._end_poll(min(timeout, 2.0))

    # ------------------------------------------------------------------ from the courier

    def verdict(self, verdict: Verdict) -> None:
        """The word on a stop."""
        self.requester.hear_verdict(verdict)

    def message(self, receiver: str, message: DownMessage) -> None:
        """A downlink message."""
        if isinstance(message, Warn):
            _log.warning("%s", message.text)
        elif self.desk is None or not self.desk.hear(message):
            self.requester.hear(message)

    def granted(self, epoch: int, spec: Spec) -> None:
        """Never: nothing runs in a client."""

    def stale(self) -> None:
        """The runtime has given this client up: its lease ran out, or the runtime was started anew."""
        self._closing.set()
        self.requester.fail(RuntimeClosed(self.runtime))

    def unavailable(self, error: Exception) -> None:
        """No answer from the registry for too long."""
        self.requester.fail(error)

    # ------------------------------------------------------------------ the poll

    def _poll_on(self) -> None:
        import ray
        from ray.exceptions import RayError

        hub: Any = None
        wait = self._lease / 3
        while not self._closing.is_set():
            try:
                if hub is None or not ray.is_initialized():
                    hub = find_actor(self.runtime, "hub")
                incarnation, cursor = self.courier.cursor(self.id)
                came = ray.get(hub.poll.remote(self.id, incarnation, cursor, wait), timeout=wait + _POLL_MARGIN)
                incarnation, packed = came
                rows = unpack(packed) if packed else None
            except Exception as error:  # of any kind while Ray is being shut down under us
                hub = None
                if self._closing.is_set() or self._over():
                    return
                # of an actor of a driver that has just ended Ray cannot load the class, and says so by an assertion
                if not isinstance(error, RayError | ValueError | AssertionError):
                    raise
                self._closing.wait(0.1)
                continue
            if rows is not None:
                self.courier.arrived(self.id, incarnation, rows)
            else:
                self.courier.poke()

    def _end_poll(self, timeout: float) -> None:
        """Have the poll that is out come back, and wait for its thread: Ray ends a process that is inside a call to it
        while it is shut down."""
        from ray.exceptions import RayError

        with contextlib.suppress(RayError, ValueError):  # without a hub there is no poll
            find_actor(self.runtime, "hub").poll.remote(self.id, 0, 0, 0.0)  # a newer one ends it
        if self._poll.is_alive() and threading.current_thread() is not self._poll:
            self._poll.join(timeout)

    def _over(self) -> bool:
        """True if the runtime or Ray has ended: nothing more comes. A registry that is started again keeps its name."""
        import ray
        from ray.exceptions import RayError

        try:
            find_actor(self.runtime, "registry")
        except RayError:
            return False  # Ray's head is away: it is asked again
        except Exception as error:
            if not isinstance(error, ValueError) and ray.is_initialized():
                raise
            self.requester.fail(RuntimeClosed(self.runtime))
            return True
        return False
