"""What the registry's process has to do with the hub: one push in flight, leases, and all again for a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_ray.core.protocol.hubstate import HubBatch
from openclaw_ray.testing.simulator.network import Lost

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.registry import RegistryProcess

__all__ = ["HubLink"]

_ROWS_MAY_WAIT = 0.02
"""Seconds in which rows and events gather when no client waits for a message."""
_LEASES_EVERY = 1.0
"""Seconds between two looks at the leases of clients."""


class HubLink:
    """The pusher of one registry process (PROTOCOL.md 7.4)."""

    def __init__(self, process: RegistryProcess) -> None:
        self.process = process
        self._pushing: HubBatch | None = None
        self._waits = False
        self._planned = False
        self._boot = 0

    def begin(self) -> None:
        """Look at leases from now on."""
        self.process.after(_LEASES_EVERY, self._leases)

    def forget(self) -> None:
        """The registry was made anew and says itself what is to be said."""
        self._pushing = None

    def nudge(self) -> None:
        """Something was committed: push it now if a client waits for it, else soon."""
        if self.process.core.client_waits:
            self.push()
        elif not self._planned:
            self._planned = True
            self.process.after(_ROWS_MAY_WAIT, self._soon)

    def _soon(self) -> None:
        self._planned = False
        self.push()

    def push(self) -> None:
        """Push what there is, unless a push is on its way; one that fails is made again."""
        from openclaw_ray.testing.simulator.hub import HubProcess

        process = self.process
        if self._waits:
            return
        if self._pushing is None:
            self._pushing = process.core.take_batch()
        if self._pushing is None:
            return
        self._waits = True
        core, batch = process.core, self._pushing

        def came(answer: tuple[int, int] | Lost) -> None:
            self._waits = False
            if isinstance(answer, Lost):
                process.after(0.1, self.push)
                return
            if process.core is core:
                self._pushed(batch, *answer)
            self.push()

        process.cluster.network.ask(process, "hub", "main", came, HubProcess.on_push, core.s.incarnation, batch)

    def _pushed(self, batch: HubBatch, boot: int, last_row: int) -> None:
        self._pushing = None
        if boot != self._boot:
            first, self._boot = self._boot == 0, boot
            if not first:
                self.process.entry(self.process.core.hub_again)
        if batch.rows:
            self.process.core.s.journal.delete_upto("rows", last_row)

    def is_new(self, boot: int) -> None:
        """A new hub asks for all that is unacknowledged."""
        self._boot = boot
        self.process.entry(self.process.core.hub_again)

    def _leases(self) -> None:
        """Ask the hub whom it has not heard of for their lease (PROTOCOL.md 2.5)."""
        from openclaw_ray.testing.simulator.hub import HubProcess

        process = self.process
        process.after(_LEASES_EVERY, self._leases)

        def came(silent: tuple[str, ...] | Lost) -> None:
            for client in () if isinstance(silent, Lost) else silent:
                process.entry(lambda c=client: process.core.client_silent(c))  # type: ignore[misc]

        leased = tuple(c.id for c in process.core.s.clients.values() if c.root and c.leased and not c.gone)
        if leased:
            process.cluster.network.ask(process, "hub", "main", came, HubProcess.on_silent, leased)
