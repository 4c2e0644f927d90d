"""What a schedule is made of: the runtime's settings, a program, and what goes wrong when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from openclaw_ray.core.limits import AgentLimits, RuntimeLimits
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.testing.simulator.network import Habits, Meddling
from openclaw_ray.testing.simulator.plans import Program

__all__ = ["AGENTS", "BUNDLES", "Fault", "FaultKind", "Schedule", "Setup", "Weather"]


class Weather(StrEnum):
    """How bad things get in a random schedule."""

    CALM = "calm"
    """No process dies, no answer is lost; calls overtake each other as Ray lets them."""
    REGISTRY = "registry"
    """The registry crashes, also between commit and answer, and commits fail."""
    ACTORS = "actors"
    """Session processes are killed and fall silent."""
    EVERYTHING = "everything"
    """All of that; hub, pool and clients die or fall silent, too."""
    HOSTILE = "hostile"
    """All of that over a network that reorders and doubles what Ray would keep in order."""


class FaultKind(StrEnum):
    """What goes wrong."""

    REGISTRY = "registry"
    """The registry's process dies at a moment."""
    BETWEEN = "between"
    """It dies after its ``nth`` commit, with the first ``target`` effects done and no answer given."""
    COMMIT = "commit"
    """The ``nth`` transaction's commit fails, nothing is kept."""
    SESSION = "session"
    """The ``target``-th live session process dies."""
    SILENCE = "silence"
    """The ``target``-th live session process is silent for ``lasts`` seconds."""
    CUT_OFF = "cut_off"
    """The ``target``-th live session process is declared dead, but lives on for ``lasts`` seconds."""
    STALL = "stall"
    """The registry is silent for ``lasts`` seconds."""
    HUB = "hub"
    """The hub dies."""
    POOL = "pool"
    """The pool dies, and all session processes with it."""
    CLIENT = "client"
    """The ``target``-th client dies."""
    CLIENT_SILENCE = "client_silence"
    """The ``target``-th client is silent for ``lasts`` seconds."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: at a moment (``at``, seconds), or with the registry's ``nth`` transaction if ``at`` is
    negative, as it is for those kinds that only go by transactions."""

    kind: FaultKind
    at: float = 0.0
    nth: int = 0
    target: int = 0
    lasts: float = 0.0


_ANY = ("*",)

AGENTS = {
    "worker": AgentLimits("worker", allow_agents=_ANY),
    "leaf": AgentLimits("leaf", allow_agents=_ANY),
    "other": AgentLimits("other", allow_agents=_ANY),
    "gpu": AgentLimits("gpu", allow_agents=_ANY, resources={"num_gpus": 1.0}),
}
"""The agents of every schedule: ``leaf`` cannot spawn, ``other`` is another bundle, ``gpu`` needs actors of its own.
``worker`` takes further turns, so that its session is activated again if its process dies before its children end."""


def _entry(agent: str, bundle: str, *, spawns: bool = True) -> AgentEntry:
    follow_up = agent == "worker"
    return AgentEntry(agent, bundle, "simulator", f"hash of {agent}", spawns, False, follow_up, AGENTS[agent])


BUNDLES = {
    "bundle": (_entry("worker", "bundle"), _entry("leaf", "bundle", spawns=False), _entry("gpu", "bundle")),
    "bundle-2": (_entry("other", "bundle-2"),),
}


@dataclass(frozen=True, slots=True)
class Setup:
    """The runtime that a schedule runs on.

    Attributes:
        limits: of the runtime. ``pool_max``, ``cpus``: as the registry is told.
        prewarm: actors created before the clients come.
        habits: of the network.
        leased: whether clients have a lease.
        patience: seconds after which a client stops what is left and leaves; `None`: it waits for ever.
        failing_births: share of session processes that cannot be created, while faults last.
        notice: most seconds from a death to its notice.
    """

    limits: RuntimeLimits = field(default_factory=RuntimeLimits)
    pool_max: int = 8
    cpus: int = 2
    prewarm: int = 2
    habits: Habits = field(default_factory=Habits)
    leased: bool = True
    patience: float | None = None
    failing_births: float = 0.0
    notice: float = 0.012


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that decides a simulated run; the same schedule gives the same run.

    Attributes:
        seed: of the choices made on the way (delays, losses).
        origin: the seed that the whole schedule was made from; -1 for a directed one.
        meddling: what is done to single calls, in directed schedules.
        limit: virtual seconds after the last fault in which everything must have ended.
    """

    seed: int
    program: Program
    setup: Setup = field(default_factory=Setup)
    faults: tuple[Fault, ...] = ()
    meddling: tuple[Meddling, ...] = ()
    weather: str = ""
    limit: float = 240.0
    origin: int = -1

    def fresh_meddling(self) -> list[Meddling]:
        """Copies that have seen nothing yet."""
        return [replace(m, seen=0) for m in self.meddling]
