"""Figures of a runtime, as a frozen snapshot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from openclaw_ray.core.results import camel_dict

__all__ = ["RuntimeStats", "memory_of"]


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """A runtime now.

    Attributes:
        sessions_started: turns started since the runtime (or its registry) began.
        warm_activations, cold_activations: of these, on a process that had run a turn before, and on a new one.
        spawns_refused: spawns that a policy or limit refused.
        queued: runs that wait for a slot or an actor.
        waiting: for each of them, what it waits for, with the figures.
        live_runs: runs in the registry's memory: un-ended, or not yet heard of by their requester.
        actors: session processes by state.
        pool_max: the ceiling of session processes.
        slots: lane slots taken.
        retired: session processes that were not used again, by reason.
        memory_bytes: proportional memory of the runtime's processes on this host now.
        peak_memory_bytes: most seen by `stats` calls of this client.
        registry_incarnation: 1 for the first; each crash adds one.
        limits: for each of ``ray.limits``, how many turns hold a place (``held``) and how many wait (``waiting``).
        lanes: for each lane in use, how many slots it has (``width``, 0: any number) and how many are ``taken``.
    """

    sessions_started: int
    warm_activations: int
    cold_activations: int
    spawns_refused: int
    queued: int
    waiting: dict[str, str] = field(default_factory=dict)
    live_runs: int = 0
    actors: dict[str, int] = field(default_factory=dict)
    pool_max: int = 0
    slots: int = 0
    retired: dict[str, int] = field(default_factory=dict)
    memory_bytes: int = 0
    peak_memory_bytes: int = 0
    registry_incarnation: int = 1
    limits: dict[str, dict[str, int]] = field(default_factory=dict)
    lanes: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return camel_dict(asdict(self))


def memory_of(pids: list[int]) -> int:
    """Bytes of proportional memory (PSS) of these processes of this host; those that are gone count as nothing."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                for line in rollup:
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
                        break
        except (OSError, ValueError):
            continue
    return total
