"""A run that was steered, and the one that goes on in its place (SPEC.md B4, G4).

The rules are in `openclaw_ray.core.protocol.steering`; here is what of it is journaled with a run, and how one follows
from the old one to the newest. A run that was never steered has none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_ray.core.compact import compact

if TYPE_CHECKING:
    from openclaw_ray.core.protocol.records import Run
    from openclaw_ray.core.protocol.state import State

__all__ = ["Restart", "generation", "is_replaced", "replaces", "successor"]


@compact
@dataclass(frozen=True, slots=True)
class Restart:
    """One run's place in a row of restarts.

    Attributes:
        generation: how often its task had been steered when it was made.
        replaces: the runs that it stands for, oldest first.
        replaced_by: the run that goes on in its place, empty for the newest.
    """

    generation: int = 0
    replaces: tuple[str, ...] = ()
    replaced_by: str = ""


def is_replaced(run: Run) -> bool:
    """Whether another run goes on in its place."""
    return run.restart is not None and bool(run.restart.replaced_by)


def replaces(run: Run) -> tuple[str, ...]:
    """The runs that it stands for."""
    return () if run.restart is None else run.restart.replaces


def generation(run: Run) -> int:
    """How often its task was steered before it."""
    return 0 if run.restart is None else run.restart.generation


def successor(s: State, run_id: str) -> Run | None:
    """The run that goes on for ``run_id``: itself, or the newest one in its place; `None` if there is no such run."""
    run = s.journaled_run(run_id)
    while run is not None and run.restart is not None and run.restart.replaced_by:
        run = s.journaled_run(run.restart.replaced_by)
    return run
