"""What a turn needs of the process that runs it: the seam between agents' code and the courier.

A session actor, and later the local runtime of ``openclaw_ray.testing``, provide one. Every method is safe from any
thread and returns at once; what takes time is a `concurrent.futures.Future`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from openclaw_ray.core.named_map import MapItem
from openclaw_ray.core.protocol.messages import Permit, Row
from openclaw_ray.core.results import Completion, Receipt, Result, StopReport, Usage
from openclaw_ray.core.session_facts import ChildAsk

__all__ = ["Child", "SpawnRequest", "TurnPort"]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """One spawn, as asked for by a program; ``input`` is any Python object or reference (`MISSING` if not given).

    ``item``: what it is to a map that has a name. ``cleanup``: ``delete`` has it archived once its end was heard of.
    ``ask``: what is asked for beyond that.
    """

    task: str
    agent_id: str | None = None
    input: Any = None
    has_input: bool = False
    label: str | None = None
    timeout: float | None = None
    expects: bool = True
    route: str = "spawn"
    index: int | None = None
    task_name: str | None = None
    item: MapItem | None = None
    cleanup: str = "keep"
    ask: ChildAsk | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """A child of the running turn: its receipt, and the future of its completion."""

    receipt: Receipt
    completion: Future[Completion]


class TurnPort(Protocol):
    """One running turn's way to the rest of the runtime."""

    def spawn(self, requests: Sequence[SpawnRequest]) -> list[Future[Receipt]]:
        """Ask for children; each future gives a receipt, accepted or not. Never raises for a refusal."""

    def completion(self, run_id: str) -> Future[Completion]:
        """The future of an accepted child's completion; the same one for each call.

        For a map item the completion's ``result`` is the value of interest. A large value has been taken already.
        """

    def children(self) -> list[Receipt]:
        """Receipts of the session's children whose completions no program has been given yet, in order of birth.

        Children of earlier turns are among them.
        """

    def consume(self, run_ids: Sequence[str]) -> None:
        """These completions were given to the program (PROTOCOL.md 4.5)."""

    def pause(self) -> None:
        """The turn begins to wait for children: its slot is given back. Counts; each needs one `resume`."""

    def resume(self) -> Future[None]:
        """The wait is over; done when the turn has a slot again."""

    def stop(self, run_ids: Sequence[str]) -> list[Future[StopReport]]:
        """Stop these children's subtrees."""

    def map_done(self, summary: str) -> None:
        """A map of this turn has ended: one summary row."""

    def progress(self, text: str | None, done: float | None, total: float | None) -> None:
        """Newest progress, coalesced."""

    def add_usage(self, usage: Usage) -> None:
        """Add to the run's usage."""

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """The session's transcript rows, newest last, those of this turn so far included."""

    def append(self, role: str, text: str) -> None:
        """Add a row to the transcript."""

    def limit(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """Get in line for a rate limit; gives the request's id, and the future of the registry's word."""

    def limit_done(self, ask: str) -> None:
        """Give back what a request holds, or want nothing any more."""

    def limit_back_off(self, name: str, seconds: float) -> None:
        """Have nobody let in by a rate limit for so long."""

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        """What the registry knows of this session: ``children`` (`ChildFacts`, newest first), ``agents`` (one
        `AllowedAgents`), ``audience`` (one `Audience` or `Denial`), or ``kin`` (what the session or run ``target`` is
        to it: one `KinFacts`, or none)."""

    @property
    def cancelled(self) -> str | None:
        """Why the turn is to end (``stopped``, ``timeout``), or `None`."""

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """Call back, from any thread, once the turn is to end; at once if it already is."""


# a turn's map gives results; named here so that both kinds of turn share the type
MapResults = list[Result[Any]]
