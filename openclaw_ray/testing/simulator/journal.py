"""The journal of a simulated registry: in memory, watched by the monitor, with commits that fail when they are to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openclaw_ray.core.protocol.journal import JournalFault, MemoryJournal, Write

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["WatchedJournal"]


class WatchedJournal(MemoryJournal):
    """A `MemoryJournal` whose commits are seen and may be made to fail."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def commit(self, writes: Sequence[Write]) -> None:
        """See `Journal.commit`."""
        if self._cluster.faults.commit_fails(self._cluster.transactions):
            raise JournalFault("the schedule has this commit fail")
        super().commit(writes)
        self._cluster.monitor.committed(writes)
