"""The protocol in virtual time: seeded schedules of programs, delays and faults over the classes that the actors use.

A *schedule* is one tree of scripted sessions on one small runtime, with calls that overtake each other and processes
that die or fall silent, run until all has ended. Invariants are looked at while it runs and when it is over (`history`,
`turn_watch`, `monitor`, `audit`). The same seed gives the same run, so a broken one is replayed by its seed::

    simulate(seed=4711, weather="hostile", trace=True)

Directed schedules are built from `Program`, `Plan`, `Setup`, `Fault` and `Meddling`, and run by `run_schedule`.
"""

from __future__ import annotations

from openclaw_ray.testing.simulator.generate import random_schedule
from openclaw_ray.testing.simulator.history import InvariantBroken
from openclaw_ray.testing.simulator.network import Habits, Meddling
from openclaw_ray.testing.simulator.plans import (
    Ask,
    Chat,
    Die,
    Fail,
    Hang,
    Join,
    Map,
    Operation,
    Plan,
    Program,
    Rebind,
    Reset,
    Say,
    Serve,
    Spawn,
    Steer,
    Stop,
    Tell,
    Use,
    Work,
    Yield,
    describe,
)
from openclaw_ray.testing.simulator.run import Outline, ScheduleBroken, run_schedule
from openclaw_ray.testing.simulator.setup import Fault, FaultKind, Schedule, Setup, Weather

__all__ = [
    "Ask",
    "Chat",
    "Die",
    "Fail",
    "Fault",
    "FaultKind",
    "Habits",
    "Hang",
    "InvariantBroken",
    "Join",
    "Map",
    "Meddling",
    "Operation",
    "Outline",
    "Plan",
    "Program",
    "Rebind",
    "Reset",
    "Say",
    "Schedule",
    "ScheduleBroken",
    "Serve",
    "Setup",
    "Spawn",
    "Steer",
    "Stop",
    "Tell",
    "Use",
    "Weather",
    "Work",
    "Yield",
    "describe",
    "random_schedule",
    "run_schedule",
    "simulate",
]


def simulate(seed: int, weather: Weather | str = Weather.CALM, *, trace: bool = False) -> Outline:
    """Run the random schedule of a seed.

    Raises:
        ScheduleBroken: an invariant does not hold; its text replays it.
    """
    return run_schedule(random_schedule(seed, weather), trace=trace)
