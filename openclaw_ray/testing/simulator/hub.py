"""The hub's process: the pure hub state, parked polls, and the transcripts on disk (PROTOCOL.md 2, 7.4).

Its memory is empty after a crash; the transcripts stay.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from openclaw_ray.core.protocol.hubstate import HubBatch, HubState
from openclaw_ray.core.protocol.messages import Archive, DownMessage, Row
from openclaw_ray.testing.simulator.network import Later
from openclaw_ray.testing.simulator.process import Process

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["HubProcess", "Transcripts"]

class Transcripts:
    """What is on disk: rows by session, appended once by (activation, seq) or key, none of a lower activation."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self._known: set[tuple[str, int, int, str | None]] = set()
        self._floors: dict[str, int] = {}

    def append(self, row: Row) -> bool:
        """Append a row unless it is there already or comes from an activation that is over."""
        if not self.admits(row):
            return False
        self._known.add(self._identity(row))
        self.rows.setdefault(row.session_id, []).append(row)
        return True

    def admits(self, row: Row) -> bool:
        """Whether a row is new and not of a lower activation than the one that began last."""
        if self._identity(row) in self._known:
            return False
        return row.key is not None or row.activation >= self._floors.get(row.session_id, 0)

    def begin(self, session_id: str, number: int) -> None:
        """A new activation began."""
        self._floors[session_id] = max(number, self._floors.get(session_id, 0))

    @staticmethod
    def _identity(row: Row) -> tuple[str, int, int, str | None]:
        if row.key is not None:
            return (row.session_id, 0, 0, row.key)
        return (row.session_id, row.activation, row.seq, None)


class HubProcess(Process):
    """One life of the hub."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.world, "hub")
        self.cluster = cluster
        self.boot = cluster.boots
        self.state = HubState()
        self._parked: dict[str, tuple[Later, int, int]] = {}
        self._last_row = 0

    def begin(self) -> None:
        """Tell the registry that this is a new hub, unless it is the first."""
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        if self.boot > 1:
            self.cluster.network.tell(self, "registry", "main", RegistryProcess.on_hub_is_new, self.boot)

    def on_push(self, incarnation: int, batch: HubBatch) -> tuple[int, int]:
        """A push; the answer names this hub's life and the last row that is on disk now."""
        pushed = self.state.push(incarnation, batch)
        if not pushed.accepted:
            return self.boot, 0
        transcripts = self.cluster.transcripts
        last_row = 0
        for number, _, data in batch.rows:
            row = pickle.loads(data)
            if not isinstance(row, Archive):  # renamed, its rows are what they were (`archive_watch`)
                transcripts.append(row)
            last_row = number
        for session_id, number in batch.begins:
            transcripts.begin(session_id, number)
        for client in pushed.clients:
            self._answer(client)
        return self.boot, last_row

    def on_poll(
        self, client: str, incarnation: int, cursor: int
    ) -> tuple[int, tuple[tuple[int, DownMessage], ...]] | Later:
        """A long poll; a newer one of the same client ends the older."""
        self.state.touch(client, self.world.now)
        older = self._parked.pop(client, None)
        if older is not None:
            older[0].answer((self.state.incarnation, ()))
        found = tuple(self.state.take(client, incarnation, cursor))
        if found:
            return self.state.incarnation, found
        later = Later()
        self._parked[client] = (later, incarnation, cursor)
        self.after(self.cluster.setup.limits.client_lease_seconds / 3, self._end_poll, client, later)
        return later

    def _answer(self, client: str) -> None:
        parked = self._parked.pop(client, None)
        if parked is None:
            return
        later, incarnation, cursor = parked
        later.answer((self.state.incarnation, tuple(self.state.take(client, incarnation, cursor))))

    def _end_poll(self, client: str, later: Later) -> None:
        parked = self._parked.get(client)
        if parked is not None and parked[0] is later:
            del self._parked[client]
            later.answer((self.state.incarnation, ()))

    def on_silent(self, clients: tuple[str, ...]) -> tuple[str, ...]:
        """Which of these clients have not polled for their lease; one not heard of yet counts from now on."""
        now = self.world.now
        for client in clients:
            self.state.expect(client, now)
        silent = self.state.silent(now, self.cluster.setup.limits.client_lease_seconds)
        return tuple(client for client in silent if client in clients)

    def gone(self) -> None:
        """Polls fail; it comes back by itself."""
        from openclaw_ray.testing.simulator.network import Lost

        for later, _, _ in self._parked.values():
            later.answer(Lost.UNAVAILABLE)
        self.cluster.hub_died()
